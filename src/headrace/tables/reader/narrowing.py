"""Filter pushdown: a filter on topic, partition, offset and timestamp makes ranges shorter.

Arrow decides whether a filter can hold for any row of a range, as it does for the fragments of a dataset: the
range is stated as the guarantee of a fragment that is never read. The ends of ranges are found by bisection.
The filter has to be applied again to the rows: a range may be too long, but never too short.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from headrace.protocol.ids import TopicPartition
from headrace.tables.reader.offsets import Range

MAX_SEPARATE: Final = 16  # partitions whose ranges are narrowed one by one; more are narrowed together
_LATEST_MS: Final = 1 << 43  # in the year 2248: later timestamps are not searched for

ByTime = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]]


class Narrowing:
    """A filter on the rows of topics that have `schema`."""

    def __init__(self, filter_: pc.Expression, schema: pa.Schema) -> None:
        self._filter = filter_
        self._schema = schema
        self._format = ds.ParquetFileFormat()
        self._nowhere = fs.LocalFileSystem()

    def narrow(self, ranges: Iterable[Range], first_at: ByTime) -> list[Range]:
        """Return the parts of `ranges` that may match; `first_at` returns offsets of timestamps."""
        kept = [each for each in ranges if each.size > 0]
        possible = self._may_hold([_in_partition(each.partition) for each in kept])
        kept = [each for each, may in zip(kept, possible, strict=True) if may]
        groups = [[each] for each in kept] if len(kept) <= MAX_SEPARATE else [kept]
        kept = [each for group in groups for each in self._by_offset(group)]
        since: dict[TopicPartition, int] = {}
        for group in [[each] for each in kept] if len(kept) <= MAX_SEPARATE else [kept]:
            earliest_ms = self._earliest_ms(group)
            if earliest_ms is not None:
                since |= {each.partition: earliest_ms for each in group}
        found = first_at(since) if since else {}
        kept = [_from(each, found.get(each.partition, each.first)) for each in kept]
        return [each for each in kept if each.size > 0]

    def _by_offset(self, ranges: Sequence[Range]) -> list[Range]:
        """Return the ranges without offsets below and above which the filter holds for no row."""
        where = _in_partition(ranges[0].partition) if len(ranges) == 1 else None
        offset = pc.field("offset")
        least, most = min(each.first for each in ranges), max(each.last for each in ranges) - 1
        if not self._holds(where, offset >= least, offset <= most):
            return []
        first = _least(least, most, lambda at: self._holds(where, offset >= least, offset <= at))
        last = -_least(-most, -first, lambda at: self._holds(where, offset >= -at, offset <= most))
        return [
            Range(each.partition, max(each.first, first), min(each.last, last + 1))
            for each in ranges
            if each.first <= last and each.last > first
        ]

    def _earliest_ms(self, ranges: Sequence[Range]) -> int | None:
        """Return the earliest timestamp that can match; None if any can.

        Timestamps may be in any order, so only records before the first one with that timestamp are skipped,
        and none at the end.
        """
        where = _in_partition(ranges[0].partition) if len(ranges) == 1 else None

        def may_be_at(at_ms: int) -> bool:
            moment = pa.scalar(at_ms * 1000, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
            return self._holds(where, pc.field("timestamp") <= moment)

        # Timestamps up to 0 have special meanings in ListOffsets, and no record is so old.
        if may_be_at(0) or not may_be_at(_LATEST_MS):
            return None
        return _least(0, _LATEST_MS, may_be_at)

    def _holds(self, *guarantees: pc.Expression | None) -> bool:
        together: Any = None
        for guarantee in guarantees:
            if guarantee is not None:
                together = guarantee if together is None else together & guarantee
        return self._may_hold([together])[0]

    def _may_hold(self, guarantees: Sequence[pc.Expression]) -> list[bool]:
        """Return for each guarantee whether the filter can hold for a row that fulfils it."""
        fragments = [
            self._format.make_fragment(str(number), filesystem=self._nowhere, partition_expression=each)
            for number, each in enumerate(guarantees)
        ]
        dataset = ds.FileSystemDataset(fragments, self._schema, self._format, self._nowhere)
        possible = {each.path for each in dataset.get_fragments(filter=self._filter)}
        return [str(number) in possible for number in range(len(guarantees))]


def _in_partition(partition: TopicPartition) -> pc.Expression:
    number = pa.scalar(partition.partition, pa.int32())
    return (pc.field("topic") == partition.topic) & (pc.field("partition") == number)


def _least(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the least number that `holds`; it holds for `high`, and for all numbers after the least one."""
    if holds(low):
        return low
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def _from(whole: Range, offset: int) -> Range:
    """Return the range from `offset` on; a negative offset means that no record matches."""
    first = whole.last if offset < 0 else max(whole.first, offset)
    return Range(whole.partition, first, max(first, whole.last))
