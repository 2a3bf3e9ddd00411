"""The coordinators of one internal topic: this broker runs one for each partition of it that it leads.

A coordinator is declared by a subclass of `CoordinatorRuntime`, such as `Groups`: its internal topic, its
state machine, and, where it has them, its settings, periodic jobs, metrics, and what it does at its end. The
broker has a table of these subclasses (`Coordinators` in `services.py`) and knows none of them by name.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from headrace.broker.coordinators.shard import CoordinatorShard, Expirations
from headrace.broker.errors import NotLeader, RefusedByController
from headrace.broker.image import BrokerEndpoint, ClusterImage, TopicImage
from headrace.broker.peers.peer import PeerPool
from headrace.broker.replicas.housekeeping import Job
from headrace.broker.replicas.partition import Partition
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.translate import FAILURES
from headrace.coordinators.errors import CoordinatorError, CoordinatorNotAvailable, NotCoordinator
from headrace.coordinators.machine import CoordinatorMachine
from headrace.coordinators.partitioner import partition_for
from headrace.coordinators.topics import Topic, Topics
from headrace.protocol.between_brokers.broker_metrics import Family
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.locations import nodes
from headrace.replication.controller.runner import Controller
from headrace.storage.topics import INTERNAL_TOPICS

_REPLICAS: Final = 3  # unless a setting says otherwise or there are fewer nodes
_CONFIGS: Final = {"cleanup.policy": "compact", "compression.type": "producer"}
MOVED_S: Final = 10.0  # for which clients may still send requests to the previous coordinator

logger = logging.getLogger(__name__)

Machine = TypeVar("Machine", bound=CoordinatorMachine[Any])


class InternalTopicSettings(NamedTuple):
    """An internal topic, and the names of the settings with which it is created."""

    name: str
    partitions: str
    replicas: str
    segment_bytes: str
    min_isr: str | None = None


class CreateTopic(Protocol):
    def __call__(
        self, name: str, *, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> Awaitable[None]: ...


class CoordinatorHost(NamedTuple):
    """What coordinators use of their broker."""

    broker_id: int
    image: ClusterImage
    partitions: Mapping[TopicPartition, Partition]
    ensure_lease: Callable[[Partition], None]
    """Raises NotLeader if another broker may lead the partition by now."""
    loop: Callable[[], asyncio.AbstractEventLoop]
    config: Callable[[], BrokerConfig]
    """Returns the settings that are in force now."""
    create_topic: CreateTopic
    new_producer_id: Callable[[], Awaitable[int]]
    new_peer_pool: Callable[[], PeerPool]
    warned_of: set[int]
    """Numbers of replicas that were logged as too few for internal topics: once each, not for every topic."""


class InternalTopic:
    """A topic that coordinators keep their records in, created when it is first needed."""

    def __init__(self, settings: InternalTopicSettings, host: CoordinatorHost) -> None:
        self.name = settings.name
        self._settings = settings
        self._host = host

    async def ensure(self) -> None:
        """Create the topic unless it exists; raise CoordinatorNotAvailable if that is not possible now."""
        if self.name in self._host.image.topics:
            return
        config = self._host.config()
        replicas = config.integer(self._settings.replicas)
        if self._settings.replicas not in config.given:
            replicas = min(_REPLICAS, len(nodes(self._host.image.locations)))
            if replicas < _REPLICAS and replicas not in self._host.warned_of:
                self._host.warned_of.add(replicas)
                logger.warning(
                    "internal topics (%s) are created with %d of %d replicas, because there are no more "
                    "nodes; they get the others when brokers join",
                    ", ".join(sorted(INTERNAL_TOPICS)),
                    replicas,
                    _REPLICAS,
                )
        configs = {**_CONFIGS, "segment.bytes": str(config.integer(self._settings.segment_bytes))}
        if self._settings.min_isr is not None:
            configs["min.insync.replicas"] = str(config.integer(self._settings.min_isr))
            configs["unclean.leader.election.enable"] = "false"
        partitions = config.integer(self._settings.partitions)
        try:
            await self._host.create_topic(
                self.name, partitions=partitions, replicas=replicas, configs=configs
            )
        except RefusedByController as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise CoordinatorNotAvailable(f"{self.name} cannot be created: {error}") from error
            logger.debug("another broker has created %s", self.name)

    async def raise_replicas(self, controller: Controller) -> None:
        """Add the replicas that the topic could not have when it was created: brokers have joined.

        Another replica on the same node would not survive its failure, and would have to move later.
        """
        if self._settings.replicas not in self._host.config().given:
            try:
                count = min(_REPLICAS, len(nodes(controller.model.locations)))
                await controller.raise_replicas(self.name, count)
            except FAILURES as error:
                logger.warning("%s did not get more replicas: %s", self.name, error)


class CoordinatorRuntime(Generic[Machine]):
    """Starts, finds and stops coordinators as leaders change; subclasses declare what they coordinate."""

    topic_settings: ClassVar[InternalTopicSettings]
    key_type: ClassVar[int]
    """The key type of these coordinators in FindCoordinator."""

    def __init__(self, host: CoordinatorHost) -> None:
        self.host = host
        self.topic = InternalTopic(self.topic_settings, host)
        self.loading = asyncio.Lock()  # one partition at a time, so that slices of many do not add up
        self.expirations = Expirations(host.loop)
        self._shards: dict[int, CoordinatorShard[Machine]] = {}
        self._moved_s: dict[int, float] = {}  # when a partition was led here last, by the clock of the loop
        self._topics = Topics()
        self._image_version = -1  # that `_topics` was made from

    # -- what subclasses declare ---------------------------------------------------------------

    def new_machine(self) -> Machine:
        """Return the state machine of one partition, without any state."""
        raise NotImplementedError

    def applied(self, shard: CoordinatorShard[Machine]) -> None:
        """Act on the new state of a coordinator elsewhere, after an append or after loading."""

    def use_config(self, config: BrokerConfig) -> None:
        """Apply the broker's changed settings."""

    def resource_config_changed(self, kind: str, name: str, values: Mapping[str, str]) -> None:
        """Apply the settings of a resource, such as a group, that have changed in ZooKeeper."""

    def periodic_jobs(self, config: BrokerConfig) -> list[Job]:
        """Return what has to be done again and again."""
        del config
        return []

    def metrics(self) -> Iterator[Family]:
        """Yield the metrics of these coordinators."""
        return iter(())

    def stop(self) -> None:
        """Stop for good: the broker stops."""
        self.stop_shards()

    # -- state ---------------------------------------------------------------------------------

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self.host.loop()

    @property
    def shards(self) -> list[CoordinatorShard[Machine]]:
        """The coordinators that are loaded."""
        return [shard for shard in self._shards.values() if shard.is_ready]

    @property
    def all_shards(self) -> list[CoordinatorShard[Machine]]:
        return list(self._shards.values())

    @property
    def is_loading(self) -> bool:
        return any(shard.is_loading for shard in self._shards.values())

    def ensure_all_ready(self) -> None:
        """Raise unless every coordinator of this broker is loaded and holds its lease."""
        for shard in self._shards.values():
            try:
                shard.ensure_ready()
            except NotCoordinator as error:  # the request is not about one key
                raise CoordinatorNotAvailable(str(error)) from error

    def ensure_lease(self, partition: Partition) -> None:
        """Raise NotCoordinator if another broker may coordinate the keys of this partition by now."""
        try:
            self.host.ensure_lease(partition)
        except NotLeader as error:
            raise NotCoordinator(f"the lease has expired: {error}") from error

    # -- finding -------------------------------------------------------------------------------

    def find(self, key: str, listener: str) -> BrokerEndpoint:
        """Return the broker that coordinates `key`, or raise CoordinatorNotAvailable."""
        leader = self.coordinator_id(key)
        for node in self.host.image.nodes(listener):
            if node.id == leader:
                return node
        raise self._unavailable(key)

    def coordinator_id(self, key: str) -> int:
        """Return the id of the broker that coordinates `key`, or raise CoordinatorNotAvailable."""
        state = self._topic_image().states.get(self.partition_for(key))
        if state is None or state.leader not in self.host.image.brokers:
            raise self._unavailable(key)
        return state.leader

    def _unavailable(self, key: str) -> CoordinatorNotAvailable:
        return CoordinatorNotAvailable(
            f"{self.topic.name}-{self.partition_for(key)}, which holds {key!r}, has no leader "
            "(COORDINATOR_NOT_AVAILABLE)"
        )

    def shard(self, key: str) -> CoordinatorShard[Machine]:
        """Return the coordinator of `key`, if it is on this broker, loaded, and holds its lease."""
        shard = self._shards.get(self.partition_for(key))
        if shard is None:
            raise NotCoordinator(f"another broker coordinates {key!r} (NOT_COORDINATOR)")
        shard.ensure_ready()
        return shard

    def shard_of(self, index: int) -> CoordinatorShard[Machine]:
        """Return the coordinator of a partition of the topic, or raise NotCoordinator."""
        shard = self._shards.get(index)
        if shard is None:
            raise NotCoordinator(f"another broker leads {self.topic.name}-{index} (NOT_COORDINATOR)")
        return shard

    def has_just_moved(self, key: str) -> bool:
        """Return whether `key` was coordinated here until a moment ago; clients may not know that yet.

        A coordinator without a lease may have moved, too.
        """
        index = self.partition_for(key)
        moved_s = self._moved_s.get(index)
        return index in self._shards or (moved_s is not None and self.loop.time() - moved_s < MOVED_S)

    def partition_for(self, key: str) -> int:
        """Return the partition of the topic that holds `key`."""
        return partition_for(key, len(self._topic_image().replicas))

    def _topic_image(self) -> TopicImage:
        topic = self.host.image.topics.get(self.topic.name)
        if topic is None:
            raise CoordinatorNotAvailable(f"there is no {self.topic.name} yet (COORDINATOR_NOT_AVAILABLE)")
        return topic

    # -- leadership changes --------------------------------------------------------------------

    def follow(self, topic: TopicImage) -> None:
        """Start and stop coordinators: leaders of the topic's partitions may have changed."""
        for index in topic.replicas:
            partition = self.host.partitions.get(TopicPartition(self.topic.name, index))
            leads = partition is not None and partition.leader == self.host.broker_id
            shard = self._shards.get(index)
            if shard is not None and not (
                leads and shard.partition is partition and shard.leader_epoch == partition.leader_epoch
            ):
                del self._shards[index]
                shard.stop()
                shard = None
                self._moved_s[index] = self.loop.time()
            if leads and shard is None:
                assert partition is not None, "a leader has a replica"
                self._shards[index] = CoordinatorShard(self, partition)

    def reload(self, shard: CoordinatorShard[Machine], why: CoordinatorError) -> None:
        """Replace a coordinator whose append has failed: the new one loads what is in the log."""
        index = shard.partition.id.partition
        if self._shards.get(index) is shard:
            shard.stop(why)
            del self._shards[index]
            if shard.partition.log.offline is None:
                self._shards[index] = CoordinatorShard(self, shard.partition)

    def stop_shards(self) -> None:
        for shard in self._shards.values():
            shard.stop()
        self._shards.clear()

    # -- metadata changes ----------------------------------------------------------------------

    def update_topics(self, machine: Machine) -> None:
        """Tell the machine of topics that were created, deleted or have grown since its last decision.

        A snapshot of many topics takes milliseconds: it is made for the next decision, not for each change.
        """
        if not machine.follows_topics:
            return
        image = self.host.image
        if self._image_version != image.version:
            self._image_version = image.version
            by_name = {
                topic.name: Topic(topic.topic_id, len(topic.replicas)) for topic in image.topics.values()
            }
            if by_name != self._topics.by_name:  # a change of leaders does not concern coordinators
                self._topics = Topics.of(self._topics.version + 1, by_name, INTERNAL_TOPICS)
        if machine.topics is not self._topics:
            machine.topics_changed(self._topics)

    def topic_removed(self, name: str) -> None:
        """Tell every coordinator that a topic was deleted, also those that are still being loaded."""
        if name == self.topic.name:
            self.stop_shards()
        for shard in self.all_shards:
            if shard.machine.follows_topics:
                shard.when_loaded(partial(_delete_topic, shard, name))


def _delete_topic(shard: CoordinatorShard[Any], name: str) -> None:
    try:
        shard.write_in_parts(lambda machine, now_ms: machine.topic_deleted(name, now_ms))
    except CoordinatorError as error:
        logger.warning("coordinator: %s keeps what it has of topic %s: %s", shard.partition.id, name, error)
