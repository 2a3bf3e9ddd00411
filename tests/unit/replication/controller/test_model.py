"""What the controller makes of the cluster: brokers that come and go, and what others ask for."""

from dataclasses import replace

import pytest

from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import LeaderEpoch, Offset, TopicPartition
from headrace.protocol.kafka_errors import (
    ElectionNotNeeded,
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidReplicaAssignment,
    InvalidRequest,
    InvalidUpdateVersion,
    NoReassignmentInProgress,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from headrace.replication.controller.model import MAX_REMOVED, ClusterModel, Member, TopicModel
from headrace.replication.election import NO_LEADER, Partition, Progress

KEY = TopicPartition("t", 0)
LED_BY_ONE = Partition(
    replicas=(1, 2, 3), leader=1, leader_epoch=5, isr=(1, 2, 3), min_insync_replicas=2, version=9
)


def cluster(partition: Partition = LED_BY_ONE, *, members: tuple[int, ...] = (1, 2, 3)) -> ClusterModel:
    return ClusterModel(
        members={each: Member(broker_id=each, epoch=100 + each) for each in members},
        topics={"t": TopicModel(topic_id=bytes(16), version=0, partitions={0: partition})},
    )


def alter(cluster: ClusterModel, isr: dict[int, int], **changed: int) -> Partition | None:
    asked = {"broker_id": 1, "leader_epoch": 5, "version": 9} | changed
    return cluster.alter_isr(KEY, isr=isr, **asked).get(KEY)


# -- what should be ----------------------------------------------------------------------------


def test_nothing_changes_while_all_is_well() -> None:
    assert cluster().settle() == {}


def test_a_leader_that_is_gone_is_replaced() -> None:
    changed = cluster(members=(2, 3)).settle()[KEY]

    assert (changed.leader, changed.leader_epoch, changed.isr) == (2, 6, (2, 3))


def test_a_leader_that_the_controller_cannot_reach_stays_the_leader() -> None:
    model_ = cluster()
    model_.unreachable.add(1)

    assert model_.settle() == {}


def test_a_preferred_replica_that_the_controller_cannot_reach_does_not_replace_a_leader() -> None:
    model_ = cluster(replace(LED_BY_ONE, leader=2))
    model_.unreachable.add(1)

    assert model_.unbalanced() == []
    with pytest.raises(PreferredLeaderNotAvailable):
        model_.prefer(KEY)


def test_only_the_partitions_that_are_named_are_looked_at() -> None:
    model_ = cluster(members=(2, 3))

    assert model_.settle(keys=[TopicPartition("t", 7), TopicPartition("gone", 0)]) == {}
    assert model_.to_survey([]) == {}
    assert model_.settle(keys=[KEY])[KEY].leader == 2


def test_a_survey_decides_who_leads() -> None:
    model_ = cluster(members=(2, 3))
    assert model_.to_survey() == {KEY: (2, 3)}

    survey = {KEY: {2: Progress(LeaderEpoch(5), Offset(10)), 3: Progress(LeaderEpoch(5), Offset(11))}}
    assert model_.settle(survey)[KEY].leader == 3


def test_nobody_is_asked_if_there_is_no_choice() -> None:
    assert cluster().to_survey() == {}
    assert cluster(members=(3,)).to_survey() == {}


def test_a_broker_that_leaves_neither_leads_nor_is_in_sync() -> None:
    model_ = cluster()
    model_.shutting_down.add(1)

    changed = model_.settle()[KEY]

    assert (changed.leader, changed.isr) == (2, (2, 3))


def test_what_is_not_written_yet_is_to_be_written_even_if_it_is_well() -> None:
    found = replace(LED_BY_ONE, is_written=False)

    assert cluster(found).settle() == {KEY: found}


def test_settling_what_has_been_settled_changes_nothing() -> None:
    model_ = cluster(members=(2, 3))
    model_.apply(model_.settle())

    assert model_.settle() == {}


def test_a_broker_that_is_back_is_as_good_as_before_unless_it_may_have_lost_records() -> None:
    assert cluster().returned(Member(broker_id=2, epoch=200)) == {}

    changed = cluster().returned(Member(broker_id=2, epoch=200, may_have_lost=True))
    assert changed[KEY].isr == (1, 3)
    assert cluster().returned(Member(broker_id=2, epoch=200, lost={KEY})) == changed


def test_replicas_in_doubt_are_asked_for_their_log_ends_all_of_them() -> None:
    in_doubt = replace(LED_BY_ONE, leader=NO_LEADER, isr=(1, 2), in_doubt=(1, 2))

    assert cluster(in_doubt).to_survey() == {KEY: (1, 2, 3)}
    assert cluster(in_doubt, members=(1,)).to_survey() == {KEY: (1,)}


def test_the_longest_log_leads_when_the_time_to_wait_is_over() -> None:
    in_doubt = replace(LED_BY_ONE, leader=NO_LEADER, in_doubt=(2, 3))
    model_ = cluster(in_doubt, members=(2, 3))
    survey = {KEY: {2: Progress(LeaderEpoch(0), Offset(5)), 3: Progress(LeaderEpoch(0), Offset(7))}}
    assert model_.settle(survey) == {}
    assert model_.in_doubt() == {KEY: in_doubt}
    assert model_.is_enough_after_waiting(KEY, survey)

    model_.waited_for.add(KEY)
    changes = model_.settle(survey)
    assert (changes[KEY].leader, changes[KEY].isr) == (3, (3,))
    assert model_.unclean_elections(changes) == [KEY]

    model_.apply(changes)
    assert model_.waited_for == set()


def test_a_deleted_partition_is_no_longer_one_that_has_waited() -> None:
    model_ = cluster()
    model_.waited_for.add(KEY)
    model_.remove_topic("t")
    assert model_.waited_for == set()

    other = TopicPartition("u", 0)
    model_.waited_for |= {KEY, other}
    for _ in model_.load({"u": TopicModel(topic_id=bytes(16), version=0, partitions={0: LED_BY_ONE})}):
        pass
    assert model_.waited_for == {other}


def test_somebody_is_told_of_a_leader_that_was_not_eligible() -> None:
    partition = replace(LED_BY_ONE, isr=(1,), unclean_allowed=True)
    model_ = cluster(partition, members=(3,))

    assert model_.unclean_elections(model_.settle()) == [KEY]
    assert cluster(members=(2,)).unclean_elections(cluster(members=(2,)).settle()) == []


def test_settings_that_changed_while_a_change_was_written_stay() -> None:
    model_ = cluster(members=(2, 3))
    changes = model_.settle()
    model_.topics["t"].partitions[0] = replace(LED_BY_ONE, min_insync_replicas=3, unclean_allowed=True)

    model_.apply(changes)

    now = model_.find(KEY)
    assert (now.leader, now.min_insync_replicas, now.unclean_allowed) == (2, 3, True)


# -- who is in sync ----------------------------------------------------------------------------


def test_a_leader_may_take_a_replica_out_of_the_set_and_in_again() -> None:
    out = alter(cluster(), {1: 101, 2: 102})
    assert out is not None
    assert (out.isr, out.elr) == ((1, 2), ())

    back = alter(cluster(out), {1: 101, 2: 102, 3: 103})
    assert back is not None
    assert back.isr == (1, 2, 3)


def test_a_set_that_is_written_already_is_not_written_again() -> None:
    assert alter(cluster(), {1: 101, 2: 102, 3: 103}) is None


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"leader_epoch": 4}, FencedLeaderEpoch),
        ({"broker_id": 2}, FencedLeaderEpoch),
        ({"version": 8}, InvalidUpdateVersion),
    ],
)
def test_a_proposal_from_the_past_is_refused(changed: dict[str, int], error: type[KafkaError]) -> None:
    with pytest.raises(error):
        alter(cluster(), {1: 101, 2: 102}, **changed)


