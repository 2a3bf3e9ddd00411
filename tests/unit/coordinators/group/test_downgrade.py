"""A consumer group in which only classic members are left is a classic group again."""

from typing import Any

import pytest

from headrace.coordinators.group.classic import ClassicGroup, ClassicState
from headrace.coordinators.group.consumer import ConsumerGroup
from headrace.coordinators.group.decision import Joined
from headrace.coordinators.group.errors import RebalanceInProgress
from support.groups import (
    GroupDesk,
    beat_request,
    commit_request,
    compacted,
    join_request,
    subscription,
    sync_request,
)
from unit.coordinators.group.stories import classic, classic_group, consumers, desk, numbers, places


def mixed(at: GroupDesk, **some: Any) -> list[str]:
    """Two classic members and a consumer, `a`, settled."""
    member_ids = classic_group(at, (0, 1), (2,), **some)
    epoch = at.beat(beat_request("a", 0)).epoch
    for member_id in member_ids:
        at.join(join_request(member_id, **some))
        at.sync(sync_request(member_id, epoch))
    at.beat(beat_request("a", epoch))
    assert consumers(at).state_name == "Stable"
    return member_ids


def test_when_the_last_consumer_leaves_the_group_is_classic_again() -> None:
    at = desk()
    first, second = mixed(at)
    epoch = consumers(at).epoch

    at.beat(beat_request("a", -1))

    group = classic(at)
    assert (group.state, group.generation, group.protocol_name) == (ClassicState.PREPARING, epoch, "range")
    assert group.members.keys() == {first, second}
    assert len(places(group.members[first].assignment) | places(group.members[second].assignment)) == 2


def test_everybody_then_joins_again_and_the_rest_is_shared() -> None:
    at = desk()
    first, second = mixed(at)
    epoch = consumers(at).epoch
    at.beat(beat_request("a", -1))

    with pytest.raises(RebalanceInProgress):
        at.heartbeat(first, epoch)
    waiters = [at.join(join_request(member_id)) for member_id in (first, second)]

    assert {waiter.answer.generation for waiter in waiters} == {epoch + 1}
    assert sum(waiter.answer.leader == waiter.answer.member_id for waiter in waiters) == 1


def test_nothing_is_given_out_before_that() -> None:
    at = desk()
    first, _ = mixed(at)
    at.beat(beat_request("a", -1))

    with pytest.raises(RebalanceInProgress):
        at.sync(sync_request(first, classic(at).generation))


def test_another_member_may_join_the_rebalance() -> None:
    at = desk()
    first, second = mixed(at)
    at.beat(beat_request("a", -1))

    waiters = [at.join(join_request(member_id)) for member_id in ("", first, second)]

    assert len({waiter.answer.generation for waiter in waiters}) == 1


def test_there_is_one_rebalance_only() -> None:
    """Whoever rejoins at once, before any deadline is looked at, gets its assignment by syncing."""
    at = desk()
    (member_id,) = classic_group(at, (0, 1, 2))
    at.beat(beat_request("a", 0))
    at.beat(beat_request("a", -1))

    generation = at.join(join_request(member_id)).answer.generation
    at.pass_time(0)
    synced = at.sync(sync_request(member_id, generation, {member_id: b"all of it"}))

    assert synced.answer.assignment == b"all of it"
    assert classic(at).state is ClassicState.STABLE


def test_when_the_last_consumer_is_silent_the_group_is_classic_again() -> None:
    at = desk()
    member_ids = mixed(at)
    epoch = consumers(at).epoch
    for _ in range(9):
        at.pass_time(5_000)
        for member_id in member_ids:
            if isinstance(at.coordinator.groups["g"], ConsumerGroup):
                at.heartbeat(member_id, epoch)

    assert isinstance(at.coordinator.groups["g"], ClassicGroup)


