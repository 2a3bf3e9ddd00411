"""Who leads a partition, who is in sync and who is eligible: partitions in, partitions out."""

from dataclasses import replace
from typing import Any

import pytest

from headrace.protocol.ids import LeaderEpoch, Offset
from headrace.replication.election import (
    NO_LEADER,
    Partition,
    Progress,
    accept_isr,
    check_transition,
    clear_elr,
    distrust,
    elect,
    prefer,
    shrink_isr_to_live,
    shrink_isr_without,
)

THREE = Partition(
    replicas=(1, 2, 3), leader=1, leader_epoch=5, isr=(1, 2, 3), min_insync_replicas=2, version=9
)


def test_a_leader_that_lives_stays() -> None:
    assert elect(THREE, {1, 2, 3}) == THREE
    assert elect(THREE, {1}) == THREE


def test_the_next_replica_in_sync_leads_in_an_epoch_of_its_own() -> None:
    elected = elect(THREE, {2, 3})

    assert (elected.leader, elected.leader_epoch, elected.isr) == (2, 6, (2, 3))
    assert elected.elr == ()


def test_of_those_in_sync_the_one_with_the_most_records_leads() -> None:
    ends = {2: Progress(LeaderEpoch(5), Offset(100)), 3: Progress(LeaderEpoch(5), Offset(120))}

    assert elect(THREE, {2, 3}, rank=ends.get).leader == 3


def test_a_record_of_a_later_epoch_counts_for_more_than_many_of_an_earlier_one() -> None:
    ends = {2: Progress(LeaderEpoch(4), Offset(500)), 3: Progress(LeaderEpoch(5), Offset(100))}

    assert elect(THREE, {2, 3}, rank=ends.get).leader == 3


def test_who_does_not_say_how_far_it_is_comes_last() -> None:
    assert elect(THREE, {2, 3}, rank={3: Progress(LeaderEpoch(0), Offset(0))}.get).leader == 3


def test_who_leaves_while_too_few_are_in_sync_stays_eligible() -> None:
    alone = elect(THREE, {3})

    assert (alone.leader, alone.isr, alone.elr) == (3, (3,), (1, 2))


def test_an_eligible_replica_leads_if_none_in_sync_lives() -> None:
    partition = replace(THREE, isr=(1,), elr=(2, 3))

    elected = elect(partition, {3})

    assert (elected.leader, elected.leader_epoch, elected.isr) == (3, 6, (3,))
    assert set(elected.elr) == {1, 2}


def test_nobody_leads_if_no_eligible_replica_lives() -> None:
    partition = replace(THREE, isr=(1,), elr=(2,))

    waiting = elect(partition, {3})

    assert (waiting.leader, waiting.leader_epoch, waiting.last_leader) == (NO_LEADER, 6, 1)
    assert (waiting.isr, waiting.elr) == ((1,), (2,))
    assert elect(waiting, {3}) == waiting


def test_whoever_was_waited_for_leads_when_it_is_back() -> None:
    waiting = elect(replace(THREE, isr=(1,)), {3})

    back = elect(waiting, {1, 3})

    assert (back.leader, back.leader_epoch, back.isr, back.last_leader) == (1, 7, (1,), NO_LEADER)


def test_where_records_may_be_lost_the_best_of_the_rest_leads_and_nobody_else_is_eligible() -> None:
    partition = replace(THREE, isr=(1,), unclean_allowed=True)
    ends = {2: Progress(LeaderEpoch(4), Offset(10)), 3: Progress(LeaderEpoch(5), Offset(20))}

    elected = elect(partition, {2, 3}, rank=ends.get)

    assert (elected.leader, elected.isr, elected.elr) == (3, (3,), ())


def test_an_eligible_replica_comes_before_an_unclean_one() -> None:
    partition = replace(THREE, isr=(1,), elr=(3,), unclean_allowed=True)

    assert elect(partition, {2, 3}).leader == 3


