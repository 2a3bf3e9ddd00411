"""Creating, growing and deleting topics: decided here, written to ZooKeeper, then read back."""

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.broker.image import INTERNAL_TOPICS
from headrace.broker.placement import check_assignment, spread
from headrace.broker.settings import InvalidSetting
from headrace.broker.topic_settings import TOPIC_SETTINGS
from headrace.broker.translate import FAILURES
from headrace.controller.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    NotController,
    PolicyViolation,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from headrace.controller.runner import Controller
from headrace.controller.store import (
    MAX_TRANSACTION_BYTES,
    belongs_to_the_one_before,
    delete_topic,
    size_of,
)
from headrace.coordination.session import Conflict, Create, Operation, Set
from headrace.coordination.znodes import (
    DELETED_TOPICS,
    Config,
    ControllerEpoch,
    PartitionState,
    TopicAssignment,
    deleted_topic_path,
    encode_id,
    topic_path,
)
from headrace.storage.errors import InvalidTopic
from headrace.storage.topics import check_topic_name

if TYPE_CHECKING:
    from headrace.broker.server import Broker

logger = logging.getLogger(__name__)

_TOLD_S = 5.0  # how long a change waits for every broker to have heard of it
BROKER_DEFAULT = -1  # in a request: as many as the broker's own setting says


