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
from headrace.spark.cluster import Cluster, spark_errors
from headrace.spark.errors import RECREATED, RETENTION, DataLoss, Remedy, SparkError
from headrace.spark.offsets import Range
from headrace.spark.options import FETCH_BYTES, FETCH_WAIT_MS, POLL_TIMEOUT_S
from headrace.spark.position import show_topic_id

_STALE_S: Final = 3.0  # how long another topic id, or none, may be due to a broker's stale metadata

logger = logging.getLogger(__name__)


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
        cluster: Cluster,
        wanted: Range,
        *,
        topic_id: str | None = None,
        read_committed: bool = False,
        fail_on_data_loss: bool = True,
        max_bytes: int = FETCH_BYTES,
        max_wait_ms: int = FETCH_WAIT_MS,
        timeout_s: float = POLL_TIMEOUT_S,
        rack: str = "",
    ) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._topic_id = topic_id
        self._other_id_since_s: float | None = None
        self._no_topic_since_s: float | None = None
        self._read_committed = read_committed
        self._fail_on_data_loss = fail_on_data_loss
        self._max_bytes = max_bytes
        self._max_wait_ms = max_wait_ms
        self._timeout_s = timeout_s
        self._rack = rack
        self._replica: Address | None = None  # in our rack, if the leader has named one
        self._connection: Connection | None = None
        self._asked: InFlight | None = None
        self._offset = wanted.first
        self._aborted: dict[int, list[int]] = {}  # by producer: the first offsets of aborted transactions
        self._aborting: set[int] = set()  # producers whose aborted transaction has begun
        self._known_aborted: set[tuple[int, int]] = set()

    def __iter__(self) -> Iterator[Batch]:
        try:
            for piece in self._pieces():
                yield from self._batches(piece)
        finally:
            self._close()

    # -- pieces --------------------------------------------------------------------------------

    def _pieces(self) -> Iterator[_Piece]:
        last, backoff = self._wanted.last, Backoff(self._timeout_s)
        while self._offset < last:
            try:
                piece = self._receive(self._ask())
            except _AnotherTopic as error:
                self._lose(str(error), RECREATED)
                return
            except _NoTopic as error:
                self._lose(str(error))
                return
            except Unreachable as error:
                self._disconnect(error)
                if not backoff.rest():
                    raise SparkError(f"{self._wanted}: {error} (for {self._timeout_s:g} s)") from error
                continue
            if piece.next_offset == self._offset:
                if backoff.left_s < 0:
                    self._offset = self._skip_missing()
                continue
            self._offset = piece.next_offset
            if self._offset < last:
                self._ask_ahead()
            yield piece
            backoff = Backoff(self._timeout_s)  # the consumer of the pieces may have taken its time

    def _ask_ahead(self) -> None:
        """Send the next request while this piece is processed; a failure does not concern this piece."""
        try:
            self._asked = self._ask()
        except Unreachable as error:
            self._disconnect(error)

    def _disconnect(self, error: Exception) -> None:
        """Close the connection, and look for the leader again before the next request."""
        logger.info("%s: retrying at offset %d: %s", self._wanted.partition, self._offset, error)
        self._close()
        if self._replica is not None:
            self._replica, self._rack = None, ""
        self._cluster.forget_leader(self._wanted.partition)

    def _ask(self) -> InFlight:
        """Return the request that is in flight already, or send the next one."""
        if self._asked is not None:
            asked, self._asked = self._asked, None
            return asked
        partition = self._wanted.partition
        if self._connection is None:
            leader = self._leader()
            self._check_topic_id()
            self._connection = self._cluster.connect(self._replica or leader)
        request = fetch_request(
            partition,
            self._offset,
            topic_id=self._cluster.topic_id(partition.topic),
            max_bytes=self._max_bytes,
            max_wait_ms=self._max_wait_ms,
            read_committed=self._read_committed,
            rack=self._rack,
        )
        return self._connection.send(request, self._connection.version(request))

    def _leader(self) -> Address:
        """Return the leader's address; Retriable without one; _NoTopic after _STALE_S without the topic."""
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
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return self._skip_deleted()
        self._raise_for(answer.error_code)
        self._follow(answer.preferred_read_replica)
        records = memoryview(answer.records or b"")
        end = _next_offset(records)
        return _Piece(records, answer.aborted_transactions or (), max(end, self._offset))

    def _follow(self, preferred: int) -> None:
        """Send the next request to the replica that the leader has named, if any."""
        replica = self._cluster.address(preferred) if self._rack and preferred >= 0 else None
        if replica is not None:
            self._close()
            self._replica = replica

    def _raise_for(self, code: int) -> None:
        with spark_errors():
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
        self._lose(what)
        return _Piece(memoryview(b""), (), min(earliest, self._wanted.last))

    def _skip_missing(self) -> int:
        """Return where to continue if the log ends before the range; SparkError if it does not."""
        partition, last = self._wanted.partition, self._wanted.last
        end = self._cluster.offsets({partition: LATEST}, read_committed=self._read_committed)[partition]
        if end > self._offset:
            raise SparkError(
                f"{partition}: no records at offset {self._offset} of {last} for {self._timeout_s:g} s"
            )
        what = f"{self._wanted} are wanted, and {partition} ends at {end}: was an unclean leader elected?"
        self._lose(what)
        return last

    def _lose(self, what: str, remedy: Remedy = RETENTION) -> None:
        if self._fail_on_data_loss:
            raise DataLoss(what, remedy)
        logger.warning("%s; failOnDataLoss is false: %s", what, remedy.instead)

    def _close(self) -> None:
        self._asked = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- batches -------------------------------------------------------------------------------

    def _batches(self, piece: _Piece) -> Iterator[Batch]:
        self._note_aborted(piece.aborted)
        first, last = self._wanted.first, self._wanted.last
        for data in whole_batches(piece.records):
            offset, _ = read_offset_and_size(data, 0)
            if offset >= last:
                break
            try:
                header = read_batch(data)
            except CorruptMessage as error:
                why = f"{self._wanted.partition}: the batch at offset {offset}: {error}"
                raise SparkError(why) from error
            if header.last_offset >= first and not self._is_hidden(data, header):
                yield Batch(data, header)

    def _note_aborted(self, aborted: Sequence[Any]) -> None:
        for each in aborted:
            known = (each.producer_id, each.first_offset)
            if known not in self._known_aborted:
                self._known_aborted.add(known)
                self._aborted.setdefault(each.producer_id, []).append(each.first_offset)

    def _is_hidden(self, data: Buffer, header: BatchHeader) -> bool:
        """Whether readers must not see the batch: it has control records, or its transaction was aborted."""
        producer = header.producer_id
        if self._read_committed and header.has_producer:
            begins = self._aborted.get(producer, [])
            if begins and min(begins) <= header.last_offset:
                begins.remove(min(begins))
                self._aborting.add(producer)
        if header.is_control:
            if producer in self._aborting and _is_abort(data, header):
                self._aborting.discard(producer)
            return True
        return header.is_transactional and producer in self._aborting


def _next_offset(records: memoryview) -> int:
    """Return the offset after the last complete batch; -1 if there is none."""
    try:
        last = deque(whole_batches(records), maxlen=1)
    except ValueError as error:
        raise SparkError(str(error)) from error
    return read_header(last[0]).next_offset if last else -1


def _is_abort(data: Buffer, header: BatchHeader) -> bool:
    for key, _ in keys_and_values(data, header):
        return key is not None and decode_control_key(key) is ControlRecordType.ABORT
    return False
