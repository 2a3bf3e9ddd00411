"""Creating, growing and deleting topics: requests are validated here, and written by the controller."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from headrace.coordination import znodes
from headrace.coordination.errors import CoordinationError
from headrace.coordination.session import ZooKeeperSession
from headrace.protocol.errors import KafkaError
from headrace.protocol.kafka_errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    NotController,
    PolicyViolation,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from headrace.replication.controller.pauses import with_pauses
from headrace.replication.controller.placement import check_assignment, spread
from headrace.replication.controller.runner import UPDATE_WAIT_S, Controller
from headrace.replication.controller.transactions import mark_deleted
from headrace.storage.errors import InvalidTopic
from headrace.storage.topics import INTERNAL_TOPICS, check_topic_name

T = TypeVar("T")
Charge = Callable[[int], None]
"""Charges a number of partitions to the client's quota, or raises KafkaError if that exceeds it."""
BROKER_DEFAULT = -1  # as a number of partitions or replicas in a request: the broker's default
_RESERVED_ID_STARTS = {0, 0xF8, 0xF9, 0xFA, 0xFB}

logger = logging.getLogger(__name__)


def _free_of_charge(_partitions: int) -> None:
    """Charge nothing."""


class TopicDefaults(NamedTuple):
    """The settings of the broker that concern the creation and deletion of topics."""

    partitions: int
    replicas: int
    deletion_enabled: bool


