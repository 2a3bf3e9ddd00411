"""A data directory written by Apache Kafka, and what a correct reader must find in it.

Topics, of one partition each, with null keys, values and headers where the cleanup policy allows it:

    confluent-<codec>, python-<codec>   two client libraries, for none, gzip, snappy, lz4 and zstd
    idempotent            one producer id, many batches
    transactions          committed and aborted transactions; those of two producers overlap
    open-transaction      a transaction that nobody has ended: the last stable offset stays before it
    segments              many small segments, each with several index entries
    compacted             cleaned once, tombstones kept: offsets have holes, some segments are thin
    deleted-records       the log start offset lies inside the second segment
    log-append-time       timestamps are the broker's
    restarted             two leader epochs
"""

import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec

from compat.kafka_tools.records import Record, read_records
from compat.kafka_tools.samples import Sample, rewrites, samples
from compat.kafka_tools.server import KafkaServer, client_settings
from oracles.kafka_python import KafkaProducer

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
TINY_SEGMENTS: Final = {"internal.segment.bytes": "8192", "index.interval.bytes": "1024"}
NEVER_CLEAN: Final = {"min.cleanable.dirty.ratio": "1.0"}
CLEAN_AT_ONCE: Final = {"min.cleanable.dirty.ratio": "0.0"}
TOPICS: Final[dict[str, dict[str, str]]] = {
    **{f"{client}-{codec}": {} for client in ("confluent", "python") for codec in CODECS},
    "idempotent": {},
    "transactions": {},
    "open-transaction": {},
    "segments": TINY_SEGMENTS,
    "compacted": TINY_SEGMENTS | NEVER_CLEAN | {"cleanup.policy": "compact"},
    "deleted-records": TINY_SEGMENTS,
    "log-append-time": {"message.timestamp.type": "LogAppendTime"},
    "restarted": {},
}
SETTINGS: Final = {
    "log.retention.ms": "-1",  # the samples' timestamps are years old
    "log.index.size.max.bytes": "65536",  # what an active index is preallocated to
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.dedupe.buffer.size": "2097152",
}
DELETED_BEFORE: Final = 45
TIMEOUT_S: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The offsets of a partition, as Kafka itself reported them."""

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDirectory:
    """What Kafka left behind. Tests share it: `copy_to` before opening anything for writing.

    `produced` is what the clients' delivery reports said, aborted records included. `uncommitted` and
    `committed` are what Kafka served at the two isolation levels before it ended, in order of topic and
    offset; they lack what compaction and DeleteRecords removed.
    """

    path: Path
    produced: list[Record]
    uncommitted: list[Record]
    committed: list[Record]
    bounds: dict[str, Bounds]

    def partition(self, topic: str) -> Path:
        return self.path / f"{topic}-0"

    def files(self, *suffixes: str) -> list[Path]:
        """Every file of every test topic with one of the suffixes (`.log`, `.index` …)."""
        return sorted(
            file
            for topic in TOPICS
            for file in self.partition(topic).iterdir()
            if not suffixes or file.suffix in suffixes
        )

    def copy_to(self, target: Path) -> Path:
        return Path(shutil.copytree(self.path, target))


def write_directory(kafka: KafkaServer) -> WrittenDirectory:
    """Fill the topics. Kafka keeps running: how it ends is the caller's choice."""
    for topic, config in TOPICS.items():
        kafka.create_topic(topic, config)
    writer = _Writer(kafka.bootstrap)
    for codec in CODECS:
        writer.with_confluent(f"confluent-{codec}", samples(25), {"compression.type": codec})
        writer.with_kafka_python(f"python-{codec}", samples(25), codec)
    writer.with_confluent("idempotent", samples(40), {"enable.idempotence": True, "batch.num.messages": 5})
    writer.in_transactions("transactions")
    for topic in ("segments", "deleted-records"):
        writer.with_confluent(topic, samples(120, size=300), {"batch.num.messages": 3})
    writer.with_confluent("compacted", rewrites(200), {"batch.num.messages": 3})
    writer.with_confluent("log-append-time", samples(20), {})
    _delete_records(kafka, "deleted-records", before=DELETED_BEFORE)
    _compact(kafka, "compacted")
    writer.with_confluent("restarted", samples(10), {})
    kafka.restart()
    writer.with_confluent("restarted", samples(10), {})
    writer.leave_transaction_open("open-transaction")
    return WrittenDirectory(
        path=kafka.log_dir,
        produced=writer.produced,
        uncommitted=read_records(kafka.bootstrap, TOPICS, "read_uncommitted"),
        committed=read_records(kafka.bootstrap, TOPICS, "read_committed"),
        bounds=_bounds(kafka),
    )


