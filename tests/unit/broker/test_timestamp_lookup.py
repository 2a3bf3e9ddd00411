"""Lookups by time whose steps run in threads, while the log goes on."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.broker.replicas.partition import Partition
from headrace.protocol.ids import TopicPartition
from headrace.storage.config import LogConfig
from headrace.storage.errors import LogOffline
from headrace.storage.time_lookup import FoundOffset
from support.logs import open_test_log
from support.records import make_batch


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    """Three segments with records at times 10 and 11, 20 and 21, 30 and 31."""
    log = open_test_log(tmp_path / "t-0", LogConfig())
    for time in (10, 20, 30):
        log.append(make_batch(2, timestamps=[time, time + 1]), leader_epoch=0)
        log.roll()
    yield Partition(TopicPartition("t", 0), b"", log, 1)
    log.release()


def find(
    partition: Partition, timestamp: int | None, before: Callable[[int], None] = lambda _number: None
) -> FoundOffset | None:
    """What is found; `before` is called with the number of each step before it runs in a thread."""
    steps = 0

    async def run(step: Callable[[], None]) -> None:
        nonlocal steps
        before(steps)
        steps += 1
        await asyncio.to_thread(step)

    return asyncio.run(partition.find(timestamp, run))


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [(0, (10, 0)), (11, (11, 1)), (12, (20, 2)), (31, (31, 5)), (32, None), (None, (31, 5))],
)
def test_records_are_read_in_a_thread(
    partition: Partition, timestamp: int | None, found: tuple[int, int] | None
) -> None:
    assert find(partition, timestamp) == (None if found is None else FoundOffset(*found, leader_epoch=0))


@pytest.mark.parametrize("timestamp", [0, None])
def test_segments_that_go_meanwhile_are_not_missed(partition: Partition, timestamp: int | None) -> None:

    def delete(number: int) -> None:
        if number == 0:
            partition.log.delete_oldest_segments(2)

    assert find(partition, timestamp, delete) == FoundOffset(*((30, 4) if timestamp == 0 else (31, 5)), 0)
    assert partition.log.offline is None


def test_a_search_in_a_log_that_is_gone_is_refused(partition: Partition) -> None:
    def retire(_number: int) -> None:
        partition.log.retire()
        for segment in partition.log.segments:
            segment.path.unlink(missing_ok=True)

    with pytest.raises(LogOffline):
        find(partition, None, retire)
