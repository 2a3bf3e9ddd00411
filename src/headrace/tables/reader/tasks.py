"""The tasks of a read: each has one range, or several small ones that have the same leader.

A task of Spark costs 50 ms of CPU, as much as reading thousands of records, so small ranges are combined. A
driver does not know how many cores the executors have: its own are taken for theirs, and `minPartitions` asks
for more tasks.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from headrace.client.wire.connection import Address
from headrace.protocol.ids import TopicPartition
from headrace.tables.reader.offsets import Range

FEWEST_RECORDS: Final = 5_000  # that are worth a task, if ranges can be combined
MOST_RECORDS: Final = 50_000  # of a task with several ranges
_UNEVEN: Final = 1.25  # how much larger a task may be, so that ranges of different sizes fit


def records_per_task(records: int, cores: int) -> int:
    """Return the limit for tasks with several ranges, so that there is about one for each core."""
    return min(MOST_RECORDS, max(FEWEST_RECORDS, int(_UNEVEN * records / cores)))


def combine(
    ranges: Sequence[Range],
    leaders: Mapping[TopicPartition, Address],
    *,
    at_least: int = 0,
    at_most_records: int = MOST_RECORDS,
) -> list[list[Range]]:
    """Return groups of ranges, one for each task: as few as possible, but `at_least` so many if there are.

    The ranges of a group have one leader and together `at_most_records`. A range that has more is alone, and
    so is each of several pieces of a partition: a Fetch request names a partition once.
    """
    groups = _groups(ranges, leaders, at_most_records)
    while len(groups) < min(at_least, len(ranges)):
        at_most_records //= 2
        groups = _groups(ranges, leaders, at_most_records)
    return groups


def _groups(
    ranges: Iterable[Range], leaders: Mapping[TopicPartition, Address], most: int
) -> list[list[Range]]:
    ranges = list(ranges)
    pieces = Counter(each.partition for each in ranges)
    groups: list[list[Range]] = []
    open_groups: dict[Address, tuple[list[Range], int]] = {}
    for each in ranges:
        leader = leaders.get(each.partition)
        if leader is None or pieces[each.partition] > 1:
            groups.append([each])
            continue
        group, records = open_groups.get(leader, ([], most))
        if records + each.size > most:
            group, records = [], 0
            groups.append(group)
        group.append(each)
        open_groups[leader] = (group, records + each.size)
    return groups
