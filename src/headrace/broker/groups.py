"""The groups that this broker coordinates: which partition holds a group, and who leads that."""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from operator import mul
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from headrace.broker.dispatch import Context, HangUp
from headrace.broker.errors import NotLeader, RefusedByController
from headrace.broker.group_shard import GroupShard
from headrace.broker.image import INTERNAL_TOPICS, Node, TopicImage
from headrace.broker.partition import Partition
from headrace.broker.slices import Steps
from headrace.broker.translate import FAILURES
from headrace.controller.runner import Controller, NotController
from headrace.group.coordinator import GroupCoordinator
from headrace.group.errors import CoordinatorNotAvailable, GroupError, NotCoordinator
from headrace.group.limits import ConsumerTimeouts, GroupLimits
from headrace.group.topics import Topic, Topics
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message

if TYPE_CHECKING:
    from headrace.broker.server import Broker

OFFSETS_TOPIC = "__consumer_offsets"
_REPLICAS = 3  # of the topic, if nobody says how many and there are so many brokers
_COMMIT_TIMEOUT_S = 5.0
_CACHED_CHARS = 255
_LONGEST = 2**15  # characters in a name, on the wire
_CONFIGS = {"cleanup.policy": "compact", "compression.type": "producer"}

logger = logging.getLogger(__name__)


class Groups:
    """The coordinators of the partitions of `__consumer_offsets` that this broker leads."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._shards: dict[int, GroupShard] = {}
        self._topics = Topics()
        self._image_seen = -1
        self._asked: set[GroupShard] = set()  # for the request in hand
        self.limits = broker.config.group_limits()
        self.timeouts: dict[str, ConsumerTimeouts] = {}  # that groups have set for themselves
        self.loading = asyncio.Lock()  # one partition at a time: fifty slices at once are a long time

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._broker.loop

    @property
    def shards(self) -> list[GroupShard]:
        """Those that have read all their records."""
        return [shard for shard in self._shards.values() if shard.is_ready]

    @property
    def is_loading(self) -> bool:
        return any(shard.is_loading for shard in self._shards.values())

    def ensure_all_ready(self) -> None:
        """Raise unless every coordinator here has read its records and holds its lease."""
        for shard in self._shards.values():
            try:
                shard.ensure_ready()
            except NotCoordinator as error:  # nobody asked for a certain group
                raise CoordinatorNotAvailable(str(error)) from error

    def ensure_lease(self, partition: Partition) -> None:
        """Raise NotCoordinator if another broker may coordinate the groups of this partition by now."""
        try:
            self._broker.ensure_lease(partition)
        except NotLeader as error:
            raise NotCoordinator(f"the lease has expired: {error}") from error

    # -- finding -------------------------------------------------------------------------------

    async def find(self, group_id: str, listener: str) -> Node:
        """The broker that coordinates the group; the topic for its records is made if there is none."""
        if OFFSETS_TOPIC not in self._broker.image.topics:
            await self.create_topic()
        topic = self._broker.image.topics.get(OFFSETS_TOPIC)
        if topic is None:  # somebody else made it, and we have not heard of it yet
            raise CoordinatorNotAvailable(f"{OFFSETS_TOPIC} is being made")
        state = topic.states.get(self._index(group_id, topic))
        leader = -1 if state is None else state.leader
        for node in self._broker.image.nodes(listener):
            if node.id == leader:
                return node
        raise CoordinatorNotAvailable(f"nobody leads the partition of group {group_id!r} at the moment")

    def shard(self, group_id: str) -> GroupShard:
        """The coordinator of the group, if that is here and has read its records."""
        topic = self._broker.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            raise CoordinatorNotAvailable(f"there is no {OFFSETS_TOPIC} yet")
        shard = self._shards.get(self._index(group_id, topic))
        if shard is None:
            raise NotCoordinator(f"another broker coordinates group {group_id!r}")
        shard.ensure_ready()
        self._asked.add(shard)
        return shard

    def begin_request(self) -> None:
        """Nobody has been asked for this request yet."""
        self._asked.clear()

    def asked(self) -> set[GroupShard]:
        """The coordinators that were asked since the last call, or since the request began."""
        asked, self._asked = self._asked, set()
        return asked

    def _index(self, group_id: str, topic: TopicImage) -> int:
        return java_hash(group_id) % len(topic.replicas)

    async def create_topic(self) -> None:
        """Make the topic for groups' records, unless somebody else is quicker."""
        config = self._broker.config
        replicas = config.integer("offsets.topic.replication.factor")
        if "offsets.topic.replication.factor" not in config.given:
            replicas = min(_REPLICAS, len(self._broker.image.brokers))
            if replicas < _REPLICAS:
                logger.warning(
                    "%s is made with %d replicas: there are no more brokers", OFFSETS_TOPIC, replicas
                )
        configs = {**_CONFIGS, "segment.bytes": str(config.integer("offsets.topic.segment.bytes"))}
        try:
            await self._broker.create_topic(
                OFFSETS_TOPIC,
                partitions=config.integer("offsets.topic.num.partitions"),
                replicas=replicas,
                configs=configs,
            )
        except RefusedByController as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise CoordinatorNotAvailable(f"{OFFSETS_TOPIC} cannot be made yet: {error}") from error
            logger.debug("somebody else was quicker to make %s", OFFSETS_TOPIC)

    async def use_brokers(self, controller: Controller) -> None:
        """Brokers have come: the topic gets the replicas that it could not have when it was made."""
        if "offsets.topic.replication.factor" not in self._broker.config.given:
            try:
                await controller.raise_replicas(OFFSETS_TOPIC, min(_REPLICAS, len(controller.model.live)))
            except (NotController, *FAILURES) as error:
                logger.warning("%s could not get more replicas: %s", OFFSETS_TOPIC, error)

    # -- coming and going ----------------------------------------------------------------------

    def follow(self, topic: TopicImage) -> None:
        """Leaders may have changed: coordinate what is led here now, and nothing else."""
        for index in topic.replicas:
            partition = self._broker.partitions.get(TopicPartition(OFFSETS_TOPIC, index))
            leads = partition is not None and partition.leader == self._broker.broker_id
            shard = self._shards.get(index)
            if shard is not None and not (
                leads and shard.partition is partition and shard.leader_epoch == partition.leader_epoch
            ):
                del self._shards[index]
                shard.stop()
                shard = None
            if leads and shard is None:
                assert partition is not None, "a partition that is not here is not led here"
                self._shards[index] = GroupShard(self, partition)

    def reload(self, shard: GroupShard, why: GroupError) -> None:
        """A write has failed: what the coordinator knows may be ahead of its log, so it begins anew."""
        index = shard.partition.id.partition
        if self._shards.get(index) is shard:
            shard.stop(why)
            del self._shards[index]
            if shard.partition.log.offline is None:
                self._shards[index] = GroupShard(self, shard.partition)

    def topic_is_gone(self, name: str) -> None:
        """Offsets of a topic go with it."""
        if name == OFFSETS_TOPIC:
            self.stop()
            return
        for shard in tuple(self._shards.values()):
            shard.forget_topic(name)

    def expire_offsets(self) -> None:
        """Forget offsets that are older than their retention."""
        for shard in self.shards:
            try:
                shard.decide_in_parts(GroupCoordinator.expire_offsets)
            except GroupError as error:
                logger.warning("groups: offsets in %s could not expire: %s", shard.partition.id, error)

    def stop(self) -> None:
        for shard in self._shards.values():
            shard.stop()
        self._shards.clear()

    # -- what coordinators need to know --------------------------------------------------------

    def configure(self, group_id: str, timeouts: ConsumerTimeouts) -> None:
        """A group's own settings have changed: its members' next heartbeats go by them."""
        if timeouts == ConsumerTimeouts():
            self.timeouts.pop(group_id, None)
        else:
            self.timeouts[group_id] = timeouts

    def use(self, limits: GroupLimits) -> None:
        self.limits = limits
        for shard in self._shards.values():
            shard.coordinator.use(limits)

    def show_topics(self, coordinator: GroupCoordinator) -> None:
        """Let a coordinator know the topics as they are now."""
        image = self._broker.image
        if self._image_seen != image.version:
            self._image_seen = image.version
            by_name = {
                topic.name: Topic(topic.topic_id, len(topic.replicas)) for topic in image.topics.values()
            }
            if by_name != self._topics.by_name:  # who leads what is nothing to a group
                self._topics = Topics.of(self._topics.version + 1, by_name, INTERNAL_TOPICS)
        coordinator.topics = self._topics