def test_a_downgraded_group_is_read_from_its_log() -> None:
    at = desk()
    first, second = mixed(at)
    at.beat(beat_request("a", -1))
    assignments = {each.member_id: each.assignment for each in classic(at).members.values()}

    at.log = compacted(at.log)
    at.crash()

    assert len(at.log) == 1
    assert {each.member_id: each.assignment for each in classic(at).members.values()} == assignments
    at.heartbeat(first, classic(at).generation)
    at.heartbeat(second, classic(at).generation)


def test_a_consumer_that_is_not_the_last_leaves_a_consumer_group() -> None:
    at = desk()
    mixed(at)
    at.beat(beat_request("b", 0))

    at.beat(beat_request("a", -1))

    assert isinstance(at.coordinator.groups["g"], ConsumerGroup)


def test_a_static_consumer_that_is_away_is_still_there() -> None:
    at = desk()
    classic_group(at, (0, 1, 2))
    at.beat(beat_request("a", 0, instance_id="i1"))

    at.beat(beat_request("a", -2, instance_id="i1"))

    assert isinstance(at.coordinator.groups["g"], ConsumerGroup)


def test_the_last_consumer_replaced_by_a_classic_member_makes_the_group_classic_at_once() -> None:
    at = desk()
    (first,) = classic_group(at, (0, 1, 2))
    epoch = at.beat(beat_request("a", 0, instance_id="i1")).epoch
    at.join(join_request(first))
    at.sync(sync_request(first, epoch))
    at.beat(beat_request("a", epoch, instance_id="i1"))

    back = at.join(join_request(instance_id="i1")).answer

    assert isinstance(back, Joined)
    group = classic(at)
    assert (group.state, group.generation) == (ClassicState.STABLE, back.generation)
    at.heartbeat(first, epoch)
    synced = [
        at.sync(sync_request(member_id, epoch, instance_id=instance_id)).answer.assignment
        for member_id, instance_id in ((first, None), (back.member_id, "i1"))
    ]
    assert sorted(places(synced[0]) | places(synced[1])) == [0, 1, 2]
    assert places(synced[0]).isdisjoint(places(synced[1]))


@pytest.mark.parametrize(
    "limits", [{"may_downgrade": False}, {"max_size": 1}], ids=["not allowed", "too large"]
)
def test_a_group_that_cannot_be_downgraded_stays_a_consumer_group(limits: dict[str, Any]) -> None:
    at = desk()
    first, second = mixed(at)
    at.limits = at.limits.__class__(**limits)
    at.coordinator.use(at.limits)

    at.beat(beat_request("a", -1))

    assert consumers(at).members.keys() == {first, second}
    epoch = consumers(at).epoch
    for member_id in (first, second):
        assert at.join(join_request(member_id)).answer.generation == epoch
        at.sync(sync_request(member_id, epoch))
    assert consumers(at).state_name == "Stable"
    shares = [numbers(at, consumers(at).members[each].assigned) for each in (first, second)]
    assert sorted(shares[0] | shares[1]) == [0, 1, 2]


def test_members_of_a_downgraded_group_may_choose_another_protocol_when_they_join_again() -> None:
    at = desk()
    protocols = (("range", subscription("orders")), ("sticky", subscription("orders")))
    first, second = mixed(at, protocols=protocols)

    at.beat(beat_request("a", -1))

    assert classic(at).choose_protocol() == "range"
    assert tuple(classic(at).members[first].protocols) == (("range", subscription("orders")),)
    at.pass_time(0)
    waiters = [at.join(join_request(each, protocols=protocols[::-1])) for each in (first, second)]
    assert waiters[0].answer.protocol_name == "sticky"


def test_an_empty_consumer_group_gives_way_to_a_classic_one() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    at.commit(commit_request([("orders", 0, 5)], "a", 2))
    at.beat(beat_request("a", -1))

    assert at.join(join_request()).answer.generation == 1
    at.crash()

    assert isinstance(at.coordinator.groups["g"], ClassicGroup)
    assert at.coordinator.offsets.get("g", "orders", 0) is not None