def test_a_broker_that_leaves_hands_over_if_somebody_can_take_over() -> None:
    handed = elect(THREE, {1, 2, 3}, avoid={1})
    assert (handed.leader, handed.isr) == (2, (2, 3))

    last = replace(THREE, isr=(1,))
    assert elect(last, {1, 2, 3}, avoid={1}) == last


def test_those_in_sync_that_died_leave_the_set() -> None:
    assert shrink_isr_to_live(THREE, {1, 3}).isr == (1, 3)
    alone = shrink_isr_to_live(THREE, {1})
    assert (alone.isr, alone.elr) == ((1,), (2, 3))


def test_the_set_stays_as_it_was_while_the_leader_is_dead() -> None:
    assert shrink_isr_to_live(THREE, {2, 3}) == THREE


def test_a_follower_that_leaves_is_out_of_sync_unless_it_is_alone() -> None:
    assert shrink_isr_without(THREE, 2).isr == (1, 3)
    assert shrink_isr_without(THREE, 1) == THREE


def test_a_proposal_is_taken_in_the_order_of_the_replicas() -> None:
    partition = replace(THREE, isr=(1,), elr=(2,))

    accepted = accept_isr(partition, (3, 2, 1))

    assert (accepted.isr, accepted.elr, accepted.leader_epoch) == ((1, 2, 3), (), 5)


def test_nobody_but_those_in_sync_is_eligible_once_enough_are() -> None:
    partition = replace(THREE, isr=(1,), elr=(2, 3))

    assert clear_elr(partition) == partition
    assert clear_elr(replace(partition, min_insync_replicas=1)).elr == ()


def test_more_replicas_in_sync_than_there_are_cannot_be_wanted() -> None:
    single = Partition(replicas=(1,), leader=1, leader_epoch=0, isr=(1,), min_insync_replicas=2)

    assert single.wanted_in_sync == 1


def test_a_broker_that_may_have_lost_records_is_not_eligible_while_another_leads() -> None:
    assert distrust(THREE, 2, live={1, 2, 3}).isr == (1, 3)
    assert distrust(replace(THREE, isr=(1,), elr=(2, 3)), 2, live={1, 2}).elr == (3,)
    assert distrust(THREE, 2, live={1, 2, 3}).elr == ()
    assert distrust(replace(THREE, isr=(1,)), 2, live={1, 2, 3}) == replace(THREE, isr=(1,))


# -- in doubt ----------------------------------------------------------------------------------

LEADERLESS = replace(THREE, leader=NO_LEADER)
SHORT, LONG = Progress(LeaderEpoch(3), Offset(60)), Progress(LeaderEpoch(3), Offset(120))


def in_doubt(*broker_ids: int, partition: Partition = LEADERLESS) -> Partition:
    for each in broker_ids:
        partition = distrust(partition, each, live=broker_ids)
    return partition


def test_without_a_leader_a_broker_that_may_have_lost_records_is_in_doubt() -> None:
    partition = in_doubt(2)

    assert (partition.isr, partition.in_doubt) == ((1, 2, 3), (2,))
    assert in_doubt(2, 2) == partition
    assert in_doubt(2, partition=replace(LEADERLESS, isr=(1,))) == replace(LEADERLESS, isr=(1,))


def test_a_replica_in_doubt_does_not_lead_while_another_may_have_more() -> None:
    for waited in (False, True):
        assert elect(in_doubt(2), {2}, rank={2: LONG}.get, waited=waited) == in_doubt(2)
        assert elect(in_doubt(2), {2, 3}, rank={2: LONG, 3: SHORT}.get, waited=waited).leader == 3


def test_a_sound_leader_leaves_nobody_in_doubt_in_sync() -> None:
    elected = elect(in_doubt(2), {2, 3})

    assert (elected.leader, elected.isr, elected.elr, elected.in_doubt) == (3, (3,), (1,), ())


