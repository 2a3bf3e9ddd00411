"""Offsets by partition: Spark's JSON for them, and how a batch is limited and split.

The JSON is that of Spark's own Kafka source: `{"orders": {"0": 17, "1": 4}}`.
"""

import json
from collections.abc import Iterable, Mapping
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from headrace.protocol.ids import TopicPartition

LATEST: Final = -1
EARLIEST: Final = -2
_MAX: Final = 2**63 - 1  # of an offset or a timestamp


Offsets: TypeAlias = Mapping[TopicPartition, int]


class Range(NamedTuple):
    """The records of one partition from `first` to before `last`."""

    partition: TopicPartition
    first: int
    last: int

    @property
    def size(self) -> int:
        return self.last - self.first

    def __str__(self) -> str:
        return f"{self.partition} offsets {self.first} to {self.last}"


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Return offsets as Spark's checkpoints have them, with topics and partitions in order."""
    found: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return found


def from_json(value: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in value.items()
        for partition, offset in partitions.items()
    }


def parse(text: str) -> dict[TopicPartition, int]:
    """Return the offsets in an option's JSON; ValueError says what is wrong with it."""
    value = _parsed(text)
    found: dict[TopicPartition, int] = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, dict):
            raise ValueError(f'expected partitions of {topic}, as in {{"{topic}": {{"0": 17}}}}')  # noqa: TRY004
        for partition, offset in partitions.items():
            if not partition.isdecimal():
                raise ValueError(f"{partition!r} of {topic} is not a partition number")
            if not isinstance(offset, int) or isinstance(offset, bool) or not EARLIEST <= offset <= _MAX:
                raise ValueError(f"{offset!r} of {topic}-{partition} is not an offset")
            found[TopicPartition(topic, int(partition))] = offset
    return found


def parse_assignment(text: str) -> list[TopicPartition]:
    """Return the partitions in an option's JSON: `{"orders": [0, 1]}`."""
    found: list[TopicPartition] = []
    for topic, partitions in _parsed(text).items():
        if not isinstance(partitions, list) or not all(_is_partition(each) for each in partitions):
            raise ValueError(f'expected the partitions of {topic}, as in {{"{topic}": [0, 1]}}')
        found += [TopicPartition(topic, each) for each in partitions]
    if not found:
        raise ValueError('no partition is named; expected {"topic": [0, 1]}')
    return found


def _is_partition(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError('expected an object, as in {"topic": {"0": 17}}')  # noqa: TRY004
    return value


def admit(start: Offsets, latest: Offsets, limit: int) -> dict[TopicPartition, int]:
    """Return where a batch of about `limit` records ends; each partition has a proportional share.

    A partition with records contributes at least one, so that none starves. A partition that ends before
    `start`, because its topic was recreated, contributes none.
    """
    waiting = {partition: max(0, last - start.get(partition, last)) for partition, last in latest.items()}
    total = sum(waiting.values())
    if total <= limit:
        return dict(latest)
    ends: dict[TopicPartition, int] = {}
    for partition, count in waiting.items():
        share = limit * count / total
        take = int(share) if share >= 1 else -int(-share // 1)  # less than one record becomes one
        ends[partition] = min(latest[partition], start.get(partition, latest[partition]) + take)
    return ends


def split(ranges: Iterable[Range], *, at_least: int = 0, at_most_records: int = 0) -> list[Range]:
    """Split ranges evenly until there are `at_least` of them, none with more than `at_most_records`.

    The range with the largest pieces gets one more piece, over and over, so that the largest partition does
    not delay the batch.
    """
    whole = [each for each in ranges if each.size > 0]
    counts = [-(-each.size // at_most_records) if at_most_records else 1 for each in whole]
    # Sizes are negative, for the heap has the least on top.
    pieces = [(-each.size / counts[index], index) for index, each in enumerate(whole)]
    heapify(pieces)
    for _ in range(min(at_least, sum(each.size for each in whole)) - sum(counts)):
        _, largest = pieces[0]
        counts[largest] += 1
        heapreplace(pieces, (-whole[largest].size / counts[largest], largest))
    return [piece for each, count in zip(whole, counts, strict=True) for piece in _pieces(each, count)]


def _pieces(whole: Range, count: int) -> list[Range]:
    borders = [whole.first + whole.size * index // count for index in range(count + 1)]
    return [Range(whole.partition, first, last) for first, last in pairwise(borders)]
