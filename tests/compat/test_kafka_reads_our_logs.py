"""Apache Kafka reads, serves, continues and compacts the logs that we wrote, and finds no fault with them."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from compat.kafka_tools import dumped
from compat.kafka_tools.java import KafkaJava
from compat.kafka_tools.records import Record as ServedRecord
from compat.kafka_tools.records import read_records
from compat.kafka_tools.samples import FIRST_TIMESTAMP_MS, samples
from compat.kafka_tools.server import CLUSTER_ID, KafkaServer, client_settings
from compat.kafka_tools.tools import KafkaTools, complaints
from compat.kafka_tools.written import CLEAN_AT_ONCE, NEVER_CLEAN, SETTINGS
from compat.our_logs import (
    COMPACT,
    COMPACTED,
    CONFIGS,
    DIRTY,
    FIRST_PRODUCER,
    MAX_SEQUENCE,
    Writer,
    codec,
    in_batches,
    write_logs,
)
from headrace.protocol.batch import BatchHeader, TimestampType, read_batch
from headrace.protocol.compression import Compression
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import Record, decode_batch, encode_batch
from headrace.storage.checkpoints import read_offsets
from headrace.storage.compaction.cleaner import install, plan_compaction, run_compaction
from headrace.storage.config import DAY_MS
from headrace.storage.directory import CLEANER_OFFSETS, LogDirectory
from headrace.storage.identity import Identity
from headrace.storage.log import Log
from headrace.storage.producers.snapshot import decode_snapshot, encode_snapshot
from headrace.storage.recovery import open_log
from support.clock import SettableClock
from support.logs import files_in, read_all
from support.records import make_marker, split_batches

OWNER: Final = Identity(broker_id=1, cluster_id=CLUSTER_ID)
DUMPED: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
TIMEOUT_S: Final = 30
ADDED: Final = [b"added by Kafka %d" % n for n in range(20)]
CRASHED: Final[dict[str, Callable[[bytearray], bytes]]] = {  # and what the crash left of the last batch
    "codecs": lambda batch: bytes(batch[:60]),
    "idempotent": lambda batch: bytes(batch[:-1]),
    "transactions": lambda batch: bytes(batch[:-1]) + b"\xff",
    "epochs": lambda batch: bytes(len(batch)),
    "retained": lambda _batch: b"",
}
CONTINUED: Final = ("codecs", "idempotent", "transactions", "truncated", "retained", "compacted")


@dataclass(frozen=True, slots=True)
class OurDirectory:
    """A stopped Kafka whose empty logs we have filled and closed."""

    kafka: KafkaServer
    writers: dict[str, Writer]
    before_kafka: Path  # a copy of all there is
    clock: SettableClock

    def files(self, *topics: str) -> list[Path]:
        return sorted(
            file
            for topic in topics
            for file in (self.kafka.log_dir / f"{topic}-0").iterdir()
            if file.suffix in DUMPED
        )

    @property
    def uncommitted(self) -> list[ServedRecord]:
        return [record for topic in sorted(CONFIGS) for record in self.writers[topic].records]

    @property
    def committed(self) -> list[ServedRecord]:
        return [record for topic in sorted(CONFIGS) for record in self.writers[topic].committed]


@pytest.fixture(scope="module")
def ours(kafka_java: KafkaJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurDirectory]:
    root = tmp_path_factory.mktemp("ours")
    with KafkaServer(kafka_java, root, SETTINGS) as kafka:
        for topic in CONFIGS:
            kafka.create_topic(topic, kafka_config(topic))
        kafka.stop()
        clock = SettableClock(time.time_ns() // 1_000_000)
        directory = open_directory(kafka.log_dir, clock)
        writers = write_logs(directory, clock)
        directory.close()
        copy = Path(shutil.copytree(kafka.log_dir, root / "before-kafka"))
        yield OurDirectory(kafka, writers, copy, clock)


@pytest.fixture(scope="module")
def dump(ours: OurDirectory, kafka_tools: KafkaTools) -> str:
    """All that DumpLogSegments prints about the logs that were never compacted."""
    others = [topic for topic in CONFIGS if topic not in COMPACTED]
    return kafka_tools.dump_log_segments(ours.files(*others), extra=["--print-data-log"])


@pytest.fixture(scope="module")
def compacted_dump(ours: OurDirectory, kafka_tools: KafkaTools) -> str:
    return kafka_tools.dump_log_segments(ours.files(*COMPACTED), extra=["--print-data-log"])


def open_directory(path: Path, clock: SettableClock) -> LogDirectory:
    config_of = CONFIGS | dict.fromkeys(("__consumer_offsets", "__transaction_state"), COMPACT)
    directory = LogDirectory.open(path, OWNER, config_of=config_of.__getitem__, now_ms=clock)
    assert directory.failed == {}
    return directory


def kafka_config(topic: str) -> dict[str, str]:
    """What Kafka has to know of the topic to treat its log as we do."""
    config = CONFIGS[topic]
    by_broker = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    cleaning = {"cleanup.policy": "compact"} | NEVER_CLEAN if config.compact else {}
    return {
        "internal.segment.bytes": str(config.segment_bytes),
        "index.interval.bytes": str(config.index_interval_bytes),
        "delete.retention.ms": str(config.delete_retention_ms),
        "message.timestamp.type": "LogAppendTime" if by_broker else "CreateTime",
    } | cleaning


# -- Kafka's tool looks at our files ---------------------------------------------------------------


def test_kafka_has_no_complaints_about_our_files(dump: str) -> None:
    assert complaints(dump) == []


def test_kafka_has_no_complaints_about_what_we_compacted(compacted_dump: str) -> None:
    assert complaints(compacted_dump, compacted=True) == []


def test_there_is_every_kind_of_file_in_several_segments(ours: OurDirectory) -> None:
    assert {file.suffix for file in ours.files(*CONFIGS)} == set(DUMPED)
    for topic in ("codecs", "transactions", "recovered", "truncated", "retained", "compacted"):
        assert len([file for file in ours.files(topic) if file.suffix == ".log"]) >= 3
        assert any(file.suffix == ".index" and file.stat().st_size > 8 for file in ours.files(topic))


def test_kafka_reads_the_same_batch_headers(dump: str, compacted_dump: str) -> None:
    seen = 0
    for path, lines in (dumped.by_file(dump) | dumped.by_file(compacted_dump)).items():
        if path.suffix == ".log":
            printed = dumped.fields(lines, "baseOffset")
            headers = [read_batch(batch) for batch in split_batches(path.read_bytes())]
            assert printed == list(as_printed(headers))
            seen += len(printed)
    assert seen > 300


def as_printed(headers: list[BatchHeader]) -> Iterator[dict[str, str]]:
    position = 0
    for header in headers:
        horizon = header.delete_horizon_ms
        append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
        yield {
            "baseOffset": str(header.base_offset),
            "lastOffset": str(header.last_offset),
            "count": str(header.records_count),
            "baseSequence": str(header.base_sequence),
            "lastSequence": str(header.last_sequence),
            "producerId": str(header.producer_id),
            "producerEpoch": str(header.producer_epoch),
            "partitionLeaderEpoch": str(header.leader_epoch),
            "isTransactional": str(header.is_transactional).lower(),
            "isControl": str(header.is_control).lower(),
            "deleteHorizonMs": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
            "position": str(position),
            "LogAppendTime" if append_time else "CreateTime": str(header.max_timestamp),
            "size": str(header.size),
            "magic": "2",
            "compresscodec": header.compression.name.lower(),
            "crc": str(header.crc),
            "isvalid": "true",
        }
        position += header.size


@pytest.mark.parametrize("topic", [topic for topic in CONFIGS if topic not in ("empty", "deleted-records")])
def test_kafka_unpacks_the_records_that_we_appended(
    ours: OurDirectory, dump: str, compacted_dump: str, topic: str
) -> None:
    lines = dumped.by_file(compacted_dump if topic in COMPACTED else dump)
    logs = [path for path in ours.files(topic) if path.suffix == ".log"]

    found = [
        (record["offset"], record["timestamp"], record["key"], record["value"], record["headers"])
        for path in logs
        for record in dumped.records(lines[path])
    ]

    assert found == [
        (
            str(record.offset),
            str(record.timestamp_ms),
            None if record.key is None else as_text(record.key),
            None if record.value is None else as_text(record.value),
            ",".join(name for name, _ in record.headers),
        )
        for record in ours.writers[topic].records
    ]


def as_text(data: bytes) -> str:
    return data.decode(errors="replace")


def test_kafka_reads_our_snapshots(ours: OurDirectory, dump: str) -> None:
    last = max(path for path in ours.files("idempotent") if path.suffix == ".snapshot")
    producers = dumped.fields(dumped.by_file(dump)[last], "producerId")

    # 40 records each, five at a time; the third began seven before the largest number there is.
    assert [
        (each["producerId"], each["firstSequence"], each["lastSequence"], each["lastOffset"])
        for each in producers
    ] == [
        (str(FIRST_PRODUCER), "35", "39", "109"),
        (str(FIRST_PRODUCER + 1), "35", "39", "114"),
        (str(FIRST_PRODUCER + 2), "28", "32", "119"),
    ]
    assert MAX_SEQUENCE - 6 + 40 - (MAX_SEQUENCE + 1) == 33


def test_kafka_reads_our_index_of_aborted_transactions(ours: OurDirectory, dump: str) -> None:
    lines = dumped.by_file(dump)
    aborted = [
        (int(txn["producerId"]), int(txn["firstOffset"]), int(txn["lastOffset"]))
        for path in ours.files("transactions")
        if path.suffix == ".txnindex"
        for txn in dumped.fields(lines[path], "version")
    ]

    # Each round of 20 offsets: first and second begin at 0 and 3, and end at 14 and 19.
    first = [(FIRST_PRODUCER, round_ * 20, round_ * 20 + 14) for round_ in (1, 3, 5)]
    second = [(FIRST_PRODUCER + 1, round_ * 20 + 3, round_ * 20 + 19) for round_ in (1, 2, 4, 5)]
    assert aborted == sorted(first + second, key=lambda txn: txn[2])


def test_what_we_compacted_has_horizons_and_empty_batches(compacted_dump: str) -> None:
    batches = [
        batch
        for path, lines in dumped.by_file(compacted_dump).items()
        if path.suffix == ".log"
        for batch in dumped.fields(lines, "baseOffset")
    ]

    assert any(batch["deleteHorizonMs"] != "OptionalLong.empty" for batch in batches)
    assert any(batch["count"] == "0" and int(batch["lastSequence"]) >= 0 for batch in batches)
    rewritten = {batch["compresscodec"] for batch in batches if batch["count"] in {"1", "2", "3"}}
    assert rewritten == {"none", "gzip", "snappy", "lz4", "zstd"}


# -- Kafka itself works with our files -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Served:
    """What a Kafka that was started on our directory did, step by step, until it was stopped."""

    uncommitted: list[ServedRecord]
    committed: list[ServedRecord]
    printed: list[str]
    after_producing: list[ServedRecord]
    copy: Path  # of the directory as Kafka then left it


@pytest.fixture(scope="module")
def served(ours: OurDirectory, kafka_tools: KafkaTools, dump: str, compacted_dump: str) -> Served:
    """Start Kafka on our directory once the tool has seen it; read, compact, produce, stop."""
    assert dump
    assert compacted_dump
    kafka = ours.kafka
    kafka.start()
    uncommitted = read_records(kafka.bootstrap, CONFIGS, "read_uncommitted")
    committed = read_records(kafka.bootstrap, CONFIGS, "read_committed")
    printed = print_committed(kafka_tools.java, kafka.bootstrap, len(ours.committed))
    for topic in DIRTY:
        kafka.alter_topic(topic, CLEAN_AT_ONCE)
    for topic in CONTINUED:
        produce(kafka, topic)
    for topic in DIRTY:
        wait_until_cleaned(kafka, topic)
    after_producing = read_records(kafka.bootstrap, CONFIGS, "read_uncommitted")
    kafka.stop()
    copy = Path(shutil.copytree(kafka.log_dir, ours.before_kafka.with_name("after-kafka")))
    return Served(uncommitted, committed, printed, after_producing, copy)


def print_committed(java: KafkaJava, bootstrap: str, count: int) -> list[str]:
    """What Kafka's own consumer prints of the first `count` committed records of all topics."""
    options = ["--bootstrap-server", bootstrap, "--include", "|".join(CONFIGS), "--from-beginning"]
    options += ["--isolation-level", "read_committed", "--max-messages", str(count)]
    options += ["--timeout-ms", str(TIMEOUT_S * 1000)]
    for shown in ("timestamp", "offset", "headers", "key"):
        options += ["--formatter-property", f"print.{shown}=true"]
    command = java.command("org.apache.kafka.tools.consumer.ConsoleConsumer", *options)
    run = subprocess.run(command, capture_output=True, text=True, timeout=2 * TIMEOUT_S, check=True)
    return run.stdout.splitlines()


