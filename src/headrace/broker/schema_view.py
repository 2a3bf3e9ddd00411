"""What `_schemas` says, as far as this broker has read it; it reads when it has to, and not before.

A broker that leads topics with a rule about schemas asks; so does the leader of `_schemas`, which tells
ZooKeeper. Records are read as a consumer reads them, from whichever broker leads the topic.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

from headrace.broker.errors import TimedOut
from headrace.broker.image import ClusterImage
from headrace.broker.peer import Peer
from headrace.broker.schema_names import SchemaNames
from headrace.controller.channel import PeerGone
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
from headrace.storage.inspection import MAX_INSPECTED_BYTES, MAX_RECORDS, is_quick

if TYPE_CHECKING:
    from headrace.registry.records import Record
    from headrace.registry.state import State

SCHEMAS_TOPIC: Final = "_schemas"
_VERSION: Final = 12  # of Fetch: the last that names topics
_SLICE_BYTES: Final = 1024 * 1024
_LIST_VERSION: Final = 5  # of ListOffsets
EARLIEST: Final = -2
_PATIENCE_S: Final = 5.0
_RETRY_S: Final = 1.0  # before what could not be read is tried again
_AT_ONCE: Final = 50  # records, before others are served
_REMEMBERED: Final = 10_000  # subjects

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)


class RunInThread(Protocol):
    """Runs a function that reads records of clients in a thread."""

    async def __call__(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T: ...


class SchemaView:
    """A registry's state, read from the topic; `catch_up` reads all that was committed when it was called."""

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
        self._refs: dict[
            str, frozenset[SchemaRef]
        ] = {}  # of subjects that were asked for, until something is new
        self.names = SchemaNames()
        self._begun = self._done = 0  # how often reading has begun; which of those was the last to succeed
        self._failure: KafkaError | None = None
        self._failed_until = 0.0
        self._peer: Peer | None = None
        self._peer_id = -1
        self.position = 0

    @property
    def state(self) -> "State":
        assert self._state is not None, "nothing has been read yet"
        return self._state

    def refs(self, subject: str) -> frozenset[SchemaRef]:
        """The ids and fingerprints of the subject's schemas, as far as has been read."""
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
        """What there is to know about each of these schemas, as far as has been read."""
        return await self.names.look_up(self._state, refs)

    async def catch_up(self) -> None:
        """Read all there is; TimedOut, which clients try again after, if that cannot be had in time.

        Who waits for another to read, which began after he asked, need not read himself; nor try again what
        has failed a moment ago.
        """
        asked = self._begun
        async with self._lock:
            if self._done > asked:
                return
            if self._failure is not None and asyncio.get_running_loop().time() < self._failed_until:
                raise self._failure
            self._begun += 1
            this = self._begun
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    await self._read()
            except (TimeoutError, PeerGone) as error:
                self._failure = TimedOut(f"the schemas cannot be looked up: {error or 'it takes too long'}")
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
            if (
                answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            ):  # it ends before what we read, or begins later
                self._begin(topic.topic_id, await _new_state(), await self._earliest(leader))
                continue
            if answer.error_code:
                raise PeerGone(ErrorCode(answer.error_code).name)
            began_at = self.position
            await self._take(bytes(answer.records or b""))
            if self.position == began_at:  # compaction leaves gaps, also before the end
                self.position = answer.high_watermark
            if self.position >= answer.high_watermark:
                return
            await asyncio.sleep(0)

    def _begin(self, topic_id: bytes, state: "State", position: int = 0) -> None:
        self._topic_id, self._state, self.position = topic_id, state, position
        self._forget()

    def _forget(self) -> None:
        """What was concluded from the state, which is another now."""
        self._refs.clear()
        self.names.forget()

    async def _take(self, data: bytes) -> None:
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
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)
            self.position = header.next_offset
            at += header.size
        if at:
            self._forget()

    async def _fetch(self, leader: int) -> PartitionData:
        wanted = FetchPartition(
            partition=0, fetch_offset=self.position, partition_max_bytes=_SLICE_BYTES, log_start_offset=-1
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_SLICE_BYTES,
            session_id=0,
            session_epoch=-1,
            topics=[FetchTopic(topic=SCHEMAS_TOPIC, partitions=[wanted])],
            forgotten_topics_data=(),
            rack_id="",
        )
        response: FetchResponse = await self._ask(leader, request, _VERSION)
        return response.responses[0].partitions[0]

    async def _earliest(self, leader: int) -> int:
        wanted = ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=SCHEMAS_TOPIC, partitions=[wanted])]
        )
        response: ListOffsetsResponse = await self._ask(leader, request, _LIST_VERSION)
        found = response.topics[0].partitions[0]
        if found.error_code:
            raise PeerGone(ErrorCode(found.error_code).name)
        return found.offset

    async def _ask(self, leader: int, request: Message, version: int) -> Any:
        if leader == self._broker_id:
            return await self._handle_locally(request, version)
        return await (await self._connected(leader)).ask(request, version, timeout_s=_PATIENCE_S)

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
    """The registry's records in a batch. Clients can write to the topic: other records are skipped."""
    from headrace.registry.record_json import BadRecord, decode  # noqa: PLC0415  few brokers need it

    if header.records_count > MAX_RECORDS:
        logger.warning("a batch of %s with %d records is passed over", SCHEMAS_TOPIC, header.records_count)
        return []
    try:
        records = list(keys_and_values(batch, header, max_bytes=MAX_INSPECTED_BYTES))
    except KafkaError as error:
        logger.warning("a batch of %s is passed over: %s", SCHEMAS_TOPIC, error)
        return []
    found = []
    for key, value in records:
        try:
            found.append(decode(key, value))
        except BadRecord as error:
            logger.info("a record of %s is passed over: %s", SCHEMAS_TOPIC, error)
    return found


async def _new_state() -> "State":
    """An empty one, in a thread: what it is made of takes a tenth of a second to import."""

    def load() -> "State":
        import headrace.registry.record_names  # noqa: F401, PLC0415  which looks up in it
        from headrace.registry.state import State  # noqa: PLC0415

        return State()

    return await asyncio.to_thread(load)
