"""The schema registry's state, read from `_schemas` on demand.

Brokers that lead topics with schema validation need it, and the leader of `_schemas`, which copies the
schemas to ZooKeeper. The broker fetches committed records like a consumer, from the leader of the topic.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final, ParamSpec, Protocol, TypeVar

from headrace.broker.errors import TimedOut
from headrace.broker.image import ClusterImage
from headrace.broker.peers.peer import PeerPool
from headrace.protocol.batch import read_header
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema import fetch, list_offsets
from headrace.registry.schema_ids import SchemaRef
from headrace.registry.validation import UNREGISTERED, RegisteredSchema
from headrace.storage.append.inspection import MAX_INSPECTED_BYTES, is_quick

if TYPE_CHECKING:
    from headrace.registry.reader import SchemasReader
    from headrace.registry.record_names import RecordNames
    from headrace.registry.state import RegistryState

SCHEMAS_TOPIC: Final = "_schemas"
_FETCH_VERSIONS: Final = range(11, 13)  # v12 is the last with topic names
_SLICE_BYTES: Final = 1024 * 1024
_LIST_VERSIONS: Final = range(4, 8)  # of ListOffsets
EARLIEST: Final = -2
_TIMEOUT_S: Final = 5.0
_RETRY_S: Final = 1.0  # after a failure
_STEP: Final = 50  # records, before other requests are served
REMEMBERED: Final = 10_000  # schemas, and subjects
MOST_NAMES: Final = 100_000  # of all schemas
_LOOKED_UP_TOGETHER: Final = 500  # schemas, before other requests are served

P = ParamSpec("P")
T = TypeVar("T")


class RunInThread(Protocol):
    """Runs a function that reads records of clients in a thread."""

    async def __call__(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T: ...


class SchemaNames:
    """A cache of schemas and the names of their record types, filled when a record refers to a schema.

    Parsing a schema takes a thread and, for Protobuf, twenty milliseconds. The names are cached until a
    schema is deleted permanently; the subjects of a schema, until the registry changes. Ids are those of the
    default context.
    """

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self.schemas: dict[SchemaRef, RegisteredSchema] = {}  # registered ones that were looked up
        self._changes = 0  # how often the registry has changed
        self._names: dict[SchemaRef, RecordNames | str] = {}
        self._count = 0  # the number of cached names
        self._source: tuple[RegistryState | None, int] = (None, 0)  # the state, and its permanent deletions

    def forget(self) -> None:
        """Invalidate the subjects of all schemas, because the registry has changed."""
        self._changes += 1
        self.schemas.clear()

    async def look_up(
        self, state: "RegistryState | None", refs: Iterable[SchemaRef]
    ) -> Mapping[SchemaRef, RegisteredSchema]:
        """Return every schema in `refs`, UNREGISTERED for those that do not exist."""
        changes = self._changes
        found: dict[SchemaRef, RegisteredSchema] = {}
        for number, ref in enumerate(refs):
            if not number % _LOOKED_UP_TOGETHER:
                await asyncio.sleep(0)
            found[ref] = await self._look_up_one(state, ref)
        if changes == self._changes:
            registered = {ref: each for ref, each in found.items() if each.subjects}
            if len(self.schemas) + len(registered) > self._most:
                self.schemas.clear()
            self.schemas.update(islice(registered.items(), self._most))
        return found

    async def _look_up_one(self, state: "RegistryState | None", ref: SchemaRef) -> RegisteredSchema:
        from headrace.registry.record_names import live_versions, names_of, referenced  # noqa: PLC0415  loaded on demand

        live = [] if state is None else live_versions(state, ref)
        if state is None or not live:
            return UNREGISTERED
        source = (state, state.permanent_deletions)
        if self._source != source:
            self._clear_names()
            self._source = source
        names = self._names.get(ref)
        if names is None:
            names = await asyncio.to_thread(names_of, live[0], referenced(state, live[0]))
            if self._source == source == (state, state.permanent_deletions):
                self._remember(ref, names)
        return RegisteredSchema(frozenset(each.subject for each in live), names)

    def _clear_names(self) -> None:
        self._names.clear()
        self._count = 0

    def _remember(self, ref: SchemaRef, names: "RecordNames | str") -> None:
        size = 1 if isinstance(names, str) else 1 + len(names.names)
        if len(self._names) >= self._most or self._count + size > MOST_NAMES:
            self._clear_names()
        self._names[ref] = names
        self._count += size


class SchemaView:
    """The registry's state; `catch_up` reads all records that were committed when it was called."""

    def __init__(self, image: ClusterImage, run: RunInThread, peers: PeerPool) -> None:
        self._image = image
        self._run = run
        self._peers = peers
        self._reader: SchemasReader | None = None
        self._lock = asyncio.Lock()
        self._refs: dict[str, frozenset[SchemaRef]] = {}  # a cache by subject, cleared by every change
        self.names = SchemaNames()
        self._begun = self._done = 0  # the number of reads, and the number of the last successful one
        self._failure: KafkaError | None = None
        self._failed_until = 0.0

    @property
    def state(self) -> "RegistryState":
        assert self._reader is not None, "the topic has not been read yet"
        return self._reader.state

    @property
    def position(self) -> int:
        """The offset up to which the topic has been read."""
        return 0 if self._reader is None else self._reader.position

    def refs(self, subject: str) -> frozenset[SchemaRef]:
        """Return the ids and fingerprints of the subject's schemas, as of the last read."""
        if self._reader is None:
            return frozenset()
        refs = self._refs.get(subject)
        if refs is None:
            from headrace.registry.record_names import refs_of  # noqa: PLC0415  loaded with the state

            refs = refs_of(self._reader.state, subject)
            if len(self._refs) < REMEMBERED:
                self._refs[subject] = refs
        return refs

    async def look_up(self, refs: Collection[SchemaRef]) -> Mapping[SchemaRef, RegisteredSchema]:
        """Return the subjects and record names of each schema, as of the last read."""
        return await self.names.look_up(None if self._reader is None else self._reader.state, refs)

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
        if self._reader is None:
            # These imports take a tenth of a second, hence the thread.
            self._reader = await asyncio.to_thread(_new_reader)
        reader = self._reader
        topic = self._image.topics.get(SCHEMAS_TOPIC)
        if reader.topic_id != (None if topic is None else topic.topic_id):
            self._start_over(None if topic is None else topic.topic_id)
        if topic is None:
            return
        leader = topic.states[0].leader
        while True:
            answer = await self._fetch(leader)
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:  # truncated, or deleted by retention
                self._start_over(topic.topic_id, await self._earliest(leader))
                continue
            if answer.error_code:
                raise PeerGone(ErrorCode(answer.error_code).name)
            await self._apply(reader, bytes(answer.records or b""), answer.high_watermark)
            if reader.position >= answer.high_watermark:
                return
            await asyncio.sleep(0)

    async def _apply(self, reader: "SchemasReader", data: bytes, high_watermark: int) -> None:
        from headrace.registry.reader import read_fetched  # noqa: PLC0415  loaded on demand

        # A small, uncompressed batch is the usual case. Others may have millions of records.
        if not data or (is_quick(data) and read_header(data).size == len(data)):
            fetched = read_fetched(data)
        else:
            fetched = await self._run(read_fetched, data, MAX_INSPECTED_BYTES)
        for number, _ in enumerate(reader.apply(fetched, high_watermark), start=1):
            if number % _STEP == 0:
                await asyncio.sleep(0)
        if data:
            self._forget()

    def _start_over(self, topic_id: bytes | None, position: int = 0) -> None:
        assert self._reader is not None
        self._reader.start_over(topic_id, position)
        self._forget()

    def _forget(self) -> None:
        """Invalidate the caches, because the state has changed."""
        self._refs.clear()
        self.names.forget()

    async def _fetch(self, leader: int) -> fetch.PartitionData:
        partition = fetch.FetchPartition(
            partition=0, fetch_offset=self.position, partition_max_bytes=_SLICE_BYTES, log_start_offset=-1
        )
        request = fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_SLICE_BYTES,
            session_id=0,
            session_epoch=-1,
            topics=[fetch.FetchTopic(topic=SCHEMAS_TOPIC, partitions=[partition])],
            forgotten_topics_data=(),
            rack_id="",
        )
        response: fetch.FetchResponse = await self._peers.ask(
            leader, request, _FETCH_VERSIONS, timeout_s=_TIMEOUT_S
        )
        return response.responses[0].partitions[0]

    async def _earliest(self, leader: int) -> int:
        partition = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1, topics=[list_offsets.ListOffsetsTopic(name=SCHEMAS_TOPIC, partitions=[partition])]
        )
        response: list_offsets.ListOffsetsResponse = await self._peers.ask(
            leader, request, _LIST_VERSIONS, timeout_s=_TIMEOUT_S
        )
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise PeerGone(ErrorCode(answer.error_code).name)
        return answer.offset

    def close(self) -> None:
        self._peers.close()


def _new_reader() -> "SchemasReader":
    import headrace.registry.record_names  # noqa: F401, PLC0415  used by SchemaNames
    from headrace.registry.reader import SchemasReader  # noqa: PLC0415

    return SchemasReader()
