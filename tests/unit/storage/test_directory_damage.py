"""Log directories with damage: a damaged log is reported, and the others work."""

from pathlib import Path

import pytest

from headrace.protocol.batch import build_batch
from headrace.storage.directory import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
)
from headrace.storage.errors import CorruptLog, LogOffline, StorageError
from support.records import TIMESTAMP
from unit.storage.directory_contents import (
    CONFIG,
    ORDERS,
    PAYMENTS,
    TOPIC_ID,
    OpenDirectory,
    crash,
    fill,
    flip_a_bit,
)


def with_damage_below_the_recovery_point(open_directory: OpenDirectory, path: Path) -> None:
    directory = open_directory()
    for partition in (ORDERS, PAYMENTS):
        fill(directory.create(partition, TOPIC_ID, CONFIG), 3)
        directory.logs[partition].flush()
    directory.logs[ORDERS].delete_records_before(1)
    directory.checkpoint()
    crash(directory)
    flip_a_bit(path / "orders-0" / "00000000000000000000.log", 1500)


def test_a_damaged_log_is_reported_and_the_others_work(open_directory: OpenDirectory, path: Path) -> None:
    with_damage_below_the_recovery_point(open_directory, path)
    directory = open_directory()

    assert set(directory.failed) == {ORDERS}
    assert "00000000000000000000.log is corrupt at byte" in directory.failed[ORDERS]
    fill(directory.logs[PAYMENTS])
    assert directory.logs[PAYMENTS].log_end_offset == 13
    directory.close()
    assert not (path / CLEAN_SHUTDOWN).exists()


def test_a_damaged_log_is_still_reported_at_the_next_start_and_not_cut(
    open_directory: OpenDirectory, path: Path
) -> None:
    with_damage_below_the_recovery_point(open_directory, path)
    data = (path / "orders-0" / "00000000000000000000.log").read_bytes()
    for _ in range(2):
        directory = open_directory()
        directory.checkpoint()
        directory.close()
        assert set(directory.failed) == {ORDERS}
    assert (path / "orders-0" / "00000000000000000000.log").read_bytes() == data

    flip_a_bit(path / "orders-0" / "00000000000000000000.log", 1500)  # repaired
    repaired = open_directory()
    assert (repaired.failed, repaired.logs[ORDERS].log_start_offset) == ({}, 1)
    assert repaired.logs[ORDERS].log_end_offset == 3


def test_a_damaged_log_is_not_created_anew_but_can_be_deleted(
    open_directory: OpenDirectory, path: Path
) -> None:
    with_damage_below_the_recovery_point(open_directory, path)
    directory = open_directory()
    with pytest.raises(StorageError, match="is corrupt at byte"):
        directory.create(ORDERS, TOPIC_ID, CONFIG)

    directory.delete(ORDERS)
    assert not (path / "orders-0").exists()
    assert directory.create(ORDERS, TOPIC_ID, CONFIG).log_end_offset == 0


def test_a_marker_that_makes_no_sense_fails_its_log_alone(open_directory: OpenDirectory, path: Path) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    fill(directory.create(PAYMENTS, TOPIC_ID, CONFIG))
    crash(directory)
    nonsense = build_batch(
        b"\xff" * 20,
        base_offset=10,
        last_offset_delta=0,
        records_count=1,
        base_timestamp=TIMESTAMP,
        max_timestamp=TIMESTAMP,
        leader_epoch=0,
        control=True,
        producer_id=1,
        producer_epoch=0,
    )
    last = max((path / "orders-0").glob("*.log"))
    last.write_bytes(last.read_bytes() + nonsense)

    again = open_directory()
    assert (set(again.failed), set(again.logs)) == ({ORDERS}, {PAYMENTS})


def test_a_topic_id_that_cannot_be_read_fails_its_log_alone(
    open_directory: OpenDirectory, path: Path
) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG), 1)
    fill(directory.create(PAYMENTS, TOPIC_ID, CONFIG), 1)
    directory.close()
    (path / "orders-0" / "partition.metadata").write_text("version: 0\n")

    again = open_directory()
    assert (set(again.failed), set(again.logs)) == ({ORDERS}, {PAYMENTS})


@pytest.mark.parametrize("name", [RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS])
@pytest.mark.parametrize("content", [b"", b"0\n2\norders 0 5\n", b"\xff\xfe", b"0\n1\norders 0\n"])
def test_a_damaged_checkpoint_is_no_obstacle(
    open_directory: OpenDirectory, path: Path, name: str, content: bytes
) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    crash(directory)
    (path / name).write_bytes(content)

    assert open_directory().logs[ORDERS].log_end_offset == 10


def test_an_offline_log_leaves_no_clean_marker_and_keeps_its_recovery_point(
    open_directory: OpenDirectory, path: Path
) -> None:
    directory = open_directory()
    log = directory.create(ORDERS, TOPIC_ID, CONFIG)
    fill(log, 2)
    log.flush()
    log.release()
    data = (path / "orders-0" / "00000000000000000000.log").read_bytes()
    (path / "orders-0" / "00000000000000000000.log").unlink()
    with pytest.raises(LogOffline):
        log.read(0, 1)
    directory.close()
    (path / "orders-0" / "00000000000000000000.log").write_bytes(data)

    assert not (path / CLEAN_SHUTDOWN).exists()
    assert open_directory().logs[ORDERS].recovery_point == 2


def test_a_log_that_cannot_be_closed_does_not_keep_the_others_from_it(
    open_directory: OpenDirectory, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG), 2)
    fill(directory.create(PAYMENTS, TOPIC_ID, CONFIG), 2)

    def damaged() -> None:
        raise CorruptLog(path / "orders-0", 0, "found on closing")

    monkeypatch.setattr(directory.logs[ORDERS], "close", damaged)
    directory.close()
    assert not (path / CLEAN_SHUTDOWN).exists()
    assert "payments 3 2" in (path / RECOVERY_POINTS).read_text()
    open_directory()
