"""Logs that are created in and deleted from a log directory."""

from pathlib import Path

import pytest

from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.storage.compaction.cleaner import install, plan_compaction, run_compaction
from headrace.storage.errors import InvalidTopic, LogOffline
from support.logs import COMPACTED, pairs_in, put
from unit.storage.directory_contents import (
    CONFIG,
    ORDERS,
    TOPIC_ID,
    OpenDirectory,
    crash,
    everything_in,
    fill,
)


def test_a_deleted_log_does_not_come_back(open_directory: OpenDirectory, path: Path) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    directory.high_watermarks[ORDERS] = directory.cleaner_offsets[ORDERS] = 5
    directory.delete(ORDERS)
    assert (directory.logs, directory.topic_ids, dict(directory.high_watermarks)) == ({}, {}, {})
    crash(directory)

    again = open_directory()
    assert (again.logs, again.failed) == ({}, {})
    assert [child for child in path.iterdir() if child.is_dir()] == []


def test_a_compaction_of_a_deleted_log_does_not_reach_a_new_one_of_its_name(
    open_directory: OpenDirectory,
) -> None:
    directory = open_directory(config=COMPACTED)
    log = directory.create(ORDERS, TOPIC_ID, COMPACTED)
    for number in range(100):
        put(log, (b"key", b"%d" % number))
    plan = plan_compaction(log, first_dirty_offset=0, up_to_offset=log.log_end_offset)
    assert plan is not None
    compacted = run_compaction(plan, max_keys=10, stop=lambda: False)

    directory.delete(ORDERS)
    anew = directory.create(ORDERS, TOPIC_ID, COMPACTED)
    put(anew, (b"key", b"new"))

    assert install(log, compacted) is None
    assert pairs_in(anew) == [(0, b"key", b"new")]
    with pytest.raises(LogOffline, match="has been deleted"):
        log.read(0, 1)


def test_a_log_of_the_longest_name_can_be_deleted(open_directory: OpenDirectory, path: Path) -> None:
    directory = open_directory()
    partition = TopicPartition("x" * 249, 0)
    directory.create(partition, TOPIC_ID, CONFIG)
    directory.delete(partition)
    assert not (path / str(partition)).exists()

    directory.unlink_deleted()
    assert [child for child in path.iterdir() if child.is_dir()] == []


def test_a_new_log_inherits_nothing_from_a_deleted_one_of_its_name(open_directory: OpenDirectory) -> None:
    """Though the process dies before the next checkpoint."""
    directory = open_directory()
    log = directory.create(ORDERS, TOPIC_ID, CONFIG)
    fill(log)
    log.flush()
    log.delete_records_before(8)
    directory.high_watermarks[ORDERS] = directory.cleaner_offsets[ORDERS] = 9
    directory.checkpoint()
    directory.delete(ORDERS)
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG), 3)
    crash(directory)

    again = open_directory()
    log = again.logs[ORDERS]
    assert (log.log_start_offset, log.recovery_point, log.log_end_offset) == (0, 0, 3)
    assert not again.high_watermarks
    assert not again.cleaner_offsets


def test_a_new_log_inherits_nothing_from_one_deleted_before_a_crash(open_directory: OpenDirectory) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    directory.logs[ORDERS].delete_records_before(8)
    directory.high_watermarks[ORDERS] = 9
    directory.checkpoint()
    directory.delete(ORDERS)
    crash(directory)

    directory = open_directory()
    assert directory.high_watermarks == {}
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG), 3)
    crash(directory)
    assert open_directory().logs[ORDERS].log_start_offset == 0


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "../up", "ünïcode", "x" * 250, "a\n"])
def test_a_name_that_kafka_refuses_is_refused_and_leaves_nothing(
    open_directory: OpenDirectory, path: Path, name: str
) -> None:
    directory = open_directory()
    before = everything_in(path)
    with pytest.raises(InvalidTopic) as refused:
        directory.create(TopicPartition(name, 0), TOPIC_ID, CONFIG)

    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert everything_in(path) == before


@pytest.mark.parametrize(
    "name", ["a-b.c_d", "-", "...", "orders-3", "a-delete", "x" * 249, "__consumer_offsets"]
)
def test_names_with_dashes_and_dots_come_back_as_they_were(open_directory: OpenDirectory, name: str) -> None:
    directory = open_directory()
    partitions = {TopicPartition(name, number) for number in (0, 7, 12)}
    for partition in partitions:
        fill(directory.create(partition, TOPIC_ID, CONFIG), 1)
    directory.close()

    assert set(open_directory().logs) == partitions
