"""The schema registry's state, read from `_schemas` on demand.

Brokers that lead topics with schema validation need it, and the leader of `_schemas`, which copies the
schemas to ZooKeeper. The broker fetches committed records like a consumer, from the leader of the topic.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

from headrace.broker.errors import TimedOut
from headrace.broker.image import ClusterImage
from headrace.broker.peers.peer import Peer
from headrace.broker.schemas.names import SchemaNames
from headrace.protocol.batch import BatchHeader, read_header
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.message import Message
from headrace.protocol.records import keys_and_values
from headrace.protocol.schema.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from headrace.protocol.schema.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from headrace.registry.schema_ids import SchemaRef
from headrace.registry.validation import RegisteredSchema
from headrace.replication.controller.channel import PeerGone
from headrace.storage.append.inspection import MAX_INSPECTED_BYTES, MAX_RECORDS, is_quick

if TYPE_CHECKING:
    from headrace.registry.records import Record
    from headrace.registry.state import State

SCHEMAS_TOPIC: Final = "_schemas"
_FETCH_VERSIONS: Final = range(11, 13)  # v12 is the last with topic names
_SLICE_BYTES: Final = 1024 * 1024
_LIST_VERSIONS: Final = range(4, 8)  # of ListOffsets
EARLIEST: Final = -2
_TIMEOUT_S: Final = 5.0
_RETRY_S: Final = 1.0  # after a failure
_STEP: Final = 50  # records, before other requests are served
_REMEMBERED: Final = 10_000  # subjects

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)


class RunInThread(Protocol):
    """Runs a function that reads records of clients in a thread."""

    async def __call__(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T: ...


class SchemaView:
    """The registry's state; `catch_up` reads all records that were committed when it was called."""

    def __init__(
        self,
        broker_id: int,
        image: ClusterImage,
        run: RunInThread,
        *,
        handle_locally: Callable[[Message, int], Awaitable[Any]],
        connect_to: Callable[[int], Awaitable[Peer]],
    ) -> None:
        self._broker_id = broker_id
        self._image = image
        self._run = run
        self._handle_locally = handle_locally
        self._connect_to = connect_to
        self._state: State | None = None
        self._topic_id = b""
        self._lock = asyncio.Lock()
        self._refs: dict[str, frozenset[SchemaRef]] = {}  # a cache by subject, cleared by every change
        self.names = SchemaNames()
        self._begun = self._done = 0  # the number of reads, and the number of the last successful one
        self._failure: KafkaError | None = None
        self._failed_until = 0.0
        self._peer: Peer | None = None
        self._peer_id = -1
        self.position = 0

    @property
    def state(self) -> "State":
        assert self._state is not None, "the topic has not been read yet"
        return self._state

    def refs(self, subject: str) -> frozenset[SchemaRef]:
        """Return the ids and fingerprints of the subject's schemas, as of the last read."""
        if self._state is None:
            return frozenset()
        found = self._refs.get(subject)
        if found is None:
            from headrace.registry.record_names import refs_of  # noqa: PLC0415  loaded with the state

            found = refs_of(self._state, subject)
            if len(self._refs) < _REMEMBERED:
                self._refs[subject] = found
        return found

    async def look_up(self, refs: Collection[SchemaRef]) -> Mapping[SchemaRef, RegisteredSchema]:
        """Return the subjects and record names of each schema, as of the last read."""
        return await self.names.look_up(self._state, refs)

    async def catch_up(self) -> None:
        """Read all committed records; raise TimedOut, which is retriable, if that takes too long.

        A call that waited while another call read everything does not read again. For _RETRY_S after a
        failure, all calls fail with it.
        """
        begun_before = self._begun
        async with self._lock:
            if self._done > begun_before:
                return
            if self._failure is not None and asyncio.get_running_loop().time() < self._failed_until:
                raise self._failure
            self._begun += 1
            this = self._begun
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    await self._read()
            except (TimeoutError, PeerGone) as error:
                self._failure = TimedOut(
                    f"cannot read {SCHEMAS_TOPIC}: {error or 'timeout'} (REQUEST_TIMED_OUT)"
                )
                self._failed_until = asyncio.get_running_loop().time() + _RETRY_S
                raise self._failure from error
            self._done = this

    async def _read(self) -> None:
        topic = self._image.topics.get(SCHEMAS_TOPIC)
        if topic is None:
            self._begin(b"", await _new_state())
            return
        leader = topic.states[0].leader
        if self._state is None or topic.topic_id != self._topic_id:
            self._begin(topic.topic_id, await _new_state())
        while True:
            answer = await self._fetch(leader)
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:  # truncated, or deleted by retention
                self._begin(topic.topic_id, await _new_state(), await self._earliest(leader))
                continue
            if answer.error_code:
                raise PeerGone(ErrorCode(answer.error_code).name)
            began_at = self.position
            await self._apply(bytes(answer.records or b""))
            if self.position == began_at:  # compaction leaves gaps, also before the high watermark
                self.position = answer.high_watermark
            if self.position >= answer.high_watermark:
                return
            await asyncio.sleep(0)

    def _begin(self, topic_id: bytes, state: "State", position: int = 0) -> None:
        self._topic_id, self._state, self.position = topic_id, state, position
        self._forget()

    def _forget(self) -> None:
        """Invalidate the caches, because the state has changed."""
        self._refs.clear()
        self.names.forget()

    async def _apply(self, data: bytes) -> None:
        view, at = memoryview(data), 0
        while at < len(view):
            header = read_header(view, at)
            batch = view[at : at + header.size]
            if is_quick(batch):
                records = _decoded(batch, header)
            else:
                records = await self._run(_decoded, batch, header)
            for number, record in enumerate(records, start=1):
                self.state.apply(record)
                if number % _STEP == 0:
                    await asyncio.sleep(0)
            self.position = header.next_offset
            at += header.size
        if at:
            self._forget()

    async def _fetch(self, leader: int) -> PartitionData:
        partition = FetchPartition(
            partition=0, fetch_offset=self.position, partition_max_bytes=_SLICE_BYTES, log_start_offset=-1
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_SLICE_BYTES,
            session_id=0,
            session_epoch=-1,
            topics=[FetchTopic(topic=SCHEMAS_TOPIC, partitions=[partition])],
            forgotten_topics_data=(),
            rack_id="",
        )
        response: FetchResponse = await self._send(leader, request, _FETCH_VERSIONS)
        return response.responses[0].partitions[0]

    async def _earliest(self, leader: int) -> int:
        partition = ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=SCHEMAS_TOPIC, partitions=[partition])]
        )
        response: ListOffsetsResponse = await self._send(leader, request, _LIST_VERSIONS)
        found = response.topics[0].partitions[0]
        if found.error_code:
            raise PeerGone(ErrorCode(found.error_code).name)
        return found.offset

    async def _send(self, leader: int, request: Message, versions: range) -> Any:
        if leader == self._broker_id:
            return await self._handle_locally(request, versions[-1])
        return await (await self._connected(leader)).ask(request, versions, timeout_s=_TIMEOUT_S)

    async def _connected(self, leader: int) -> Peer:
        if self._peer is None or not self._peer.is_open or self._peer_id != leader:
            self.close()
            self._peer, self._peer_id = await self._connect_to(leader), leader
        return self._peer

    def close(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None


def _decoded(batch: memoryview, header: BatchHeader) -> "list[Record]":
    """Return the registry's records in a batch. Other records, which clients can produce, are skipped."""
    from headrace.registry.record_json import BadRecord, decode  # noqa: PLC0415  loaded on demand

    if header.records_count > MAX_RECORDS:
        logger.warning("skipping a batch of %s with %d records", SCHEMAS_TOPIC, header.records_count)
        return []
    try:
        records = list(keys_and_values(batch, header, max_bytes=MAX_INSPECTED_BYTES))
    except KafkaError as error:
        logger.warning("skipping a batch of %s: %s", SCHEMAS_TOPIC, error)
        return []
    found = []
    for key, value in records:
        try:
            found.append(decode(key, value))
        except BadRecord as error:
            logger.info("skipping a record of %s: %s", SCHEMAS_TOPIC, error)
    return found


async def _new_state() -> "State":
    """Return an empty state. Its imports take a tenth of a second, hence the thread."""

    def load() -> "State":
        import headrace.registry.record_names  # noqa: F401, PLC0415  used by SchemaNames
        from headrace.registry.state import State  # noqa: PLC0415

        return State()

    return await asyncio.to_thread(load)
