"""Filter pushdown: filters on topic, partition, offset and timestamp make the ranges shorter.

Spark applies every filter again to the rows, so a range may be too long, but never too short.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from headrace.protocol.ids import TopicPartition
from headrace.tables.reader.offsets import Range

_COMPARE: Final[Mapping[type[Filter], Callable[[Any, Any], bool]]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
_COLUMNS: Final = {"partition", "offset", "timestamp", "topic"}

ByTime = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]]


class Narrowing:
    """The filters of a query that can shorten ranges."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self._filters = [filter_ for filter_ in filters if _column(filter_) in _COLUMNS]

    def __bool__(self) -> bool:
        return bool(self._filters)

    def narrow(self, ranges: Iterable[Range], first_at: ByTime) -> list[Range]:
        """Return the parts of `ranges` that may match; `first_at` returns offsets of timestamps."""
        kept = [
            self._by_offset(whole)
            for whole in ranges
            if all(_may_hold(whole.partition, filter_) for filter_ in self._filters)
        ]
        since = self._since_ms()
        if since is not None:
            offsets = first_at({part.partition: since for part in kept if part.size > 0})
            for n, part in enumerate(kept):
                offset = offsets.get(part.partition, part.first)
                # A negative offset means that no record matches.
                first = part.last if offset < 0 else max(part.first, offset)
                kept[n] = Range(part.partition, first, max(first, part.last))
        return [part for part in kept if part.size > 0]

    def _by_offset(self, whole: Range) -> Range:
        first, last = whole.first, whole.last
        for filter_ in self._filters:
            if _column(filter_) != "offset":
                continue
            match filter_:
                case EqualTo(_, value) | EqualNullSafe(_, value) if value is not None:
                    first, last = max(first, value), min(last, value + 1)
                case GreaterThan(_, value):
                    first = max(first, value + 1)
                case GreaterThanOrEqual(_, value):
                    first = max(first, value)
                case LessThan(_, value):
                    last = min(last, value)
                case LessThanOrEqual(_, value):
                    last = min(last, value + 1)
        return Range(whole.partition, first, max(first, last))

    def _since_ms(self) -> int | None:
        """Return the earliest timestamp that can match.

        Timestamps may be in any order, so only records before the first one with that timestamp are skipped.
        """
        lower_bounds = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual)
        moments = [
            int(filter_.value.timestamp() * 1000 // 1)  # rounded down, so that no record is missed
            for filter_ in self._filters
            if _column(filter_) == "timestamp"
            and isinstance(filter_, lower_bounds)
            and isinstance(filter_.value, datetime)
        ]
        # Negative timestamps have special meanings in ListOffsets, and no record is so old.
        return max((moment for moment in moments if moment > 0), default=None)


def _column(filter_: Filter) -> str:
    attribute: tuple[str, ...] = getattr(filter_, "attribute", ())
    return attribute[0] if len(attribute) == 1 else ""


def _may_hold(partition: TopicPartition, filter_: Filter) -> bool:
    """Whether a record of this partition can match, by its topic and partition."""
    column = _column(filter_)
    if column not in {"partition", "topic"}:
        return True
    own: Any = partition.partition if column == "partition" else partition.topic
    if isinstance(filter_, In):
        return own in filter_.value
    compare = _COMPARE.get(type(filter_))
    return compare is None or compare(own, getattr(filter_, "value", None))
