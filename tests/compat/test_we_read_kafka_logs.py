"""We open the directories that Apache Kafka left, find in them what it served, and go on where it stopped."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import OffsetSpec

from compat.kafka_tools.java import KafkaJava
from compat.kafka_tools.records import Record as ServedRecord
from compat.kafka_tools.records import read_records
from compat.kafka_tools.samples import FIRST_TIMESTAMP_MS
from compat.kafka_tools.server import CLUSTER_ID, KafkaServer
from compat.kafka_tools.tools import KafkaTools, complaints
from compat.kafka_tools.written import DELETED_BEFORE, SETTINGS, TOPICS, WrittenDirectory
from headrace.protocol.batch import BatchHeader, TimestampType, read_batch
from headrace.protocol.compression import Compression
from headrace.protocol.ids import LeaderEpoch, Offset, TopicPartition
from headrace.protocol.records import Record, decode_batch, encode_batch
from headrace.storage.checkpoints import read_offsets
from headrace.storage.config import LogConfig
from headrace.storage.directory import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    LogDirectory,
)
from headrace.storage.epochs import EpochStart
from headrace.storage.errors import ForeignDirectory
from headrace.storage.identity import Identity
from headrace.storage.log import Log
from headrace.storage.producers.snapshot import decode_snapshot, encode_snapshot
from headrace.storage.recovery import open_log
from headrace.storage.time_lookup import FoundOffset
from support.clock import SettableClock
from support.logs import files_in, read_all
from support.records import make_marker, split_batches

OWNER: Final = Identity(broker_id=1, cluster_id=CLUSTER_ID)
DAY_MS: Final = 24 * 3600 * 1000
CLOCK: Final = SettableClock(FIRST_TIMESTAMP_MS + 365 * DAY_MS)
NEW_MS: Final = FIRST_TIMESTAMP_MS + DAY_MS  # when the records that we add were made
LOOKED_UP: Final = [
    0,
    *range(FIRST_TIMESTAMP_MS - 10_000, FIRST_TIMESTAMP_MS + 130_000, 9_500),
    NEW_MS,
    NEW_MS + 1001,
    NEW_MS + DAY_MS,
]
NOTHING: Final = (-1, -1)
TRANSACTIONAL: Final = ("transactions", "open-transaction")
EAGER: Final = {  # a killed broker may come back once its last session has expired
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
}
DUMPED: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
endings = pytest.mark.parametrize("ending", ["written", "killed"])


@pytest.fixture
def left_behind(ending: str, request: pytest.FixtureRequest) -> WrittenDirectory:
    """What Kafka left after a clean stop (`written`) or after SIGKILL (`killed`); not to be touched."""
    written: WrittenDirectory = request.getfixturevalue(f"kafka_{ending}_directory")
    return written


@pytest.fixture
def copied(left_behind: WrittenDirectory, tmp_path: Path) -> Path:
    return left_behind.copy_to(tmp_path / "data")


@pytest.fixture
def opened(copied: Path) -> Iterator[LogDirectory]:
    directory = open_directory(copied)
    yield directory
    directory.release()


def open_directory(path: Path, identity: Identity = OWNER) -> LogDirectory:
    return LogDirectory.open(path, identity, config_of=config_of, now_ms=CLOCK)


def config_of(topic: str) -> LogConfig:
    """Our words for what Kafka was told about the topic."""
    config = TOPICS.get(topic, {"cleanup.policy": "compact"})  # the others are Kafka's own
    by_broker = config.get("message.timestamp.type") == "LogAppendTime"
    return LogConfig(
        segment_bytes=int(config.get("internal.segment.bytes", 2**30)),
        index_interval_bytes=int(config.get("index.interval.bytes", 4096)),
        segment_index_bytes=int(SETTINGS["log.index.size.max.bytes"]),
        message_timestamp_type=TimestampType.LOG_APPEND_TIME if by_broker else TimestampType.CREATE_TIME,
        compact=config.get("cleanup.policy") == "compact",
        retention_ms=-1,
    )


def log_of(directory: LogDirectory, topic: str) -> Log:
    return directory.logs[TopicPartition(topic, 0)]


def batches_of(log: Log, end: int | None = None) -> list[tuple[BatchHeader, bytes]]:
    """The data batches from the log's start to `end`, or to the log's."""
    pairs = [(read_batch(batch), batch) for batch in read_all(log, max_bytes=1000)]
    return [
        (header, batch)
        for header, batch in pairs
        if not header.is_control and (end is None or header.last_offset < end)
    ]


def served(topic: str, log: Log, batches: Iterable[tuple[BatchHeader, bytes]]) -> list[ServedRecord]:
    """The records of `batches` as a client gets them."""
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
        for record in decode_batch(batch, header)
        if record.offset >= log.log_start_offset
    ]


def committed(topic: str, log: Log) -> list[ServedRecord]:
    """What a client that reads committed records makes of a fetch: it drops what it is told was aborted."""
    end = log.last_stable_offset(high_watermark=log.log_end_offset)
    aborted = log.aborted_transactions(log.log_start_offset, end)
    visible = [
        (header, batch)
        for header, batch in batches_of(log, end)
        if not any(
            header.is_transactional
            and header.producer_id == txn.producer_id
            and txn.first_offset <= header.base_offset < txn.last_offset
            for txn in aborted
        )
    ]
    return served(topic, log, visible)


def kafka_epochs(left_behind: WrittenDirectory, topic: str) -> list[EpochStart]:
    _, _, *lines = (left_behind.partition(topic) / "leader-epoch-checkpoint").read_text().splitlines()
    entries = [line.split() for line in lines]
    return [EpochStart(LeaderEpoch(int(epoch)), Offset(int(start))) for epoch, start in entries]


def contents(directory: Path, *suffixes: str) -> dict[str, bytes]:
    """The files of the test topics, by their names in the log directory."""
    return {
        f"{topic}-0/{path.name}": path.read_bytes()
        for topic in TOPICS
        for path in sorted((directory / f"{topic}-0").iterdir())
        if not suffixes or path.suffix in suffixes
    }


@endings
def test_every_partition_that_kafka_left_is_opened(copied: Path, opened: LogDirectory) -> None:
    partitions = {path.name for path in copied.glob("*-0")} - {"__cluster_metadata-0"}

    assert {str(partition) for partition in opened.logs} == partitions
    assert opened.failed == {}
    assert set(opened.topic_ids) == set(opened.logs)


@endings
@pytest.mark.parametrize(
    "stranger", [OWNER._replace(broker_id=2), OWNER._replace(cluster_id="anotherCluster00000000")]
)
def test_the_directory_of_another_broker_is_refused_and_left_untouched(
    copied: Path, stranger: Identity
) -> None:
    before = {path: path.stat() for path in copied.rglob("*")}

    with pytest.raises(ForeignDirectory, match="belongs to"):
        open_directory(copied, stranger)

    after = {path: path.stat() for path in copied.rglob("*")}
    assert after.keys() == before.keys()
    assert all(after[path].st_mtime_ns == before[path].st_mtime_ns for path in before)


@endings
def test_every_record_is_what_kafka_served(left_behind: WrittenDirectory, opened: LogDirectory) -> None:
    logs = {topic: log_of(opened, topic) for topic in sorted(TOPICS)}

    found = [record for topic, log in logs.items() for record in served(topic, log, batches_of(log))]

    assert found == left_behind.uncommitted


@endings
def test_every_committed_record_is_what_kafka_served(
    left_behind: WrittenDirectory, opened: LogDirectory
) -> None:
    found = [record for topic in sorted(TOPICS) for record in committed(topic, log_of(opened, topic))]

    assert found == left_behind.committed


@endings
def test_logs_start_and_end_where_kafka_said(left_behind: WrittenDirectory, opened: LogDirectory) -> None:
    for topic, bounds in left_behind.bounds.items():
        log = log_of(opened, topic)
        assert log.log_start_offset == bounds.log_start_offset
        assert log.log_end_offset == bounds.high_watermark
        assert log.last_stable_offset(high_watermark=log.log_end_offset) == bounds.last_stable_offset


@endings
def test_checkpoints_are_what_kafka_wrote(left_behind: WrittenDirectory, opened: LogDirectory) -> None:
    assert opened.high_watermarks == read_offsets(left_behind.path / HIGH_WATERMARKS)
    assert opened.cleaner_offsets == read_offsets(left_behind.path / CLEANER_OFFSETS)
    assert opened.cleaner_offsets[TopicPartition("compacted", 0)] > 0


@endings
def test_leader_epochs_are_kafkas_but_for_those_that_wrote_nothing(
    left_behind: WrittenDirectory, opened: LogDirectory
) -> None:
    for topic in TOPICS:
        log = log_of(opened, topic)
        began = [
            epoch for epoch in kafka_epochs(left_behind, topic) if epoch.start_offset < log.log_end_offset
        ]
        assert list(log.epochs.entries) == began


def test_two_leader_epochs_are_found_again_if_the_checkpoint_is_lost(
    kafka_written_directory: WrittenDirectory, tmp_path: Path
) -> None:
    copy = kafka_written_directory.copy_to(tmp_path / "data")
    (copy / "restarted-0" / "leader-epoch-checkpoint").unlink()

    directory = open_directory(copy)

    assert list(log_of(directory, "restarted").epochs.entries) == kafka_epochs(
        kafka_written_directory, "restarted"
    )
    directory.release()


@endings
def test_producers_are_those_whose_batches_are_in_the_log(opened: LogDirectory) -> None:
    for topic in ("idempotent", "transactions", "open-transaction"):
        log = log_of(opened, topic)
        last = {
            header.producer_id: (header.producer_epoch, header.last_sequence, header.last_offset)
            for header, _ in batches_of(log)
            if header.has_producer
        }
        known = {
            state.producer_id: (state.epoch, state.recent[-1].last_sequence, state.recent[-1].last_offset)
            for state in log.producers
        }
        assert known == last
        assert last


def test_producers_are_those_of_kafkas_last_snapshot(
    kafka_written_directory: WrittenDirectory, tmp_path: Path
) -> None:
    directory = open_directory(kafka_written_directory.copy_to(tmp_path / "data"))

    for topic in TOPICS:
        snapshot = max(kafka_written_directory.partition(topic).glob("*.snapshot"))
        ours, theirs = (
            {state.producer_id: encode_snapshot([state]) for state in states}
            for states in (log_of(directory, topic).producers, decode_snapshot(snapshot.read_bytes()))
        )
        assert ours == theirs
    directory.release()


def test_opening_and_closing_changes_no_byte_of_a_cleanly_stopped_kafkas_logs(
    kafka_written_directory: WrittenDirectory, tmp_path: Path
) -> None:
    copy = kafka_written_directory.copy_to(tmp_path / "data")

    open_directory(copy).close()

    suffixes = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".metadata")
    assert contents(copy, *suffixes) == contents(kafka_written_directory.path, *suffixes)
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_START_OFFSETS, CLEANER_OFFSETS):
        assert read_offsets(copy / name) == read_offsets(kafka_written_directory.path / name)
    assert (copy / CLEAN_SHUTDOWN).exists()


def test_rebuilt_indexes_and_snapshots_are_kafkas_own_byte_for_byte(
    kafka_written_directory: WrittenDirectory, tmp_path: Path
) -> None:
    copy = kafka_written_directory.copy_to(tmp_path / "data")
    (copy / CLEAN_SHUTDOWN).unlink()
    (copy / RECOVERY_POINTS).unlink()
    rebuilt = (".index", ".timeindex", ".txnindex", ".snapshot")
    for name in contents(copy, *rebuilt):
        (copy / name).unlink()

    open_directory(copy).close()

    kafkas = contents(kafka_written_directory.path, *rebuilt)
    ours = contents(copy, *rebuilt)
    last_snapshots = {
        max(name for name in kafkas if name.startswith(f"{topic}-0/") and name.endswith(".snapshot"))
        for topic in TOPICS
    }
    earlier = {name for name in kafkas if name.endswith(".snapshot")} - last_snapshots
    assert ours == {name: data for name, data in kafkas.items() if name not in earlier}


@pytest.mark.parametrize("topic", sorted(TOPICS.keys() - {"compacted", "deleted-records"}))
def test_appending_kafkas_batches_one_by_one_leaves_kafkas_files(
    kafka_written_directory: WrittenDirectory, tmp_path: Path, topic: str
) -> None:
    kafkas = kafka_written_directory.partition(topic)
    follower = open_log(tmp_path, config_of(topic), now_ms=CLOCK)

    for log in sorted(kafkas.glob("*.log")):
        for batch in split_batches(log.read_bytes()):
            follower.append_as_follower(batch)
    follower.close()

    expected = files_in(kafkas, *DUMPED)
    if topic == "restarted":
        del expected["00000000000000000010.snapshot"]  # of the stop in between
    assert files_in(tmp_path, *DUMPED) == expected


def test_after_a_crash_indexes_are_what_kafka_had_written_so_far(
    kafka_killed_directory: WrittenDirectory, tmp_path: Path
) -> None:
    copy = kafka_killed_directory.copy_to(tmp_path / "data")

    open_directory(copy).close()

    kafkas = contents(kafka_killed_directory.path, ".index", ".timeindex", ".txnindex")
    ours = contents(copy, ".index", ".timeindex", ".txnindex")
    assert ours.keys() == kafkas.keys()
    for name, data in ours.items():
        entries = kafkas[name] if name.endswith(".txnindex") else without_padding(name, kafkas[name])
        assert data.startswith(entries), name
        # The time index of a segment that still grew gets its last entry when it is closed.
        assert len(data) - len(entries) in ({0, 12} if name.endswith(".timeindex") else {0}), name


def without_padding(name: str, preallocated: bytes) -> bytes:
    entry_size = 12 if name.endswith(".timeindex") else 8
    used = len(preallocated.rstrip(b"\0"))
    return preallocated[: -(-used // entry_size) * entry_size]


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """A directory that Kafka wrote, that we went on with, and that Kafka now serves again.

    `uncommitted`, `committed`, `found` and `youngest` are what our logs answered before Kafka was asked.
    """

    kafka: KafkaServer
    complaints: list[str]
    earlier: list[ServedRecord]
    uncommitted: list[ServedRecord]
    committed: list[ServedRecord]
    found: dict[int, dict[str, tuple[int, int]]]
    youngest: dict[str, tuple[int, int]]


@pytest.fixture(scope="module", params=["written", "killed"])
def continued(
    request: pytest.FixtureRequest,
    kafka_java: KafkaJava,
    kafka_tools: KafkaTools,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Continued]:
    left_behind: WrittenDirectory = request.getfixturevalue(f"kafka_{request.param}_directory")
    kafka = KafkaServer(kafka_java, tmp_path_factory.mktemp("continued"), SETTINGS | EAGER)
    directory = open_directory(left_behind.copy_to(kafka.log_dir))
    logs = {topic: log_of(directory, topic) for topic in sorted(TOPICS)}
    for topic, log in logs.items():
        write_on(topic, log)
    state = Continued(
        kafka=kafka,
        complaints=[],
        earlier=left_behind.uncommitted,
        uncommitted=[record for topic, log in logs.items() for record in served(topic, log, batches_of(log))],
        committed=[record for topic, log in logs.items() for record in committed(topic, log)],
        found={
            timestamp: {topic: place(log.offset_for_timestamp(timestamp)) for topic, log in logs.items()}
            for timestamp in LOOKED_UP
        },
        youngest={topic: place(log.offset_of_max_timestamp()) for topic, log in logs.items()},
    )
    directory.close()
    state.complaints.extend(dump_complaints(kafka_tools, kafka.log_dir))
    with kafka:
        yield state


def write_on(topic: str, log: Log) -> None:
    """Append a batch of each codec, one of each producer that the log knows, and end every transaction."""
    epoch = log.epochs.latest
    for number, compression in enumerate(Compression):
        log.append(encode_batch(new_records(topic, number), compression=compression), leader_epoch=epoch)
    for state in list(log.producers):
        last = state.recent[-1]
        batch = encode_batch(
            new_records(topic, 10 + state.producer_id),
            transactional=topic in TRANSACTIONAL,
            producer_id=state.producer_id,
            producer_epoch=state.epoch,
            base_sequence=last.last_sequence + 1,
        )
        log.append(batch, leader_epoch=epoch)
        if topic in TRANSACTIONAL:
            marker = make_marker(
                state.producer_id,
                commit=state.producer_id % 2 == 0,
                producer_epoch=state.epoch,
                coordinator_epoch=state.coordinator_epoch,
                timestamp=CLOCK(),
            )
            log.append_internal(marker, leader_epoch=epoch)


def new_records(topic: str, number: int) -> list[Record]:
    """Records with keys of their own, so that compaction takes nothing away."""
    return [
        Record(
            b"new-%d-%d" % (number, n),
            b"%s " % topic.encode() * 20,
            [("h", None)],
            NEW_MS + number * 1000 + n,
        )
        for n in range(4)
    ]


def dump_complaints(kafka_tools: KafkaTools, directory: Path) -> list[str]:
    files = [directory / name for name in contents(directory, *DUMPED)]
    compacted = [file for file in files if file.parent.name == "compacted-0"]
    others = [file for file in files if file not in compacted]
    return complaints(kafka_tools.dump_log_segments(others)) + complaints(
        kafka_tools.dump_log_segments(compacted), compacted=True
    )


def place(found: FoundOffset | None) -> tuple[int, int]:
    return NOTHING if found is None else (found.offset, found.timestamp)


def kafkas_places(kafka: KafkaServer, wanted: OffsetSpec) -> dict[str, tuple[int, int]]:
    asked = {ClientPartition(topic, 0): wanted for topic in TOPICS}
    answers = kafka.admin.list_offsets(asked, request_timeout=30)
    results = {at.topic: answer.result(timeout=30) for at, answer in answers.items()}
    return {topic: (result.offset, result.timestamp) for topic, result in results.items()}


def test_kafka_has_no_complaints_about_a_directory_that_we_went_on_with(continued: Continued) -> None:
    assert continued.complaints == []


def test_kafka_serves_its_old_records_and_our_new_ones(continued: Continued) -> None:
    found = read_records(continued.kafka.bootstrap, TOPICS, "read_uncommitted")

    assert found == continued.uncommitted
    assert [record for record in found if not (record.key or b"").startswith(b"new")] == continued.earlier


def test_kafka_sees_the_same_transactions_as_committed(continued: Continued) -> None:
    found = read_records(continued.kafka.bootstrap, TOPICS, "read_committed")

    assert found == continued.committed
    assert len(found) < len(continued.uncommitted)


def test_kafka_finds_the_same_records_by_time(continued: Continued) -> None:
    for timestamp, ours in continued.found.items():
        kafkas = kafkas_places(continued.kafka, OffsetSpec.for_timestamp(timestamp))
        if kafkas["deleted-records"] == NOTHING != ours["deleted-records"]:
            # Kafka gives up after the first segment that is young enough, even if the log starts behind it.
            assert ours["deleted-records"] == (DELETED_BEFORE, FIRST_TIMESTAMP_MS + DELETED_BEFORE * 1000)
            kafkas["deleted-records"] = ours["deleted-records"]
        assert kafkas == ours
    assert kafkas_places(continued.kafka, OffsetSpec.max_timestamp()) == continued.youngest