class TopicAdmin:
    """Makes one change at a time; each is committed in ZooKeeper when the method returns.

    `check_configs` raises InvalidConfig for configs that a topic cannot have.
    """

    def __init__(
        self,
        session: ZooKeeperSession,
        *,
        controller: Callable[[], Controller | None],
        defaults: Callable[[], TopicDefaults],
        check_configs: Callable[[Mapping[str, str]], None],
    ) -> None:
        self._session = session
        self._get_controller = controller
        self._defaults = defaults
        self._check_configs = check_configs
        self._lock = asyncio.Lock()
        self._changes = Uncancelled()
        self._deleting: dict[str, asyncio.Task[None]] = {}  # topics whose znodes are being deleted

    @property
    def _controller(self) -> Controller:
        controller = self._get_controller()
        if controller is None:
            raise NotController("another broker is the controller (NOT_CONTROLLER)")
        return controller

    async def propagated(self) -> None:
        """Return when every reachable broker knows all changes of topics so far, or after some seconds."""
        await self._controller.propagated(UPDATE_WAIT_S)

    async def finished(self, timeout_s: float) -> None:
        """Return when no change is in progress, or after `timeout_s`."""
        await self._changes.finished(timeout_s)

    async def create(
        self,
        name: str,
        *,
        partitions: int = BROKER_DEFAULT,
        replicas: int = BROKER_DEFAULT,
        assignment: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str | None] | None = None,
        validate_only: bool = False,
        charge: Charge = _free_of_charge,
    ) -> znodes.TopicAssignment:
        """Create a topic, which clients can use once `told` returns; KafkaError if nothing was created."""
        own = {config: value for config, value in (configs or {}).items() if value is not None}
        self._check_configs(own)
        async with self._lock:
            topic = znodes.TopicAssignment(
                topic=name,
                topic_id=_new_topic_id(),
                replicas=await self._replicas(name, partitions, replicas, assignment),
            )
            if not validate_only:
                charge(len(topic.replicas))
                await self._changes.run(self._create(topic, own))
            return topic

    async def _create(self, topic: znodes.TopicAssignment, configs: Mapping[str, str]) -> None:
        if topic.topic in self._deleting:
            await asyncio.wait({self._deleting[topic.topic]})
        if await self._session.exists(znodes.deleted_topic_path(topic.topic)):
            await self._finish_deletion(topic.topic)  # or the new topic would count as marked
        await self._controller.create_topic(topic, configs)

    async def _replicas(
        self, name: str, partitions: int, replicas: int, assignment: Mapping[int, Sequence[int]] | None
    ) -> Mapping[int, Sequence[int]]:
        check_topic_name(name)
        topics = self._controller.model.topics
        if name in topics:
            raise TopicAlreadyExists(f"topic {name!r} exists already (TOPIC_ALREADY_EXISTS)")
        # Names that differ only in '.' and '_' collide, like their metrics.
        metric = name.replace(".", "_")
        for other in topics if "_" in metric else ():
            if len(other) == len(name) and other.replace(".", "_") == metric:
                raise InvalidTopic(f"topic {name!r} collides with {other!r}: '.' and '_' count as the same")
        brokers = self._controller.model.locations
        if assignment:
            if (partitions, replicas) != (BROKER_DEFAULT, BROKER_DEFAULT):
                raise InvalidRequest("name either an assignment or numbers of partitions and replicas")
            check_assignment(assignment, brokers)
            return assignment
        defaults = self._defaults()
        if partitions == BROKER_DEFAULT:
            partitions = defaults.partitions
        if replicas == BROKER_DEFAULT:
            replicas = defaults.replicas
        start = secrets.randbelow(max(1, len(brokers)))
        return await with_pauses(spread(partitions, replicas, brokers, start=start))

    async def add_partitions(
        self,
        name: str,
        count: int,
        assignment: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
        charge: Charge = _free_of_charge,
    ) -> None:
        """Add empty partitions until the topic has `count`; the existing ones stay as they are."""
        async with self._lock:
            # A name that is no topic's may not even be valid in a path.
            exists = name in self._controller.model.topics
            found = await self._session.get(znodes.topic_path(name)) if exists else None
            if found is None:
                raise UnknownTopicOrPartition(f"topic {name!r} does not exist (UNKNOWN_TOPIC_OR_PARTITION)")
            old = znodes.TopicAssignment.decode(name, found.data)
            if name in INTERNAL_TOPICS:
                raise InvalidPartitions(
                    f"{name} cannot get more partitions: the hash of a group or transactional id would name "
                    "another partition than the one with its records (INVALID_PARTITIONS)"
                )
            if count <= len(old.replicas):
                raise InvalidPartitions(
                    f"{name} has {len(old.replicas)} partitions already, which cannot become {count} "
                    "(INVALID_PARTITIONS)"
                )
            added = await self._added(old, count, assignment)
            topic = znodes.TopicAssignment(
                topic=name,
                topic_id=old.topic_id,
                replicas={**old.replicas, **added},
                adding=old.adding,
                removing=old.removing,
            )
            if not validate_only:
                charge(len(added))
                await self._changes.run(self._grow(topic, found.version, added))

    async def _grow(
        self, topic: znodes.TopicAssignment, version: int, added: Mapping[int, Sequence[int]]
    ) -> None:
        controller = self._controller
        await controller.add_partitions(topic, version, added)
        await controller.propagated(UPDATE_WAIT_S)

    async def _added(
        self, old: znodes.TopicAssignment, count: int, assignment: Sequence[Sequence[int]] | None
    ) -> dict[int, Sequence[int]]:
        had = len(old.replicas)
        brokers = self._controller.model.locations
        if assignment is not None:
            if len(assignment) != count - had:
                raise InvalidReplicaAssignment(
                    f"{old.topic}: {len(assignment)} assignments for {count - had} new partitions"
                )
            added = dict(enumerate(assignment, start=had))
            check_assignment(added, brokers, first=had)
            return added
        start = had % max(1, len(brokers))
        placed = await with_pauses(spread(count - had, len(old.replicas[0]), brokers, start=start))
        return {had + partition: replicas for partition, replicas in placed.items()}

    async def delete(self, name: str, charge: Charge = _free_of_charge) -> None:
        """Delete a topic with its records and configs; brokers know that once `propagated` returns.

        Its znodes are deleted in the background. The topic is marked, so that a crash only delays that.
        """
        if not self._defaults().deletion_enabled:
            raise PolicyViolation("delete.topic.enable is false")
        async with self._lock:
            topic = self._controller.model.topics.get(name)
            if topic is None:
                raise UnknownTopicOrPartition(f"topic {name!r} does not exist (UNKNOWN_TOPIC_OR_PARTITION)")
            charge(len(topic.partitions))
            await self._changes.run(self._delete(name, topic.topic_id))

    async def _delete(self, name: str, topic_id: bytes) -> None:
        await mark_deleted(self._session, name, topic_id)
        await self._controller.remove_topic(name)
        self._deleting[name] = self._changes.start(self._delete_znodes(name))

    async def _delete_znodes(self, name: str) -> None:
        try:
            await self._controller.propagated(UPDATE_WAIT_S)  # first, because the client waits for that
            await self._finish_deletion(name)
        except (KafkaError, CoordinationError) as error:
            logger.warning(
                "znodes of the deleted topic %s are left to the next controller, or to the creation of a "
                "topic with this name: %s",
                name,
                error,
            )
        finally:
            del self._deleting[name]

    async def finish_deletions(self) -> None:
        """Resume the deletions that an earlier controller began; those that fail are left to the next one."""
        try:
            async with self._lock:
                for name in await self._session.children(znodes.DELETED_TOPICS):
                    if name not in self._deleting:
                        logger.info("resuming the deletion of topic %s", name)
                        await self._finish_deletion(name)
        except (KafkaError, CoordinationError) as error:
            logger.warning("could not resume the deletion of topics: %s", error)

    async def _finish_deletion(self, name: str) -> None:
        """Delete the topic that is marked, and the mark last. A topic with another id than the mark stays."""
        mark = await self._session.get(znodes.deleted_topic_path(name))
        if mark is None:
            return  # somebody else has finished the deletion: a topic of this name is a new one
        topic = await self._session.get(znodes.topic_path(name))
        is_marked = topic is None or not mark.data
        if topic is not None and mark.data:
            topic_id = znodes.TopicAssignment.decode(name, topic.data).topic_id
            is_marked = znodes.encode_id(topic_id).encode() == mark.data
        if is_marked:
            controller = self._controller
            await controller.remove_topic(name)
            await controller.delete_znodes(name)
            await controller.propagated(UPDATE_WAIT_S)
        await self._session.delete_tree(znodes.deleted_topic_path(name))


class Uncancelled:
    """Runs changes to their end, even if the client that requested them has disconnected.

    A change in several steps that stopped between two of them would be left unfinished.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, change: Coroutine[Any, Any, T]) -> T:
        """Return what `change` returns, or raise what it raises; the caller can be cancelled, it is not."""
        return await asyncio.shield(self.start(change))

    def start(self, change: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `change` in the background."""
        task = asyncio.ensure_future(change)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as retrieved: nobody may be waiting for the task any more

    async def finished(self, timeout_s: float) -> None:
        """Return when no change is in progress, or after `timeout_s`."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)


def _new_topic_id() -> bytes:
    """Return 16 random bytes; Kafka reserves the two smallest ids and those that begin with a dash."""
    while True:
        topic_id = secrets.token_bytes(16)
        if topic_id[0] not in _RESERVED_ID_STARTS:
            return topic_id