def produce(kafka: KafkaServer, topic: str) -> None:
    producer: Any = Producer(client_settings(kafka.bootstrap) | {"enable.idempotence": True, "linger.ms": 5})
    for value in ADDED:
        producer.produce(topic, key=value, value=value, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def wait_until_cleaned(kafka: KafkaServer, topic: str) -> None:
    checkpoint = kafka.log_dir / "cleaner-offset-checkpoint"
    active = max(int(log.stem) for log in (kafka.log_dir / f"{topic}-0").glob("*.log"))
    deadline = time.monotonic() + TIMEOUT_S
    while f"{topic} 0 {active}" not in checkpoint.read_text().splitlines():
        assert time.monotonic() < deadline, f"{topic} was not compacted in {TIMEOUT_S} s"
        time.sleep(0.05)


def test_kafka_serves_every_record_that_we_appended(ours: OurDirectory, served: Served) -> None:
    assert served.uncommitted == ours.uncommitted


def test_kafka_serves_only_committed_records_to_those_who_ask(ours: OurDirectory, served: Served) -> None:
    assert served.committed == ours.committed
    assert len(served.committed) < len(served.uncommitted)


def test_kafkas_own_consumer_prints_the_committed_records(ours: OurDirectory, served: Served) -> None:
    assert sorted(served.printed) == sorted(map(as_line, ours.committed))


def as_line(record: ServedRecord) -> str:
    by_broker = CONFIGS[record.topic].message_timestamp_type is TimestampType.LOG_APPEND_TIME
    headers = ",".join(f"{name}:{as_word(value)}" for name, value in record.headers)
    return "\t".join(
        [
            f"{'LogAppendTime' if by_broker else 'CreateTime'}:{record.timestamp_ms}",
            f"Offset:{record.offset}",
            headers or "NO_HEADERS",
            as_word(record.key),
            as_word(record.value),
        ]
    )


def as_word(data: bytes | None) -> str:
    return "null" if data is None else data.decode()


def test_we_open_what_kafka_went_on_with(ours: OurDirectory, served: Served) -> None:
    directory = open_directory(served.copy, ours.clock)

    found = {topic: records_of(directory, topic) for topic in sorted(CONFIGS)}
    directory.release()

    assert [record for records in found.values() for record in records] == served.after_producing
    for topic in CONTINUED:
        assert [record.value for record in found[topic]][-len(ADDED) :] == ADDED


def records_of(directory: LogDirectory, topic: str) -> list[ServedRecord]:
    """What a client gets to see of a log of ours."""
    log = directory.logs[TopicPartition(topic, 0)]
    batches = [(read_batch(batch), batch) for batch in read_all(log)]
    return [
        ServedRecord(
            topic=topic,
            partition=0,
            offset=record.offset,
            timestamp_ms=record.timestamp,
            key=record.key,
            value=record.value,
            headers=tuple(record.headers),
        )
        for header, batch in batches
        if not header.is_control
        for record in decode_batch(batch, header)
        if record.offset >= log.log_start_offset
    ]


@pytest.mark.parametrize("topic", DIRTY)
def test_kafka_compacts_our_log_to_the_same_batches_as_we_do(
    ours: OurDirectory, served: Served, topic: str
) -> None:
    partition = TopicPartition(topic, 0)
    start = read_offsets(ours.before_kafka / CLEANER_OFFSETS).get(partition, 0)
    now = SettableClock(time.time_ns() // 1_000_000)
    log = open_log(ours.before_kafka / str(partition), CONFIGS[topic], now_ms=now, clean=True)
    plan = plan_compaction(log, first_dirty_offset=start, up_to_offset=log.log_end_offset)
    assert plan is not None
    install(log, run_compaction(plan, max_keys=10_000, stop=lambda: False))
    log.close()

    ours_and_kafkas = (log.directory, served.copy / str(partition))
    names, kafkas_names = (sorted(path.name for path in each.glob("*.log")) for each in ours_and_kafkas)
    assert names == kafkas_names
    for name in names:
        compacted, kafkas = (comparable(each / name) for each in ours_and_kafkas)
        assert compacted == kafkas, name
    aborted, kafkas_aborted = (files_in(each, ".txnindex") for each in ours_and_kafkas)
    assert aborted == kafkas_aborted
    assert aborted


def comparable(log: Path) -> list[Any]:
    """The batches: whole ones, or what is in them where the moment of cleaning or the compressor shows."""
    batches = [(read_batch(batch), batch) for batch in split_batches(log.read_bytes())]
    return [
        batch
        if header.compression is Compression.NONE and header.delete_horizon_ms is None
        else (
            header._replace(batch_length=0, crc=0, base_timestamp=without_horizon(header)),
            list(decode_batch(batch, header)),
        )
        for header, batch in batches
    ]


def without_horizon(header: BatchHeader) -> int:
    """The base timestamp, unless it says when tombstones go."""
    return header.base_timestamp if header.delete_horizon_ms is None else 0


# -- Kafka and we recover from the same crash ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recovered:
    """A directory in which our process died, opened, read and closed by each of us."""

    by_us: Path
    by_kafka: Path
    found: list[ServedRecord]
    served: list[ServedRecord]


@pytest.fixture(scope="module")
def recovered(ours: OurDirectory, served: Served) -> Recovered:
    """Go on where Kafka stopped, die in the middle of a batch, and let two copies recover."""
    assert served.copy.exists()
    kafka = ours.kafka
    directory = open_directory(kafka.log_dir, ours.clock)
    for topic, torn in CRASHED.items():
        die_while_writing(directory.logs[TopicPartition(topic, 0)], torn)
    directory.release()
    copy = Path(shutil.copytree(kafka.log_dir, ours.before_kafka.with_name("crashed")))
    directory = open_directory(copy, ours.clock)
    found = [record for topic in sorted(CRASHED) for record in records_of(directory, topic)]
    directory.close()
    kafka.start()
    served_then = read_records(kafka.bootstrap, CRASHED, "read_uncommitted")
    kafka.stop()
    return Recovered(copy, kafka.log_dir, found, served_then)


def die_while_writing(log: Log, torn: Callable[[bytearray], bytes]) -> None:
    """Append over more than one segment, a transaction that is aborted among it; the last write is torn."""
    epoch = log.epochs.latest
    producer_id = FIRST_PRODUCER + 50
    for number, records in enumerate(in_batches(samples(90, size=300), 3)):
        batch = [Record(each.key or b"k", each.value, each.headers, each.timestamp_ms) for each in records]
        log.append(encode_batch(batch, compression=codec(number)), leader_epoch=epoch)
        if number % 7 == 0:
            transactional = encode_batch(
                batch, transactional=True, producer_id=producer_id, producer_epoch=number, base_sequence=0
            )
            log.append(transactional, leader_epoch=epoch)
            marker = make_marker(producer_id, commit=False, producer_epoch=number, timestamp=log.now_ms())
            log.append_internal(marker, leader_epoch=epoch)
    last = encode_batch(
        [Record(b"k", b"never acknowledged" * 20, (), log.now_ms())],
        base_offset=log.log_end_offset,
        leader_epoch=epoch,
    )
    with log.active.path.open("ab") as file:
        file.write(torn(last))


def test_kafka_serves_what_was_whole_when_our_process_died(recovered: Recovered) -> None:
    assert recovered.served == recovered.found
    assert len(recovered.found) > len(CRASHED) * 90


@pytest.mark.parametrize("topic", CRASHED)
def test_recovery_leaves_the_same_files_as_kafkas(recovered: Recovered, topic: str) -> None:
    ours, kafkas = (directory / f"{topic}-0" for directory in (recovered.by_us, recovered.by_kafka))
    suffixes = (".log", ".index", ".timeindex", ".txnindex")

    assert files_in(ours, *suffixes) == files_in(kafkas, *suffixes)


@pytest.mark.parametrize("topic", CRASHED)
def test_recovery_finds_the_same_producers_as_kafka(recovered: Recovered, topic: str) -> None:
    ours, kafkas = (
        max((directory / f"{topic}-0").glob("*.snapshot"))
        for directory in (recovered.by_us, recovered.by_kafka)
    )

    producers, kafkas_producers = producers_in(ours), producers_in(kafkas)

    expired = producers.keys() - kafkas_producers.keys()  # Kafka forgets after a day, and samples are old
    assert ours.name == kafkas.name
    assert kafkas_producers == {each: producers[each] for each in producers.keys() - expired}
    assert all(producers[each][1] < FIRST_TIMESTAMP_MS + DAY_MS for each in expired)
    assert FIRST_PRODUCER + 50 in kafkas_producers


def producers_in(snapshot: Path) -> dict[int, tuple[bytes, int]]:
    states = decode_snapshot(snapshot.read_bytes())
    return {state.producer_id: (encode_snapshot([state]), state.last_timestamp) for state in states}