def test_only_replicas_can_be_in_sync() -> None:
    for isr in ({}, {1: 101, 7: 107}):
        with pytest.raises(InvalidRequest):
            alter(cluster(), isr)


def test_a_broker_that_has_restarted_since_it_fetched_is_not_in_sync() -> None:
    partition = replace(LED_BY_ONE, isr=(1, 2))

    with pytest.raises(IneligibleReplica):
        alter(cluster(partition), {1: 101, 2: 102, 3: 99})


@pytest.mark.parametrize("away", ["members", "shutting_down"])
def test_a_broker_that_is_not_here_to_stay_does_not_come_into_sync(away: str) -> None:
    model_ = cluster(replace(LED_BY_ONE, isr=(1, 2)))
    if away == "members":
        del model_.members[3]
    else:
        getattr(model_, away).add(3)

    with pytest.raises(IneligibleReplica):
        alter(model_, {1: 101, 2: 102, 3: 103})


def test_a_leader_whose_log_has_failed_is_replaced() -> None:
    changed = alter(cluster(), {2: 102, 3: 103})

    assert changed is not None
    assert (changed.leader, changed.leader_epoch, set(changed.isr)) == (2, 6, {2, 3})


# -- leaders and moves -------------------------------------------------------------------------


def test_the_preferred_replica_leads_on_request() -> None:
    model_ = cluster(replace(LED_BY_ONE, leader=2))
    assert model_.unbalanced() == [KEY]

    assert model_.prefer(KEY)[KEY].leader == 1


