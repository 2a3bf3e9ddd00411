"""Where a reset moves a group to."""

import pytest

from headrace.client.errors import ClientError
from headrace.client.groups.reset import (
    Reset,
    ShiftBy,
    Standing,
    Target,
    ToCurrent,
    ToEach,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
    plan,
)
from headrace.protocol.ids import TopicPartition

ORDERS = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("target", "new", "note"),
    [
        (ToEarliest(), 20, None),
        (ToLatest(), 90, None),
        (ToCurrent(), 25, None),
        (ToOffset(20), 20, None),
        (ToOffset(90), 90, None),
        (ToOffset(91), 90, "91 is past the end of the log"),
        (ToOffset(19), 20, "19 is before the start of the log"),
        (ToOffset(0), 20, "0 is before the start of the log"),
        (ShiftBy(0), 25, None),
        (ShiftBy(10), 35, None),
        (ShiftBy(-5), 20, None),
        (ShiftBy(-6), 20, "19 is before the start of the log"),
        (ShiftBy(1000), 90, "1025 is past the end of the log"),
        (ToTime(5), 40, None),
        (ToEach({ORDERS: 33}), 33, None),
        (ToEach({ORDERS: 3}), 20, "3 is before the start of the log"),
    ],
)
def test_where_each_target_leads(target: Target, new: int, note: str | None) -> None:
    at = Standing(partition=ORDERS, committed=25, start=20, end=90, at_time=40)
    assert plan(target, [at]) == [Reset(topic="orders", partition=0, old=25, new=new, note=note)]


@pytest.mark.parametrize(
    ("target", "new", "note"),
    [
        (ToEarliest(), 20, None),
        (ToCurrent(), 90, "nothing was committed"),
        (ToTime(5), 90, "no record since then"),
    ],
)
def test_where_nothing_is_committed_and_no_record_is_new_enough(
    target: Target, new: int, note: str | None
) -> None:
    at = Standing(partition=ORDERS, committed=None, start=20, end=90)
    assert plan(target, [at]) == [Reset(topic="orders", partition=0, old=None, new=new, note=note)]


def test_what_is_not_committed_cannot_be_shifted() -> None:
    at = Standing(partition=ORDERS, committed=None, start=0, end=9)
    with pytest.raises(ClientError, match="orders-0: nothing is committed that could be shifted"):
        plan(ShiftBy(1), [at])


def test_a_plan_is_in_the_order_of_topics_and_partitions() -> None:
    places = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 2)]
    made = plan(ToLatest(), [Standing(partition=each, committed=None, start=0, end=0) for each in places])
    assert [(each.topic, each.partition) for each in made] == [("a", 2), ("a", 10), ("b", 0)]
