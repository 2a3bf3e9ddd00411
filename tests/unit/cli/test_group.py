"""Groups as they are printed."""

from dataclasses import replace

import pytest

from headrace.cli.group import (
    assignment,
    draw_group,
    draw_groups,
    draw_members,
    idle_sentence,
    short_names,
    spans,
)
from headrace.cli.support import output
from headrace.client.groups.group import Assigned, Group, Member, Progress
from headrace.client.wire.requests import Coordinator


@pytest.mark.parametrize(
    ("numbers", "text"), [((), ""), ((3,), "3"), ((0, 1, 2, 5), "0-2,5"), ((9, 7, 8), "7-9"), ((1, 3), "1,3")]
)
def test_partitions_in_a_row_are_a_span(numbers: tuple[int, ...], text: str) -> None:
    assert spans(numbers) == text


def test_an_assignment_names_each_topic_once() -> None:
    both = (Assigned(topic="a", partitions=(0, 1)), Assigned(topic="b", partitions=(4,)))
    assert assignment(member("m", both)) == "a:0-1 b:4"


def test_member_ids_are_cut_where_they_can_be_told_apart() -> None:
    ids = ["c-11112222-0000", "c-11112222-1000", "c-33334444-0000"]
    assert short_names([member(each) for each in ids]) == {
        "c-11112222-0000": "11112222-0",
        "c-11112222-1000": "11112222-1",
        "c-33334444-0000": "33334444-0",
    }


def test_a_static_member_is_called_by_its_instance_id() -> None:
    static = replace(member("till-1-0000"), instance_id="till-1")
    assert short_names([static]) == {"till-1-0000": "till-1"}


def test_there_may_be_no_members_to_name() -> None:
    assert short_names([]) == {}


def test_a_group_at_80_columns() -> None:
    busy = member("c-aaaaaaaa-1", (Assigned(topic="orders", partitions=(0, 1)),))
    shown = draw_group(
        described(
            [busy, member("c-bbbbbbbb-1"), member("c-dddddddd-1")],
            [progress(0, 1000, 1250, busy), progress(1, None, 7, busy)],
        )
    )
    assert printed(shown) == [
        "g: Stable, 3 members",
        "type classic, assignor range, coordinator 1 at localhost:9092",
        "",
        "topic   partition  committed  log end  lag  member    client id  host",
        "orders          0       1000     1250  250  aaaaaaaa  c          10.0.0.7",
        "orders          1          -        7    -  aaaaaaaa  c          10.0.0.7",
        "(idle)          -          -        -    -  bbbbbbbb  c          10.0.0.7",
        "(idle)          -          -        -    -  dddddddd  c          10.0.0.7",
        "",
        "total lag 250, not counting 1 partition with nothing committed",
        "2 of 3 members are idle: there are more members than partitions",
    ]


def test_a_group_without_members_has_no_columns_for_them() -> None:
    shown = draw_group(replace(described([], [progress(0, 5, 5, None)]), state="Empty", assignor=None))
    assert printed(shown) == [
        "g: Empty, no members",
        "type classic, coordinator 1 at localhost:9092",
        "",
        "topic   partition  committed  log end  lag",
        "orders          0          5        5    0",
        "",
        "total lag 0",
    ]


def test_members_with_their_assignments() -> None:
    busy = member("c-aaaaaaaa-1", (Assigned(topic="orders", partitions=(0, 1)),))
    lines = printed(draw_members(described([busy, member("c-bbbbbbbb-1")], [])))
    assert lines[3:] == [
        "member    client id  host      partitions  assignment",
        "aaaaaaaa  c          10.0.0.7           2  orders:0-1",
        "bbbbbbbb  c          10.0.0.7           0  (idle)",
        "",
        "1 of 2 members is idle: the other members have all partitions",
    ]


def test_nobody_is_called_idle_while_the_group_rebalances() -> None:
    rebalancing = replace(described([member("m")], []), state="PreparingRebalance")
    assert idle_sentence(rebalancing) == (
        "the group is rebalancing: its members get their partitions when it is stable"
    )
    assert "(idle)" not in "".join(printed(draw_group(rebalancing)))
    assert "(idle)" not in "".join(printed(draw_members(rebalancing)))


def test_members_that_subscribe_to_nothing_that_is_there() -> None:
    nobody = described([member("m"), member("n")], [])
    assert idle_sentence(nobody) == (
        "2 of 2 members are idle: the topics that they subscribe to have no partitions"
    )


def test_there_may_be_no_groups() -> None:
    assert draw_groups([], filtered=False) == "there are no groups"
    assert draw_groups([], filtered=True) == "no group matches"


def member(member_id: str, assigned: tuple[Assigned, ...] = ()) -> Member:
    return Member(member_id=member_id, instance_id=None, client_id="c", host="10.0.0.7", assignment=assigned)


def progress(partition: int, committed: int | None, end: int, owner: Member | None) -> Progress:
    return Progress(
        topic="orders",
        partition=partition,
        committed=committed,
        log_end=end,
        lag=None if committed is None else end - committed,
        member_id=None if owner is None else owner.member_id,
    )


def described(members: list[Member], partitions: list[Progress]) -> Group:
    return Group(
        name="g",
        state="Stable",
        type="classic",
        assignor="range",
        coordinator=Coordinator(id=1, host="localhost", port=9092),
        members=tuple(members),
        idle_members=sum(not each.assignment for each in members),
        partitions=tuple(partitions),
        total_lag=sum(each.lag or 0 for each in partitions),
    )


def printed(what: output.Drawable) -> list[str]:
    return list(output.lines(what, 80))