def test_why_the_preferred_replica_does_not_lead() -> None:
    with pytest.raises(ElectionNotNeeded):
        cluster().prefer(KEY)

    with pytest.raises(PreferredLeaderNotAvailable):
        cluster(replace(LED_BY_ONE, leader=2, isr=(2, 3))).prefer(KEY)


def test_a_leader_can_be_forced_only_where_there_is_none() -> None:
    offline = replace(LED_BY_ONE, leader=NO_LEADER, isr=(1,))
    forced = cluster(offline, members=(2, 3)).elect_unclean(KEY)[KEY]
    assert (forced.leader, forced.isr, forced.unclean_allowed) == (2, (2,), False)

    with pytest.raises(ElectionNotNeeded):
        cluster().elect_unclean(KEY)


def test_a_move_begins_and_is_listed_until_it_ends() -> None:
    model_ = cluster(members=(1, 2, 3, 4))
    model_.apply(model_.reassign(KEY, (4, 2, 3)))
    assert model_.reassignments() == [KEY]

    model_.apply(
        model_.alter_isr(KEY, broker_id=1, leader_epoch=5, version=9, isr=dict.fromkeys((1, 2, 3, 4), -1))
    )
    assert model_.reassignments() == [KEY]  # the leader is not among them, and has to agree first
    model_.apply(model_.settle())

    assert model_.reassignments() == []
    assert (model_.find(KEY).replicas, model_.find(KEY).leader) == ((4, 2, 3), 4)


@pytest.mark.parametrize("target", [(), (1, 1), (-1, 2), (1, 9)])
def test_a_move_to_nowhere_is_refused(target: tuple[int, ...]) -> None:
    with pytest.raises(InvalidReplicaAssignment):
        cluster().reassign(KEY, target)


def test_only_a_move_can_be_cancelled() -> None:
    with pytest.raises(NoReassignmentInProgress):
        cluster().reassign(KEY, None)


def test_a_move_is_not_cancelled_if_only_new_replicas_are_in_sync() -> None:
    model_ = cluster(members=(4, 5, 6))
    model_.topics["t"].partitions[0] = replace(
        LED_BY_ONE, replicas=(4, 5, 6, 1, 2, 3), adding=(4, 5, 6), removing=(1, 2, 3), leader=4, isr=(4, 5)
    )

    with pytest.raises(InvalidReplicaAssignment):
        model_.reassign(KEY, None)


def test_an_unknown_partition_is_refused() -> None:
    with pytest.raises(UnknownTopicOrPartition):
        cluster().prefer(TopicPartition("t", 1))


def test_partitions_by_broker() -> None:
    model_ = cluster()

    assert (model_.led_by(1), model_.led_by(2)) == ([KEY], [])
    assert (list(model_.with_replica_on(2)), list(model_.with_replica_on(7))) == ([KEY], [])


def test_the_ids_of_deleted_topics_are_kept_for_a_limited_number_of_them() -> None:
    model = ClusterModel()
    for number in range(MAX_REMOVED + 1):
        model.add_topic(str(number), TopicModel(topic_id=bytes(16), version=0, partitions={}))
        model.remove_topic(str(number))
    assert len(model.removed) == MAX_REMOVED
    assert "0" not in model.removed

    model.add_topic("7", TopicModel(topic_id=bytes(16), version=0, partitions={}))
    assert "7" not in model.removed
