"""Logs of ours of every kind, written into a directory, and what a correct reader must find in them.

codecs                many segments, the five codecs by turns, null keys, values and headers
idempotent            three producers, one of whose sequence numbers begin again at 0
transactions          committed and aborted ones that overlap, over several segments
open-transaction      one that nobody has ended
epochs                two leaders
log-append-time       timestamps are the broker's
recovered             the process died while it wrote a batch, and started again
truncated             cut back over a segment's end, then written on by another leader
retained              the oldest segments are gone
deleted-records       starts in the middle of a segment
empty                 nothing was ever written
compacted             once: tombstones carry a delete horizon, empty batches a producer's last sequence
compacted-twice       … and a second time when the tombstones' time was over
compacted-transactions
dirty                 ready to be compacted
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from string import ascii_letters
from typing import Any, Final

from compat.kafka_tools.records import Record as ServedRecord
from compat.kafka_tools.samples import Sample, rewrites, samples
from headrace.protocol.batch import TimestampType, add_sequence
from headrace.protocol.compression import Compression
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import Record, encode_batch
from headrace.storage.compaction.cleaner import install, plan_compaction, run_compaction
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.log import NO_APPEND_TIME, Log
from headrace.storage.recovery import open_log
from headrace.storage.retention import enforce_retention
from support.clock import SettableClock
from support.records import make_marker

SMALL: Final = LogConfig(segment_bytes=8192, index_interval_bytes=1024, retention_ms=-1)
COMPACT: Final = replace(SMALL, compact=True, delete=False)
CONFIGS: Final[dict[str, LogConfig]] = {
    "codecs": SMALL,
    "large": LogConfig(retention_ms=-1),
    "idempotent": SMALL,
    "transactions": replace(SMALL, segment_bytes=2048, index_interval_bytes=256),
    "open-transaction": SMALL,
    "epochs": SMALL,
    "log-append-time": replace(SMALL, message_timestamp_type=TimestampType.LOG_APPEND_TIME),
    "recovered": SMALL,
    "truncated": SMALL,
    "retained": replace(SMALL, retention_bytes=20_000),
    "deleted-records": SMALL,
    "empty": SMALL,
    "compacted": COMPACT,
    "compacted-twice": COMPACT,
    "compacted-transactions": COMPACT,
    "dirty": COMPACT,
    "dirty-again": replace(COMPACT, delete_retention_ms=0),
}
COMPACTED: Final = ("compacted", "compacted-twice", "compacted-transactions", "dirty-again")
DIRTY: Final = ("dirty", "dirty-again")
FIRST_PRODUCER: Final = 1000  # Kafka gives its own producers small ids
MAX_SEQUENCE: Final = 2**31 - 1
TORN: Final = 100  # bytes of a batch that a crash left


class Writer:
    """Appends to one log, and remembers what a reader must find in it."""

    def __init__(self, topic: str, directory: LogDirectory, clock: SettableClock) -> None:
        self.topic = topic
        self.clock = clock
        self.records: list[ServedRecord] = []  # in the log, whatever became of their transactions
        self._directory = directory
        self._sequences: dict[int, int] = {}
        self._in_transaction: dict[int, list[ServedRecord]] = {}
        self._aborted: list[ServedRecord] = []

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)

    @property
    def log(self) -> Log:
        return self._directory.logs[self.partition]

    @log.setter
    def log(self, log: Log) -> None:
        self._directory.logs[self.partition] = log

    @property
    def committed(self) -> list[ServedRecord]:
        """The records before the first open transaction that no abort has undone."""
        unended = [record.offset for records in self._in_transaction.values() for record in records]
        end = min(unended, default=self.log.log_end_offset)
        return [record for record in self.records if record.offset < end and record not in self._aborted]

    @property
    def unended(self) -> list[int]:
        """The producers with a transaction open."""
        return list(self._in_transaction)

    def append(
        self,
        records: Iterable[Sample],
        compression: Compression = Compression.NONE,
        *,
        leader_epoch: int = 0,
        producer_id: int = -1,
        transactional: bool = False,
    ) -> None:
        batch = [Record(each.key, each.value, each.headers, each.timestamp_ms) for each in records]
        producer: dict[str, Any] = {}
        if producer_id >= 0:
            sequence = self._sequences.get(producer_id, 0)
            self._sequences[producer_id] = add_sequence(sequence, len(batch))
            producer = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        data = encode_batch(batch, compression=compression, transactional=transactional, **producer)
        appended = self.log.append(data, leader_epoch=leader_epoch)
        placed = self._placed(batch, appended.base_offset, appended.log_append_time_ms)
        self.records += placed
        if transactional:
            self._in_transaction.setdefault(producer_id, []).extend(placed)

    def start_sequence_at(self, sequence: int, producer_id: int) -> None:
        self._sequences[producer_id] = sequence

    def end_transaction(self, producer_id: int, *, commit: bool, coordinator_epoch: int = 3) -> None:
        marker = make_marker(
            producer_id, commit=commit, coordinator_epoch=coordinator_epoch, timestamp=self.clock()
        )
        self.log.append_internal(marker, leader_epoch=0)
        ended = self._in_transaction.pop(producer_id)
        self._aborted += [] if commit else ended

    def forget(self, *, before: int = 0, past: int = 2**63) -> None:
        """Records outside of [before, past) are gone from the log."""
        self.records = [record for record in self.records if before <= record.offset < past]

    def compact(self) -> None:
        """Compact all there is, and expect of each key the last record that was not aborted."""
        self.log.roll()
        end = self.log.log_end_offset
        start = self._directory.cleaner_offsets.get(self.partition, 0)
        plan = plan_compaction(self.log, first_dirty_offset=start, up_to_offset=end)
        assert plan is not None
        cleaned = install(self.log, run_compaction(plan, max_keys=10_000, stop=lambda: False))
        assert cleaned == end
        self._directory.cleaner_offsets[self.partition] = cleaned
        newest = {record.key: record.offset for record in self.committed}
        self.records = [record for record in self.committed if newest[record.key] == record.offset]

    def _placed(self, batch: Sequence[Record], base_offset: int, append_time: int) -> list[ServedRecord]:
        return [
            ServedRecord(
                topic=self.topic,
                partition=0,
                offset=offset,
                timestamp_ms=record.timestamp if append_time == NO_APPEND_TIME else append_time,
                key=record.key,
                value=record.value,
                headers=tuple(record.headers),
            )
            for offset, record in enumerate(batch, start=base_offset)
        ]


def write_logs(directory: LogDirectory, clock: SettableClock) -> dict[str, Writer]:
    """Write into the logs of all topics, which exist and are empty."""
    writers = {topic: Writer(topic, directory, clock) for topic in CONFIGS}
    for topic, write in SCENARIOS.items():
        write(writers[topic])
    for writer in writers.values():
        directory.high_watermarks[writer.partition] = writer.log.log_end_offset
    return writers


def in_batches(records: Sequence[Sample], size: int) -> list[Sequence[Sample]]:
    return [records[start : start + size] for start in range(0, len(records), size)]


def codec(number: int) -> Compression:
    return Compression(number % len(Compression))


def _codecs(writer: Writer) -> None:
    for number, batch in enumerate(in_batches(samples(200, size=400), 4)):
        writer.append(batch, codec(number))


def _large(writer: Writer) -> None:
    """More than one block of every codec's framing."""
    letters = random.Random(7)
    for compression in Compression:
        noise = [
            Sample(
                key=b"noise",
                value="".join(letters.choices(ascii_letters, k=2500)).encode(),
                timestamp_ms=writer.clock(),
            )
            for _ in range(60)
        ]
        writer.append(noise, compression)


