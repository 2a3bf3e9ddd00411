"""Fetches of a range of one partition: record batches from its leader, which may change meanwhile.

The next request is in flight while one response is turned into columns. The checksums of batches are checked;
aborted transactions and control records are skipped. With a rack, the leader may name a replica in that rack
(KIP-392), from which the range is read then; if that replica fails or lags behind, the rest is read from the
leader.
"""

import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from headrace.client.errors import Retriable, Unreachable, raise_for
from headrace.client.wire.connection import Address, Connection, InFlight
from headrace.client.wire.requests import EARLIEST, LATEST, fetch_request, whole_batches
from headrace.client.wire.retry import Backoff
from headrace.protocol.batch import BatchHeader, read_batch, read_header, read_offset_and_size
from headrace.protocol.control_records import ControlRecordType, decode_control_key
from headrace.protocol.errors import CorruptMessage, ErrorCode
from headrace.protocol.fields import Buffer
from headrace.protocol.records import keys_and_values
from headrace.tables.reader.cluster import ClusterConnections
from headrace.tables.reader.errors import Loss, OnLoss, ReadError, fail_on_loss
from headrace.tables.reader.offsets import Range
from headrace.tables.reader.topic_ids import parse_topic_id, show_topic_id

FETCH_BYTES: Final = 4 * 1024 * 1024  # of one Fetch request
FETCH_WAIT_MS: Final = 500
POLL_TIMEOUT_S: Final = 60.0  # for records that a broker does not send

FIRST_VERSION_WITH_IDS: Final = 13  # of Fetch; older ones have names, and do not notice a recreated topic
_RECORD_BYTES: Final = 1024  # expected of a record, until some are there
_SMALLEST_PIECE_BYTES: Final = 64 * 1024
_STALE_S: Final = 3.0  # how long another topic id, or none, may be due to a broker's stale metadata

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    """How ranges are fetched."""

    read_committed: bool = False
    max_bytes: int = FETCH_BYTES
    max_wait_ms: int = FETCH_WAIT_MS
    timeout_s: float = POLL_TIMEOUT_S
    rack: str = ""
    on_loss: OnLoss = fail_on_loss


class Batch(NamedTuple):
    """A record batch with a valid checksum, and its header."""

    data: memoryview
    header: BatchHeader


class _AnotherTopic(Exception):
    """The topic was deleted and recreated."""


class _NoTopic(Exception):
    """The topic was deleted."""


class _Piece(NamedTuple):
    records: memoryview
    aborted: Sequence[Any]
    next_offset: int