def after_commit(function: Callable[[Any, Context], Any]) -> Callable[[Any, Context], Any]:
    """Let a handler's reply go when everything is committed that it was made from."""

    def handle(request: Any, context: Context) -> Steps[Message | Awaitable[Message]]:
        groups = context.broker.groups
        asked: set[GroupShard] = set()
        groups.begin_request()
        reply = function(request, context)
        while isinstance(reply, GeneratorType):
            try:
                next(reply)
            except StopIteration as stop:
                reply = stop.value
            else:
                asked |= groups.asked()  # other requests may come before the next step
                yield
                groups.begin_request()
        waiting = uncommitted(asked | groups.asked())
        return _hold(reply, waiting) if waiting else reply

    return handle


def uncommitted(shards: Iterable[GroupShard]) -> list["asyncio.Future[KafkaError | None]"]:
    """What is in the logs of these coordinators, and not committed."""
    return [waiting for shard in shards if (waiting := shard.partition.committed()) is not None]


async def _hold(reply: Message, waiting: list["asyncio.Future[KafkaError | None]"]) -> Message:
    done, late = await asyncio.wait(waiting, timeout=_COMMIT_TIMEOUT_S)
    for future in late:
        future.cancel()
    if late or any(future.result() is not None for future in done):
        # Whether it will ever be committed is not known, so neither yes nor no would be true.
        raise HangUp("a group's record was not committed in time, or the coordinator has moved")
    return reply


def java_hash(text: str) -> int:
    """What Java's String.hashCode makes of a text, without its sign: groups are spread by it."""
    return _cached_hash(text) if len(text) <= _CACHED_CHARS else _hash(text)


@lru_cache(
    maxsize=16_384
)  # as many groups as are heard from in a few seconds, unless their names are endless
def _cached_hash(text: str) -> int:
    return _hash(text)


def _hash(text: str) -> int:
    data = text.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(data) // 2}H", data)
    value: int = sum(map(mul, reversed(units), _powers(len(units)))) & 0xFFFFFFFF
    if value == 0x80000000:  # the one number whose absolute value Java does not have
        return 0
    return value if value < 0x80000000 else 0x100000000 - value


@lru_cache(maxsize=1)
def _powers_to(count: int) -> list[int]:
    powers = [1]
    for _ in range(count - 1):
        powers.append(powers[-1] * 31 & 0xFFFFFFFF)
    return powers


def _powers(count: int) -> list[int]:
    """31 to the power of 0, 1, 2, …, as Java's integers overflow; at least `count` of them."""
    return _powers_to(_LONGEST) if count <= _LONGEST else _powers_to(count)