def _idempotent(writer: Writer) -> None:
    first, second, third = range(FIRST_PRODUCER, FIRST_PRODUCER + 3)
    writer.start_sequence_at(MAX_SEQUENCE - 6, third)
    for number, batch in enumerate(in_batches(samples(120, size=300), 5)):
        writer.append(batch, codec(number), producer_id=(first, second, third)[number % 3])


def _transactions(writer: Writer) -> None:
    first, second = FIRST_PRODUCER, FIRST_PRODUCER + 1
    for number in range(6):
        for batch in in_batches(samples(6), 3):
            writer.append(batch, codec(number), producer_id=first, transactional=True)
            writer.append(batch, codec(number), producer_id=second, transactional=True)
        writer.append(samples(2))
        writer.end_transaction(first, commit=number % 2 == 0)
        writer.append(samples(4), producer_id=second, transactional=True)
        writer.end_transaction(second, commit=number % 3 == 0)


def _open_transaction(writer: Writer) -> None:
    writer.append(samples(3), producer_id=FIRST_PRODUCER, transactional=True)
    writer.end_transaction(FIRST_PRODUCER, commit=False)
    writer.append(samples(3))
    writer.append(samples(3), producer_id=FIRST_PRODUCER, transactional=True)
    writer.append(samples(3))


def _epochs(writer: Writer) -> None:
    for number, batch in enumerate(in_batches(samples(40), 4)):
        writer.append(batch, leader_epoch=0 if number < 7 else 1)


def _many_segments(writer: Writer, *, leader_epoch: int = 0) -> None:
    for number, batch in enumerate(in_batches(samples(120, size=300), 3)):
        writer.append(batch, leader_epoch=leader_epoch, producer_id=FIRST_PRODUCER + number % 2)