class Fetcher:
    """Iterates over the batches of a range, in order; the first and the last may reach beyond it."""

    def __init__(
        self,
        cluster: ClusterConnections,
        wanted: Range,
        *,
        topic_id: str | None = None,
        leader: Address | None = None,
        answer: Any = None,
        options: FetchOptions = FetchOptions(),  # noqa: B008  it is frozen
    ) -> None:
        """`leader` is who led the partition when the batch was planned, if that is known.

        `answer` is the first answer of that leader for the partition, if there is one already.
        """
        self._cluster = cluster
        self._wanted = wanted
        self.readable = wanted  # without records that were deleted
        self._topic_id = topic_id
        self._leader = leader
        self._answer = answer
        self._other_id_since_s: float | None = None
        self._no_topic_since_s: float | None = None
        self._options = options
        self._rack = options.rack
        self._replica: Address | None = None  # in our rack, if the leader has named one
        self._connection: Connection | None = None
        self._asked: InFlight | None = None
        self._offset = wanted.first
        self._record_bytes = float(_RECORD_BYTES)
        self._aborted: dict[int, list[int]] = {}  # by producer: the first offsets of aborted transactions
        self._aborting: set[int] = set()  # producers whose aborted transaction has begun
        self._known_aborted: set[tuple[int, int]] = set()

    def __iter__(self) -> Iterator[Batch]:
        try:
            for piece in self._pieces():
                yield from self._batches(piece)
            # Leave the connection to the next task, unless a response is still to come.
            if self._connection is not None and self._asked is None:
                self._cluster.release(self._connection)
                self._connection = None
        finally:
            self._close()

    # -- pieces --------------------------------------------------------------------------------

    def _pieces(self) -> Iterator[_Piece]:
        last, backoff = self._wanted.last, Backoff(self._options.timeout_s)
        while self._offset < last:
            try:
                piece = self._next_piece()
            except _AnotherTopic as error:
                self._options.on_loss(str(error), Loss.RECREATED)
                return
            except _NoTopic as error:
                self._options.on_loss(str(error), Loss.DELETED)
                return
            except Unreachable as error:
                self._disconnect(error)
                if not backoff.rest():
                    raise ReadError(f"{self._wanted}: {error} (for {self._options.timeout_s:g} s)") from error
                continue
            if piece.next_offset == self._offset:
                if backoff.left_s < 0:
                    self._offset = self._skip_missing()
                continue
            self._record_bytes = len(piece.records) / (piece.next_offset - self._offset)
            self._offset = piece.next_offset
            if self._offset < last:
                try:  # the next request is in flight while this piece is processed
                    self._asked = self._ask()
                except Unreachable as error:  # which does not concern this piece
                    self._disconnect(error)
            yield piece
            backoff = Backoff(self._options.timeout_s)  # the consumer of the pieces may have taken its time

    def _next_piece(self) -> _Piece:
        if self._answer is not None:
            answer, self._answer = self._answer, None
            return self._piece(answer)
        return self._receive(self._ask())

    def _disconnect(self, error: Exception) -> None:
        """Close the connection, and look for the leader again before the next request."""
        logger.info("%s: retrying at offset %d: %s", self._wanted.partition, self._offset, error)
        self._close()
        if self._replica is not None:
            self._replica, self._rack = None, ""
        self._leader = None
        self._cluster.forget_leader(self._wanted.partition)

    def _ask(self) -> InFlight:
        """Return the request that is in flight already, or send the next one."""
        if self._asked is not None:
            asked, self._asked = self._asked, None
            return asked
        partition, connection = self._wanted.partition, self._connection or self._connect()
        topic_id = (
            parse_topic_id(self._topic_id) if self._topic_id else self._cluster.topic_id(partition.topic)
        )
        request = fetch_request(
            partition,
            self._offset,
            topic_id=topic_id,
            max_bytes=bytes_of(
                self._wanted.last - self._offset, self._record_bytes, most=self._options.max_bytes
            ),
            max_wait_ms=self._options.max_wait_ms,
            read_committed=self._options.read_committed,
            rack=self._rack,
        )
        return connection.send(request, connection.version(request))

    def _connect(self) -> Connection:
        """Connect to the replica in our rack or to the leader: the planned one, after a failure another."""
        if self._replica is not None:
            self._connection = self._cluster.connect(self._replica)
            return self._connection
        partition, planned = self._wanted.partition, self._leader
        leader = self._find_leader() if planned is None else planned
        connection = self._connection = self._cluster.connect(leader)
        # Older requests name topics, so that one to a recreated topic would succeed.
        probe = fetch_request(partition, 0, topic_id=bytes(16), max_bytes=0)
        has_names = self._topic_id is not None and connection.version(probe) < FIRST_VERSION_WITH_IDS
        if planned is not None and has_names:
            self._cluster.forget_leader(partition)
            self._cluster.leader(partition)  # this brings the topic's id, too
            self._check_topic_id()
        elif planned is None:
            self._check_topic_id()
        return connection

    def _find_leader(self) -> Address:
        """Return the leader; Retriable without one, and _NoTopic after _STALE_S without the topic."""
        topic = self._wanted.partition.topic
        try:
            return self._cluster.leader(self._wanted.partition)
        except Retriable:
            if self._cluster.topics([topic]):
                self._no_topic_since_s = None
                raise
            now_s = time.monotonic()
            if self._no_topic_since_s is None:
                self._no_topic_since_s = now_s
            if now_s - self._no_topic_since_s < _STALE_S:
                raise
        raise _NoTopic(f"{self._wanted} are wanted, and topic {topic} does not exist any more")

    def _receive(self, asked: InFlight) -> _Piece:
        assert self._connection is not None, asked
        response = self._connection.receive(asked)
        self._raise_for(response.error_code)
        answer = response.responses[0].partitions[0]
        if self._replica is not None and (answer.error_code or not answer.records):
            raise Retriable(f"the replica at {self._replica} has nothing at this offset: back to the leader")
        return self._piece(answer)

    def _piece(self, answer: Any) -> _Piece:
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return self._skip_deleted()
        self._raise_for(answer.error_code)
        self._follow(answer.preferred_read_replica)
        records = memoryview(answer.records or b"")
        end = _next_offset(records)
        return _Piece(records, answer.aborted_transactions or (), max(end, self._offset))

    def _follow(self, preferred: int) -> None:
        """Send the next request to the replica that the leader has named, if any."""
        if not self._rack or preferred < 0:
            return
        if self._cluster.address(preferred) is None:  # the planned leader was asked without metadata
            self._cluster.topics([self._wanted.partition.topic])
        replica = self._cluster.address(preferred)
        if replica is not None:
            self._close()
            self._replica = replica

    def _raise_for(self, code: int) -> None:
        raise_for(code, None, str(self._wanted.partition))

    def _check_topic_id(self) -> None:
        """Raise Retriable, and after _STALE_S _AnotherTopic, if the name belongs to another topic now."""
        topic = self._wanted.partition.topic
        found = show_topic_id(self._cluster.topic_id(topic))
        if self._topic_id is None or found is None or found == self._topic_id:
            self._other_id_since_s = None
            return
        what = (
            f"{self._wanted} are wanted of the topic with id {self._topic_id}, and {topic} has id {found} now"
        )
        now_s = time.monotonic()
        if self._other_id_since_s is None:
            self._other_id_since_s = now_s
        if now_s - self._other_id_since_s < _STALE_S:
            raise Retriable(what)
        raise _AnotherTopic(f"{what}: the topic was deleted and recreated")

    def _skip_deleted(self) -> _Piece:
        """Return an empty piece that ends where the log begins: retention has deleted the records before."""
        partition = self._wanted.partition
        earliest = self._cluster.offsets({partition: EARLIEST})[partition]
        what = f"{self._wanted} are wanted, and {partition} begins at {earliest} by now"
        if earliest <= self._offset:
            what = f"{self._wanted} are wanted, and {partition} ends before that: it is another topic by now"
            earliest = self._wanted.last
        self._options.on_loss(what, Loss.DELETED)
        # The first batch of the log may begin with deleted records.
        self.readable = self.readable._replace(first=min(earliest, self._wanted.last))
        return _Piece(memoryview(b""), (), self.readable.first)

    def _skip_missing(self) -> int:
        """Return where to continue if the log ends before the range; ReadError if it does not."""
        partition, last = self._wanted.partition, self._wanted.last
        end = self._cluster.offsets({partition: LATEST}, read_committed=self._options.read_committed)[
            partition
        ]
        if end > self._offset:
            raise ReadError(
                f"{partition}: no records at offset {self._offset} of {last} in {self._options.timeout_s:g} s"
            )
        what = f"{self._wanted} are wanted, and {partition} ends at {end}: was an unclean leader elected?"
        self._options.on_loss(what, Loss.DELETED)
        return last

    def _close(self) -> None:
        self._asked = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- batches -------------------------------------------------------------------------------

    def _batches(self, piece: _Piece) -> Iterator[Batch]:
        for each in piece.aborted:
            known = (each.producer_id, each.first_offset)
            if known not in self._known_aborted:
                self._known_aborted.add(known)
                self._aborted.setdefault(each.producer_id, []).append(each.first_offset)
        first, last = self.readable.first, self.readable.last
        for data in whole_batches(piece.records):
            offset, _ = read_offset_and_size(data, 0)
            if offset >= last:
                break
            try:
                header = read_batch(data)
            except CorruptMessage as error:
                why = f"{self._wanted.partition}: the batch at offset {offset}: {error}"
                raise ReadError(why) from error
            if header.last_offset >= first and not self._is_hidden(data, header):
                yield Batch(data, header)

    def _is_hidden(self, data: Buffer, header: BatchHeader) -> bool:
        """Whether readers must not see the batch: it has control records, or its transaction was aborted."""
        producer = header.producer_id
        if self._options.read_committed and header.has_producer:
            begins = self._aborted.get(producer, [])
            if begins and min(begins) <= header.last_offset:
                begins.remove(min(begins))
                self._aborting.add(producer)
        if header.is_control:
            key, _ = next(iter(keys_and_values(data, header)), (None, None))
            if key is not None and decode_control_key(key) is ControlRecordType.ABORT:
                self._aborting.discard(producer)
            return True
        return header.is_transactional and producer in self._aborting


def bytes_of(records: int, record_bytes: float = _RECORD_BYTES, *, most: int = FETCH_BYTES) -> int:
    """Return how much to request if so many records are wanted: not a whole piece for a few of them."""
    return int(min(most, max(_SMALLEST_PIECE_BYTES, records * record_bytes)))


def _next_offset(records: memoryview) -> int:
    """Return the offset after the last complete batch; -1 if there is none."""
    try:
        last = deque(whole_batches(records), maxlen=1)
    except ValueError as error:
        raise ReadError(str(error)) from error
    return read_header(last[0]).next_offset if last else -1
