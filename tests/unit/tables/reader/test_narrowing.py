"""Filters make ranges shorter, and never leave out a row for which they hold."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.protocol.ids import TopicPartition
from headrace.tables.reader.columns import TYPES
from headrace.tables.reader.narrowing import MAX_SEPARATE, Narrowing
from headrace.tables.reader.offsets import Range

SCHEMA = pa.schema(list(TYPES.items()))
START = datetime(2026, 1, 1, tzinfo=UTC)
COMPARE = ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")
LOGS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 60)), min_size=1, max_size=4)


def field(name: str, compare: str, value: Any) -> pc.Expression:
    return getattr(pc.field(name), compare)(pa.scalar(value, TYPES[name]))


def moment(second: int) -> datetime:
    return START + timedelta(seconds=second)


LEAVES = st.one_of(
    st.builds(field, st.just("partition"), st.sampled_from(COMPARE), st.integers(-1, 5)),
    st.builds(field, st.just("offset"), st.sampled_from(COMPARE), st.integers(-5, 130)),
    st.builds(field, st.just("timestamp"), st.sampled_from(COMPARE), st.builds(moment, st.integers(-9, 130))),
    st.builds(field, st.just("topic"), st.sampled_from(COMPARE[4:]), st.sampled_from(["orders", "z"])),
    st.builds(lambda values: pc.field("offset").isin(values), st.lists(st.integers(0, 120), min_size=1)),
    st.just(pc.field("value").is_valid()),
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda one, other: one & other, inner, inner),
        st.builds(lambda one, other: one | other, inner, inner),
        st.builds(lambda one: ~one, inner),
    ),
    max_leaves=5,
)


class Log:
    """Partitions whose records have timestamps that go back now and then."""

    def __init__(self, bounds: list[tuple[int, int]]) -> None:
        self.ranges = [
            Range(TopicPartition("orders", number), first, first + size)
            for number, (first, size) in enumerate(bounds)
        ]

    def second(self, partition: int, offset: int) -> int:
        return offset - 7 * ((offset + partition) % 5 == 0)

    @property
    def table(self) -> pa.Table:
        places = [(each.partition.partition, offset) for each in self.ranges for offset in range(*each[1:])]
        columns = {name: [None] * len(places) for name in TYPES} | {
            "topic": ["orders"] * len(places),
            "partition": [partition for partition, _ in places],
            "offset": [offset for _, offset in places],
            "timestamp": [moment(self.second(*each)) for each in places],
        }
        return pa.table(columns, schema=SCHEMA)

    def first_at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = {}
        for each in self.ranges:
            if each.partition in timestamps:
                at = datetime.fromtimestamp(timestamps[each.partition] / 1000, UTC)
                later = [
                    offset
                    for offset in range(each.first, each.last)
                    if moment(self.second(each.partition.partition, offset)) >= at
                ]
                found[each.partition] = later[0] if later else -1
        return found


@settings(deadline=None, max_examples=150)
@given(LOGS, FILTERS)
def test_no_row_is_left_out(bounds: list[tuple[int, int]], filter_: pc.Expression) -> None:
    log = Log(bounds)
    kept = {
        each.partition.partition: each for each in Narrowing(filter_, SCHEMA).narrow(log.ranges, log.first_at)
    }
    rows = log.table.filter(filter_)
    for partition, offset in zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True):
        assert kept[partition].first <= offset < kept[partition].last, str(filter_)


@pytest.mark.parametrize(
    ("filter_", "kept"),
    [
        (field("offset", "__ge__", 40), [(40, 50), (40, 60)]),
        (field("offset", "__gt__", 50), [None, (51, 60)]),
        (field("offset", "__lt__", 25), [(20, 25), None]),
        (field("offset", "__eq__", 33), [(33, 34), (33, 34)]),
        (field("partition", "__eq__", 1), [None, (30, 60)]),
        (field("partition", "__eq__", 1) & field("offset", "__eq__", 9), [None, None]),
        (
            (field("partition", "__eq__", 0) & field("offset", "__eq__", 21))
            | (field("partition", "__eq__", 1) & field("offset", "__eq__", 59)),
            [(21, 22), (59, 60)],
        ),
        (field("timestamp", "__ge__", moment(45)), [(46, 50), (45, 60)]),
        (field("timestamp", "__lt__", moment(25)), [(20, 50), (30, 60)]),  # later records may be older
        (field("timestamp", "__gt__", moment(99)), [None, None]),
    ],
)
def test_ranges_become_shorter(filter_: pc.Expression, kept: list[tuple[int, int] | None]) -> None:
    log = Log([(20, 30), (30, 30)])

    found = Narrowing(filter_, SCHEMA).narrow(log.ranges, log.first_at)

    assert found == [Range(TopicPartition("orders", n), *each) for n, each in enumerate(kept) if each]


def test_many_partitions_are_narrowed_together() -> None:
    log = Log([(0, 100)] * (MAX_SEPARATE + 4))
    filter_ = field("offset", "__ge__", 90) & field("partition", "__ge__", 1)

    found = Narrowing(filter_, SCHEMA).narrow(log.ranges, log.first_at)

    assert found == [Range(each.partition, 90, 100) for each in log.ranges[1:]]