class TopicAdmin:
    """One change to topics at a time; every one is on ZooKeeper's disk when it returns."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._lock = asyncio.Lock()

    async def create(
        self,
        name: str,
        *,
        partitions: int = BROKER_DEFAULT,
        replicas: int = BROKER_DEFAULT,
        assignment: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str | None] | None = None,
        validate_only: bool = False,
    ) -> TopicAssignment:
        """Make a topic, which clients can use once `told` returns; KafkaError, and no change, if not."""
        own = self._checked_configs(configs or {})
        async with self._lock:
            topic = TopicAssignment(
                topic=name,
                topic_id=_new_topic_id(),
                replicas=self._replicas(name, partitions, replicas, assignment),
            )
            if not validate_only:
                await self._broker.finishing.run(self._create(topic, own))
            return topic

    async def _create(self, topic: TopicAssignment, own: Mapping[str, str]) -> None:
        if await self._broker.session.exists(deleted_topic_path(topic.topic)):
            await self._finish_deletion(topic.topic)  # or the mark would be taken for the new topic's
        controller = self._controller
        async with controller.exclusively():
            await self._write_new(topic, own)
            controller.add_topic(topic.topic, topic.topic_id, topic.replicas, own)

    async def told(self) -> None:
        """Return when every broker that can be reached knows all topics made so far, or time is up."""
        await self._controller.told(_TOLD_S)

    async def add_partitions(
        self,
        name: str,
        count: int,
        assignment: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Let a topic have `count` partitions; the new ones are empty, the old ones stay as they are."""
        async with self._lock:
            known = name in self._broker.image.topics  # else it may not even do as part of a path
            found = await self._broker.session.get(topic_path(name)) if known else None
            if found is None:
                raise UnknownTopicOrPartition(f"there is no topic {name!r}")
            old = TopicAssignment.decode(name, found.data)
            had = len(old.replicas)
            if name in INTERNAL_TOPICS:
                raise InvalidPartitions(f"{name} cannot grow: groups would be looked for where they are not")
            if count <= had:
                raise InvalidPartitions(f"{name} has {had} partitions already, which cannot become {count}")
            added = self._added(old, count, assignment)
            topic = TopicAssignment(
                topic=name,
                topic_id=old.topic_id,
                replicas={**old.replicas, **added},
                adding=old.adding,
                removing=old.removing,
            )
            if not validate_only:
                await self._broker.finishing.run(self._grow(topic, found.version, added))

    async def _grow(self, topic: TopicAssignment, version: int, added: Mapping[int, Sequence[int]]) -> None:
        states = self._state_operations(topic.topic, added)
        controller = self._controller
        async with controller.exclusively():
            await self._write([Set(topic.path, topic.encode(), version), *states])
            controller.grow_topic(topic.topic, version + 1, added)
        await controller.told(_TOLD_S)

    async def delete(self, name: str) -> None:
        """Remove a topic with its records and its settings; once it has begun, a crash only delays it."""
        if not self._broker.config.flag("delete.topic.enable"):
            raise PolicyViolation("delete.topic.enable is false")
        async with self._lock:
            topic = self._broker.image.topics.get(name)
            if topic is None:
                raise UnknownTopicOrPartition(f"there is no topic {name!r}")
            await self._broker.finishing.run(self._delete(name, topic.topic_id))

    async def _delete(self, name: str, topic_id: bytes) -> None:
        mark = deleted_topic_path(name)
        await self._broker.session.ensure(mark)
        await self._broker.session.set(mark, encode_id(topic_id).encode())
        await self._finish_deletion(name)

    async def finish_deletions(self) -> None:
        """Resume the deletions that an earlier controller began; those that fail are left to the next one."""
        try:
            async with self._lock:
                for name in await self._broker.session.children(DELETED_TOPICS):
                    logger.info("resuming the deletion of topic %s", name)
                    await self._finish_deletion(name)
        except FAILURES as error:
            logger.warning("could not resume the deletion of topics: %s", error)

    async def _finish_deletion(self, name: str) -> None:
        """Remove the topic that is marked, and last of all the mark. A topic with another id stays."""
        session = self._broker.session
        mark, topic = await session.get(deleted_topic_path(name)), await session.get(topic_path(name))
        is_meant = topic is None or mark is None or not mark.data
        if topic is not None and mark is not None and mark.data:
            topic_id = TopicAssignment.decode(name, topic.data).topic_id
            is_meant = encode_id(topic_id).encode() == mark.data
        if is_meant:
            await self._remove(name)
        await session.delete_tree(deleted_topic_path(name))

    async def _remove(self, name: str) -> None:
        controller = self._controller
        async with controller.exclusively():
            controller.remove_topic(name)
        # The mark keeps it from being read again; nobody else has to wait for what follows.
        await self._broker.session.delete_tree(Config.path_of("topics", name))
        await delete_topic(self._broker.session, controller.elected, name)
        await controller.told(_TOLD_S)

    def _checked_configs(self, configs: Mapping[str, str | None]) -> dict[str, str]:
        own = {name: value for name, value in configs.items() if value is not None}
        try:
            TOPIC_SETTINGS.parse(own)
            self._broker.config.check_topic(own)
        except InvalidSetting as error:
            raise InvalidConfig(str(error)) from error
        return own

    def _replicas(
        self, name: str, partitions: int, replicas: int, assignment: Mapping[int, Sequence[int]] | None
    ) -> Mapping[int, Sequence[int]]:
        check_topic_name(name)
        image, config = self._broker.image, self._broker.config
        if name in image.topics:
            raise TopicAlreadyExists(f"topic {name!r} exists already")
        self._check_collision(name)
        brokers = {each: found.rack for each, found in image.brokers.items()}
        if assignment:
            if (partitions, replicas) != (BROKER_DEFAULT, BROKER_DEFAULT):
                raise InvalidRequest("name either an assignment or numbers of partitions and replicas")
            check_assignment(assignment, brokers)
            return assignment
        if partitions == BROKER_DEFAULT:
            partitions = config.integer("num.partitions")
        if replicas == BROKER_DEFAULT:
            replicas = config.integer("default.replication.factor")
        return spread(partitions, replicas, brokers, start=secrets.randbelow(max(1, len(brokers))))

    def _check_collision(self, name: str) -> None:
        """Names that differ in '.' and '_' only would share the names of their metrics."""
        for other in self._broker.image.topics:
            if other.replace(".", "_") == name.replace(".", "_"):
                raise InvalidTopic(f"topic {name!r} collides with {other!r}: '.' and '_' count as the same")

    def _added(
        self, old: TopicAssignment, count: int, assignment: Sequence[Sequence[int]] | None
    ) -> dict[int, Sequence[int]]:
        had = len(old.replicas)
        brokers = {each: found.rack for each, found in self._broker.image.brokers.items()}
        if assignment is not None:
            if len(assignment) != count - had:
                raise InvalidReplicaAssignment(
                    f"{old.topic}: {len(assignment)} assignments for {count - had} new partitions"
                )
            added = dict(enumerate(assignment, start=had))
            check_assignment(added, brokers, first=had)
            return added
        placed = spread(count - had, len(old.replicas[0]), brokers, start=had % max(1, len(brokers)))
        return {had + partition: replicas for partition, replicas in placed.items()}

    async def _write_new(self, topic: TopicAssignment, own: Mapping[str, str]) -> None:
        config = Config(kind="topics", name=topic.topic, values=own)
        # What a topic of this name may have left is replaced when the new one is made, or not at all.
        left = await self._broker.session.exists(config.path)
        operations: list[Operation] = [
            Set(config.path, config.encode()) if left else Create(config.path, config.encode()),
            Create(topic.path, topic.encode()),
            Create(f"{topic.path}/partitions", b""),
            *self._state_operations(topic.topic, topic.replicas),
        ]
        try:
            await self._write(operations)
        except Conflict as error:
            if error.path == ControllerEpoch.path:
                raise NotController("another broker is the controller") from error
            raise TopicAlreadyExists(f"topic {topic.topic!r} exists already") from error

    async def _write(self, operations: Sequence[Operation]) -> None:
        """All of `operations`, in as few transactions as ZooKeeper's limit on their size allows.

        The first holds what makes the topic exist; a controller that begins makes up for the others.
        """
        check = self._controller.elected.check
        part: list[Operation] = [check]
        room = MAX_TRANSACTION_BYTES
        for operation in operations:
            size = size_of(operation)
            if size > room and not belongs_to_the_one_before(operation):
                await self._broker.session.multi(part)
                part, room = [check], MAX_TRANSACTION_BYTES
            part.append(operation)
            room -= size
        await self._broker.session.multi(part)

    @property
    def _controller(self) -> Controller:
        controller = self._broker.controller
        if controller is None:
            raise NotController("another broker is the controller")
        return controller

    def _state_operations(self, name: str, replicas: Mapping[int, Sequence[int]]) -> list[Operation]:
        """Each partition is led by its first replica, and all are in sync: all are empty."""
        operations: list[Operation] = []
        for partition, members in replicas.items():
            state = PartitionState(
                topic=name,
                partition=partition,
                leader=members[0],
                leader_epoch=0,
                isr=tuple(members),
                controller_epoch=self._controller.epoch,
            )
            operations.append(Create(state.path.removesuffix("/state"), b""))
            operations.append(Create(state.path, state.encode()))
        return operations


def _new_topic_id() -> bytes:
    """Sixteen random bytes; Kafka keeps the two smallest, and those that start with a dash, for itself."""
    while True:
        topic_id = secrets.token_bytes(16)
        if topic_id[0] not in {0, 0xF8, 0xF9, 0xFA, 0xFB}:
            return topic_id