def _log_append_time(writer: Writer) -> None:
    for number, batch in enumerate(in_batches(samples(60, size=400), 4)):
        writer.clock.advance(7)
        writer.append(batch, codec(number))


def _recovered(writer: Writer) -> None:
    _many_segments(writer)
    writer.log.release()
    with writer.log.active.path.open("ab") as file:
        file.write(encode_batch([Record(b"k", b"v" * 200, (), 0)], base_offset=120)[:TORN])
    directory, config = writer.log.directory, writer.log.config
    writer.log = open_log(directory, config, now_ms=writer.clock, recovery_point=60)
    writer.append(samples(3))


def _truncated(writer: Writer) -> None:
    _transactions(writer)
    _many_segments(writer)
    middle = writer.log.segments[-3].base_offset + 4
    writer.log.truncate_to(middle)
    writer.forget(past=writer.log.log_end_offset)
    for batch in in_batches(samples(60, size=300), 3):
        writer.append(batch, leader_epoch=1)


def _retained(writer: Writer) -> None:
    _many_segments(writer)
    assert enforce_retention(writer.log, high_watermark=writer.log.log_end_offset) > 0
    writer.forget(before=writer.log.log_start_offset)


def _deleted_records(writer: Writer) -> None:
    _many_segments(writer)
    writer.log.delete_records_before(45)
    writer.forget(before=45)


def _empty(_writer: Writer) -> None:
    pass


def _rewrites(writer: Writer) -> None:
    """Keys written over and over, by producers and by nobody; two producers end with a key of the past."""
    now = writer.clock()
    for number, batch in enumerate(in_batches(rewrites(240), 4)):
        young = [replace(each, timestamp_ms=now + number * 10 + n % 3) for n, each in enumerate(batch)]
        writer.append(young, codec(number), producer_id=(-1, FIRST_PRODUCER, FIRST_PRODUCER + 1)[number % 3])
    for producer_id in (FIRST_PRODUCER + 2, FIRST_PRODUCER + 3):
        once = [Sample(key=b"last words", value=b"%d" % producer_id, timestamp_ms=now)]
        writer.append(once, codec(producer_id), producer_id=producer_id)
    writer.append([Sample(key=b"last words", value=b"nobody's", timestamp_ms=now)])


def _compacted(writer: Writer) -> None:
    _rewrites(writer)
    writer.compact()
    writer.append(samples_with_keys(writer, 5))


def _compacted_twice(writer: Writer) -> None:
    _rewrites(writer)
    writer.compact()
    tombstones = {record.offset for record in writer.records if record.value is None}
    assert tombstones
    writer.clock.advance(2 * writer.log.config.delete_retention_ms)
    writer.append(samples_with_keys(writer, 5))
    writer.compact()
    writer.records = [record for record in writer.records if record.offset not in tombstones]


def _keyed_transactions(writer: Writer) -> None:
    now = writer.clock()
    for number, batch in enumerate(in_batches(rewrites(120), 4)):
        producer_id = FIRST_PRODUCER + 10 + number % 3
        young = [replace(each, timestamp_ms=now + number * 10 - n) for n, each in enumerate(batch)]
        writer.append(young, codec(number), producer_id=producer_id, transactional=True)
        if number % 2:
            writer.end_transaction(producer_id, commit=number % 4 == 1)
            writer.append(young[:1])
    for producer_id in writer.unended:
        writer.end_transaction(producer_id, commit=False)


def _compacted_transactions(writer: Writer) -> None:
    _keyed_transactions(writer)
    writer.compact()


def _dirty(writer: Writer) -> None:
    _rewrites(writer)
    _keyed_transactions(writer)
    writer.log.roll()


def _dirty_again(writer: Writer) -> None:
    for work in (_rewrites, _keyed_transactions):
        work(writer)
    writer.compact()
    _dirty(writer)


def samples_with_keys(writer: Writer, count: int) -> list[Sample]:
    return [
        Sample(key=b"after-%d" % n, value=b"%d" % n, headers=(("h", None),), timestamp_ms=writer.clock())
        for n in range(count)
    ]


SCENARIOS: Final[dict[str, Callable[[Writer], None]]] = {
    "codecs": _codecs,
    "large": _large,
    "idempotent": _idempotent,
    "transactions": _transactions,
    "open-transaction": _open_transaction,
    "epochs": _epochs,
    "log-append-time": _log_append_time,
    "recovered": _recovered,
    "truncated": _truncated,
    "retained": _retained,
    "deleted-records": _deleted_records,
    "empty": _empty,
    "dirty": _dirty,
    "dirty-again": _dirty_again,
    "compacted": _compacted,
    "compacted-twice": _compacted_twice,
    "compacted-transactions": _compacted_transactions,
}
