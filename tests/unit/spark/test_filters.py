"""Filters that make ranges shorter: never so short that a record is missed which Spark would keep."""

import operator
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from headrace.protocol.ids import TopicPartition
from headrace.spark.filters import narrow
from headrace.tables.reader.offsets import Range

BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
BEGAN_MS: Final = int(BEGAN.timestamp() * 1000)
SIZE: Final = 20
RANGES: Final = [
    Range(TopicPartition(topic, partition), 100, 100 + SIZE)
    for topic in ("orders", "clicks")
    for partition in range(3)
]
COMPARED: Final[dict[type[Any], Callable[[Any, Any], bool]]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}


def by_time(asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """As a broker answers: the first offset of that time or later. A record has an offset's milliseconds."""
    first = {place: max(timestamp - BEGAN_MS, 100) for place, timestamp in asked.items()}
    return {place: offset if offset < 100 + SIZE else -1 for place, offset in first.items()}


def narrowed(*filters: Filter) -> list[Range]:
    return narrow(filters, RANGES, by_time)


def moment(offset: int) -> datetime:
    return BEGAN + timedelta(milliseconds=offset)


VALUES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "topic": st.sampled_from(["orders", "clicks", "other"]),
    "partition": st.integers(-1, 3),
    "offset": st.integers(95, 125),
    "timestamp": st.integers(95, 125).map(moment),
}


@st.composite
def conditions(draw: st.DrawFn) -> tuple[Filter, Callable[[Mapping[str, Any]], bool]]:
    """A filter as Spark hands it over, and what it means."""
    column = draw(st.sampled_from(sorted(VALUES)))
    if draw(st.booleans()):
        values = tuple(draw(st.lists(VALUES[column], min_size=1, max_size=3)))
        return In((column,), values), lambda row: row[column] in values
    kind = draw(st.sampled_from(sorted(COMPARED, key=lambda each: each.__name__)))
    value = draw(VALUES[column])
    return kind((column,), value), lambda row: COMPARED[kind](row[column], value)


@settings(deadline=None)
@given(st.lists(conditions(), max_size=3))
def test_no_record_that_passes_the_filters_is_left_out(
    drawn: list[tuple[Filter, Callable[[Mapping[str, Any]], bool]]],
) -> None:
    found = narrowed(*(each for each, _ in drawn))
    kept = {(each.partition, offset) for each in found for offset in range(each.first, each.last)}

    for each in RANGES:
        for offset in range(each.first, each.last):
            row = {**each.partition._asdict(), "offset": offset, "timestamp": moment(offset)}
            if all(passes(row) for _, passes in drawn):
                assert (each.partition, offset) in kept
    assert all(each.size > 0 for each in found)


@pytest.mark.parametrize(
    ("filters", "partitions", "records"),
    [
        ([EqualTo(("partition",), 1)], 2, 2 * SIZE),
        ([EqualTo(("topic",), "orders"), EqualNullSafe(("partition",), 0)], 1, SIZE),
        ([In(("partition",), (0, 2))], 4, 4 * SIZE),
        ([EqualTo(("partition",), 9)], 0, 0),
        ([EqualTo(("offset",), 107)], 6, 6),
        ([GreaterThan(("offset",), 117)], 6, 2 * 6),
        ([GreaterThanOrEqual(("offset",), 110), LessThan(("offset",), 113)], 6, 3 * 6),
        ([LessThanOrEqual(("offset",), 100)], 6, 6),
        ([GreaterThanOrEqual(("offset",), 120)], 0, 0),
        ([LessThan(("offset",), 100)], 0, 0),
        ([GreaterThanOrEqual(("timestamp",), moment(115))], 6, 5 * 6),
        ([GreaterThanOrEqual(("timestamp",), moment(500))], 0, 0),
        ([LessThan(("timestamp",), moment(101))], 6, 6 * SIZE),
    ],
)
def test_what_cannot_pass_is_not_fetched(filters: list[Filter], partitions: int, records: int) -> None:
    found = narrowed(*filters)

    assert (len(found), sum(each.size for each in found)) == (partitions, records)


@pytest.mark.parametrize(
    "filter_",
    [
        IsNotNull(("partition",)),
        Not(EqualTo(("partition",), 1)),
        EqualTo(("value",), b"x"),
        EqualTo(("offset", "inner"), 5),
        StringStartsWith(("topic",), "o"),
        EqualTo(("offset",), None),
    ],
)
def test_filters_that_say_nothing_of_places_leave_everything(filter_: Filter) -> None:
    assert narrowed(filter_) == RANGES


def test_a_moment_is_the_same_in_every_time_zone() -> None:
    elsewhere = moment(115).astimezone(timezone(timedelta(hours=-5)))

    assert narrowed(GreaterThanOrEqual(("timestamp",), elsewhere)) == narrowed(
        GreaterThanOrEqual(("timestamp",), moment(115))
    )


def test_a_moment_before_all_time_leaves_everything() -> None:
    """Negative timestamps have other meanings in a request: nobody is asked."""
    long_ago = GreaterThan(("timestamp",), datetime(1900, 1, 1, tzinfo=UTC))

    assert narrow([long_ago], RANGES, lambda asked: dict.fromkeys(asked, -1)) == RANGES