class _Writer:
    """Produces, and remembers what the delivery reports said."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.produced: list[Record] = []

    def with_confluent(self, topic: str, records: Iterable[Sample], settings: dict[str, Any]) -> None:
        producer = Producer(client_settings(self._bootstrap) | {"linger.ms": 20} | settings)
        self._send(producer, topic, records)

    def with_kafka_python(self, topic: str, records: Iterable[Sample], codec: str) -> None:
        accepted = [each.without_null_headers() for each in records if each.fits_kafka_python]
        compression = None if codec == "none" else codec
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap, compression_type=compression, linger_ms=20, acks="all"
        )
        try:
            reports = [
                producer.send(topic, each.value, each.key, list(each.headers), 0, each.timestamp_ms)
                for each in accepted
            ]
            for each, report in zip(accepted, reports, strict=True):
                delivered = report.get(TIMEOUT_S)
                self._remember(topic, each, delivered.offset, delivered.timestamp)
        finally:
            producer.close()

    def in_transactions(self, topic: str) -> None:
        """Commit and abort by turns; then two producers' transactions overlap, one of each fate."""
        first, second = self._transactional("first"), self._transactional("second")
        for end in (first.commit_transaction, first.abort_transaction) * 2:
            first.begin_transaction()
            self._send(first, topic, samples(5))
            end(TIMEOUT_S)
        for producer in (first, second):
            producer.begin_transaction()
            self._send(producer, topic, samples(3))
        self._send(first, topic, samples(2))
        second.abort_transaction(TIMEOUT_S)
        first.commit_transaction(TIMEOUT_S)
        self.with_confluent(topic, samples(3), {})

    def leave_transaction_open(self, topic: str) -> None:
        """The producer goes away without a word, as one that crashed would."""
        producer = self._transactional("open")
        producer.begin_transaction()
        self._send(producer, topic, samples(4))
        producer.commit_transaction(TIMEOUT_S)
        producer.begin_transaction()
        self._send(producer, topic, samples(4))
        self.with_confluent(topic, samples(2), {})

    def _transactional(self, transactional_id: str) -> Any:
        settings = {"transactional.id": transactional_id, "linger.ms": 20}
        producer = Producer(client_settings(self._bootstrap) | settings)
        producer.init_transactions(TIMEOUT_S)
        return producer

    def _send(self, producer: Any, topic: str, records: Iterable[Sample]) -> None:
        failures: list[KafkaError] = []
        for each in records:

            def on_delivery(error: KafkaError | None, message: Any, sample: Sample = each) -> None:
                if error is None:
                    self._remember(topic, sample, message.offset(), message.timestamp()[1])
                else:
                    failures.append(error)

            producer.produce(
                topic,
                value=each.value,
                key=each.key,
                partition=0,
                headers=list(each.headers),
                timestamp=each.timestamp_ms,
                on_delivery=on_delivery,
            )
        unsent = producer.flush(TIMEOUT_S)
        assert not failures, failures
        assert unsent == 0, f"{unsent} records of {topic} not acknowledged in {TIMEOUT_S} s"

    def _remember(self, topic: str, sample: Sample, offset: int, timestamp_ms: int) -> None:
        self.produced.append(
            Record(
                topic=topic,
                partition=0,
                offset=offset,
                timestamp_ms=timestamp_ms,
                key=sample.key,
                value=sample.value,
                headers=sample.headers,
            )
        )


def _delete_records(kafka: KafkaServer, topic: str, *, before: int) -> None:
    for future in kafka.admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(timeout=TIMEOUT_S)


def _compact(kafka: KafkaServer, topic: str) -> None:
    """Have the topic cleaned, in one pass, up to its active segment, which the cleaner never touches."""
    kafka.alter_topic(topic, CLEAN_AT_ONCE)
    checkpoint = kafka.log_dir / "cleaner-offset-checkpoint"
    active = max(int(log.stem) for log in (kafka.log_dir / f"{topic}-0").glob("*.log"))
    deadline = time.monotonic() + TIMEOUT_S
    while f"{topic} 0 {active}" not in checkpoint.read_text().splitlines():
        assert time.monotonic() < deadline, f"{topic} was not compacted in {TIMEOUT_S} s"
        time.sleep(0.05)


def _bounds(kafka: KafkaServer) -> dict[str, Bounds]:
    starts = _list_offsets(kafka, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)
    ends = _list_offsets(kafka, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
    stable = _list_offsets(kafka, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
    return {
        topic: Bounds(
            log_start_offset=starts[topic], high_watermark=ends[topic], last_stable_offset=stable[topic]
        )
        for topic in TOPICS
    }


def _list_offsets(kafka: KafkaServer, wanted: OffsetSpec, isolation_level: IsolationLevel) -> dict[str, int]:
    asked = {TopicPartition(topic, 0): wanted for topic in TOPICS}
    futures = kafka.admin.list_offsets(asked, isolation_level=isolation_level, request_timeout=TIMEOUT_S)
    return {at.topic: future.result(timeout=TIMEOUT_S).offset for at, future in futures.items()}