def test_if_all_are_in_doubt_and_back_the_longest_log_leads_at_once() -> None:
    partition = in_doubt(1, 2, 3)
    elected = elect(partition, {1, 2, 3}, rank={1: SHORT, 2: LONG, 3: SHORT}.get)

    assert (elected.leader, elected.leader_epoch) == (2, partition.leader_epoch + 1)
    assert (elected.isr, elected.elr, elected.in_doubt) == ((2,), (), ())


def test_a_later_epoch_is_longer_than_any_offset() -> None:
    later = Progress(LeaderEpoch(4), Offset(10))

    assert elect(in_doubt(1, 2, 3), {1, 2, 3}, rank={1: LONG, 2: LONG, 3: later}.get).leader == 3


def test_a_replica_outside_the_isr_is_compared_too() -> None:
    partition = in_doubt(1, 2, partition=replace(LEADERLESS, isr=(1, 2)))

    assert elect(partition, {1, 2, 3}, rank={1: SHORT, 2: SHORT, 3: LONG}.get).leader == 3


def test_a_replica_that_does_not_say_where_its_log_ends_is_not_compared() -> None:
    partition, ranks = in_doubt(1, 2, 3), {1: SHORT, 2: LONG}

    assert elect(partition, {1, 2, 3}, rank=ranks.get) == partition
    assert elect(partition, {1, 2, 3}, rank=ranks.get, waited=True).leader == 2


def test_a_majority_in_doubt_leads_when_it_has_waited() -> None:
    partition, ranks = in_doubt(1, 2), {1: SHORT, 2: LONG}

    assert elect(partition, {1, 2}, rank=ranks.get) == partition
    assert elect(partition, {1, 2}, rank=ranks.get, waited=True).leader == 2


def test_replicas_that_were_not_eligible_make_no_majority_against_a_sound_one() -> None:
    """Replica 1 may have everything: only 2 is known to have lost records, and 3 was not in the ISR."""
    partition = in_doubt(2, partition=replace(LEADERLESS, isr=(1, 2)))

    assert elect(partition, {2, 3}, rank={2: SHORT, 3: LONG}.get, waited=True) == partition


def test_all_that_were_eligible_lead_when_they_have_waited_even_if_they_are_few() -> None:
    partition = in_doubt(1, partition=replace(LEADERLESS, isr=(1,)))

    assert elect(partition, {1}, rank={1: SHORT}.get) == partition
    assert elect(partition, {1}, rank={1: SHORT}.get, waited=True).leader == 1


def test_a_single_replica_leads_at_once_whatever_it_has_lost() -> None:
    single = Partition(replicas=(1,), leader=NO_LEADER, leader_epoch=3, isr=(1,), in_doubt=(1,))

    assert elect(single, {1}).leader == 1


def test_the_preferred_replica_is_not_elected_while_replicas_are_in_doubt() -> None:
    assert prefer(in_doubt(1, 2), {1, 2}) == in_doubt(1, 2)


def test_the_preferred_replica_leads_if_it_is_in_sync_and_lives() -> None:
    led_by_two = replace(THREE, leader=2)

    preferred = prefer(led_by_two, {1, 2, 3})

    assert (preferred.leader, preferred.leader_epoch, preferred.isr) == (1, 6, (1, 2, 3))
    assert prefer(led_by_two, {2, 3}) == led_by_two
    assert prefer(replace(led_by_two, isr=(2, 3)), {1, 2, 3}).leader == 2


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"leader": 2}, "a new leader has a new leader epoch"),
        ({"leader_epoch": 3}, "the leader epoch never decreases"),
        ({"leader": 9, "leader_epoch": 5}, "the leader is a replica"),
        ({"isr": (1, 9)}, "the ISR and the ELR consist of replicas"),
        ({"elr": (1,)}, "no replica is both in the ISR and in the ELR"),
    ],
)
def test_a_change_that_breaks_a_rule_is_a_broken_invariant(change: dict[str, Any], rule: str) -> None:
    before = Partition(replicas=(1, 2, 3), leader=1, leader_epoch=4, isr=(1, 2))
    check_transition(before, before)

    with pytest.raises(AssertionError, match=rule):
        check_transition(before, replace(before, **change))
