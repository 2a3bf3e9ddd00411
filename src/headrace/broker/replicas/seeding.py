"""Seeding: new replicas of this broker that begin with files of another broker of the same node.

A replica that is being seeded does not exist yet for the rest of the broker. It is created when the seed is
complete, like a replica that was offline for some time, and fetches what it lacks. Whatever fails, it is
created empty and fetches every record.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from headrace.broker.image import ClusterImage
from headrace.broker.peers.peer import Peer, PeerPool
from headrace.protocol.between_brokers.seed_replica import SeedReplicaRequest, SeedReplicaResponse
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.errors import StorageError
from headrace.storage.seed import Seed

_CONCURRENT = 4  # seeds at a time; the others wait
_TIMEOUT_S = 30.0
_VERSIONS = range(1)  # of SeedReplica

logger = logging.getLogger(__name__)


class NotSeeded(Exception):
    """The replica could not be seeded; the message says why."""


class _Seeding:
    """A replica that is being seeded."""

    def __init__(self, id_: TopicPartition, topic_id: bytes, source: int, config: LogConfig) -> None:
        self.id, self.topic_id, self.source, self.config = id_, topic_id, source, config
        self.is_opening = False  # its directory has its final name, or is about to have it


class Seedings:
    """The replicas of this broker that are being seeded."""

    def __init__(
        self,
        broker_id: int,
        image: ClusterImage,
        *,
        logs: Callable[[], LogDirectory],
        connect_to: Callable[[int], Awaitable[Peer]],
        on_end: Callable[[TopicPartition, bytes], None],
        on_discarded: Callable[[], None],
    ) -> None:
        """`on_end` is called when a replica can be created, `on_discarded` when files are to be removed."""
        self._broker_id = broker_id
        self._image = image
        self._logs = logs
        self._on_end = on_end
        self._on_discarded = on_discarded
        self._peers = PeerPool(broker_id, connect_to=connect_to, handle_locally=_refuse)
        self._under_way: dict[TopicPartition, _Seeding] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_CONCURRENT)
        self._silent: dict[int, int] = {}  # brokers that did not answer, with their broker epoch

    def __contains__(self, id_: TopicPartition) -> bool:
        return id_ in self._under_way

    def source_of(self, leader: int, isr: Collection[int], replicas: Sequence[int]) -> int | None:
        """Return the broker of this node to seed a new replica from: the leader, or any member of the ISR."""
        own = self._image.brokers.get(self._broker_id)
        if own is None or own.node is None or self._broker_id in {leader, *isr}:
            return None
        for broker_id in (leader, *(replica for replica in replicas if replica in isr and replica != leader)):
            broker = self._image.brokers.get(broker_id)
            if broker is not None and broker.node == own.node and self._may_answer(broker_id):
                return broker_id
        return None

    def _may_answer(self, broker_id: int) -> bool:
        """Return whether the broker has not left a request unanswered since it was started."""
        return self._silent.get(broker_id) != self._image.broker_epochs.get(broker_id, -1)

    def begin(self, id_: TopicPartition, topic_id: bytes, source: int, config: LogConfig) -> None:
        """Seed a replica that has no log from broker `source`."""
        seeding = self._under_way[id_] = _Seeding(id_, topic_id, source, config)
        task = asyncio.get_running_loop().create_task(self._run(seeding))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self, id_: TopicPartition) -> None:
        """Give up the seeding of a replica that was removed, or has to exist now.

        If its files are just being opened, the replica is created or deleted after that.
        """
        seeding = self._under_way.get(id_)
        if seeding is not None and not seeding.is_opening:
            del self._under_way[id_]

    def cancel_topic(self, name: str) -> None:
        for id_ in [each for each in self._under_way if each.topic == name]:
            self.cancel(id_)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._peers.close()

    async def _run(self, seeding: _Seeding) -> None:
        id_ = seeding.id
        try:
            async with self._slots:
                await self._seed(seeding)
        except NotSeeded as error:
            logger.info("%s fetches all records from its leader: %s", id_, error)
        except (OSError, StorageError, KafkaError) as error:
            logger.warning("%s could not be seeded, and fetches all records: %s", id_, error)
        finally:
            if self._under_way.get(id_) is seeding:
                del self._under_way[id_]
        self._on_end(id_, seeding.topic_id)

    async def _seed(self, seeding: _Seeding) -> None:
        if not self._may_answer(seeding.source):
            raise NotSeeded(f"broker {seeding.source} has not answered before")
        self._ensure_wanted(seeding)
        logs = self._logs()
        staging = await asyncio.to_thread(logs.prepare_staging(seeding.id))
        try:
            seed = await self._ask(seeding, staging)
            self._ensure_wanted(seeding)
            seeding.is_opening = True
            log = await asyncio.to_thread(
                logs.open_seeded, seeding.id, seeding.topic_id, seeding.config, staging, seed
            )
        except (NotSeeded, OSError, StorageError, KafkaError):
            logs.discard_seeded(seeding.id, staging)
            self._on_discarded()
            raise
        logs.add_seeded(seeding.id, seeding.topic_id, log)
        logger.info("%s is seeded from broker %d with offsets %d to %d", seeding.id, seeding.source, *seed)

    def _ensure_wanted(self, seeding: _Seeding) -> None:
        if self._under_way.get(seeding.id) is not seeding:
            raise NotSeeded("the replica was removed, or has another role by now")

    async def _ask(self, seeding: _Seeding, staging: Path) -> Seed:
        """Return what the source has linked; NotSeeded if it refuses, does not answer, or has nothing."""
        request = SeedReplicaRequest(
            broker_id=self._broker_id,
            topic_name=seeding.id.topic,
            topic_id=seeding.topic_id,
            partition_index=seeding.id.partition,
            staging_directory=str(staging),
        )
        try:
            answer: SeedReplicaResponse = await self._peers.ask(
                seeding.source, request, _VERSIONS, timeout_s=_TIMEOUT_S
            )
        except PeerGone as error:  # gone, or of a version without this API
            self._silent[seeding.source] = self._image.broker_epochs.get(seeding.source, -1)
            raise NotSeeded(f"broker {seeding.source}: {error}") from error
        if answer.error_code != ErrorCode.NONE:
            raise NotSeeded(
                f"broker {seeding.source}: {answer.error_message} ({ErrorCode(answer.error_code).name})"
            )
        seed = Seed(answer.log_start_offset, answer.end_offset)
        if seed.is_empty:
            raise NotSeeded(f"broker {seeding.source} has no closed segment below the high watermark")
        return seed


async def _refuse(request: Message, version: int) -> Any:
    raise AssertionError(f"a broker does not seed from itself: {request!r} v{version}")
