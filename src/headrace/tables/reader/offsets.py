"""Ranges of offsets, and how they are split for parallel readers."""

from collections.abc import Iterable, Mapping
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from headrace.protocol.ids import TopicPartition

LATEST: Final = -1
EARLIEST: Final = -2

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
