"""What a new controller makes of a state that it finds, and what it writes into one."""

from dataclasses import replace

from headrace.coordination.znodes import BrokerRegistration
from headrace.protocol.ids import TopicPartition
from headrace.replication.controller.model import Member, TopicRules
from headrace.replication.controller.store import _after_restarts, first_state, member_of
from headrace.replication.controller.transactions import state_of
from headrace.replication.election import NO_LEADER, Partition
from headrace.security.listeners import Endpoint

PARTITION = Partition(
    replicas=(1, 2, 3), leader=1, leader_epoch=5, isr=(1, 2, 3), min_insync_replicas=2, version=9
)
KEY = TopicPartition("t", 0)
EPOCHS = {1: 11, 2: 12, 3: 13}
WRITTEN = 50


def found(
    *members: Member, partition: Partition = PARTITION, epochs: dict[int, int] | None = None
) -> Partition:
    known = EPOCHS if epochs is None else epochs
    return _after_restarts(KEY, partition, WRITTEN, {each.broker_id: each for each in members}, known)


def member(
    broker_id: int, epoch: int, *, may_have_lost: bool = False, lost: tuple[TopicPartition, ...] = ()
) -> Member:
    return Member(broker_id=broker_id, epoch=epoch, may_have_lost=may_have_lost, lost=lost)


def test_a_state_whose_brokers_are_as_they_were_is_left_alone() -> None:
    assert found(member(1, 11), member(2, 12), member(3, 13)) == PARTITION
    assert found() == PARTITION


def test_a_leader_in_another_life_leads_no_more() -> None:
    left = found(member(1, 60), member(2, 12))

    assert (left.leader, left.last_leader, left.leader_epoch) == (NO_LEADER, 1, 5)
    assert not left.is_written


def test_a_follower_in_another_life_is_still_in_sync() -> None:
    assert found(member(2, 60)) == PARTITION


def test_a_broker_that_may_have_lost_records_is_not_in_sync_and_that_has_to_be_written() -> None:
    left = found(member(1, 11), member(2, 60, may_have_lost=True))

    assert left.isr == (1, 3)
    assert not left.is_written


def test_only_the_partitions_that_a_broker_names_have_lost_records() -> None:
    assert found(member(1, 11), member(2, 60, lost=(KEY,))).isr == (1, 3)
    assert found(member(1, 11), member(2, 60, lost=(TopicPartition("other", 0),))) == PARTITION


def test_without_a_leader_a_broker_that_may_have_lost_records_is_in_doubt() -> None:
    left = found(member(1, 60, may_have_lost=True), member(2, 60, may_have_lost=True))

    assert (left.leader, left.isr, left.in_doubt) == (NO_LEADER, (1, 2, 3), (1, 2))
    assert not left.is_written


def test_another_life_counts_even_if_it_began_before_the_state_was_written() -> None:
    """Whoever wrote it had not heard of it yet."""
    assert found(member(1, 11), member(2, 40, may_have_lost=True)).isr == (1, 3)


def test_a_broker_that_was_not_there_when_the_state_was_written_has_not_been_heard_of() -> None:
    left = found(member(1, 11), member(2, 40, may_have_lost=True), epochs={1: 11, 2: -1, 3: 13})

    assert left.isr == (1, 3)


def test_a_state_without_epochs_goes_by_when_it_was_written() -> None:
    assert found(member(1, 11), member(2, 60, may_have_lost=True), epochs={}).isr == (1, 3)
    assert found(member(1, 11), member(2, 40, may_have_lost=True), epochs={}) == PARTITION


def test_a_state_names_the_lives_of_those_that_may_lead() -> None:
    partition = replace(PARTITION, isr=(1,), elr=(2,))

    state = state_of(TopicPartition("t", 0), partition, 7, {1: member(1, 11), 3: member(3, 13)})

    assert state.broker_epochs == {1: 11, 2: -1}
    assert (state.controller_epoch, state.leader, state.isr, state.elr) == (7, 1, (1,), (2,))


def test_a_new_partition_is_led_by_its_first_replica_with_all_in_sync() -> None:
    first = first_state((3, 1), TopicRules(min_insync_replicas=2, unclean_allowed=True))

    assert (first.leader, first.leader_epoch, first.isr) == (3, 0, (3, 1))
    assert (first.min_insync_replicas, first.unclean_allowed) == (2, True)
    assert first.is_written


def test_a_partition_without_a_state_has_to_be_written() -> None:
    first = first_state((3, 1), TopicRules(1, unclean_allowed=False), version=-1)

    assert not first.is_written


def test_a_registration_says_whether_its_broker_is_to_be_believed() -> None:
    registration = BrokerRegistration(
        broker_id=2, endpoints=(Endpoint("PLAINTEXT", "b", 9092),), timestamp_ms=0, rack="r"
    )

    assert member_of(registration, 60) == Member(broker_id=2, epoch=60, rack="r")
    assert member_of(replace(registration, may_have_lost=True), 60).may_have_lost
    assert member_of(replace(registration, lost={KEY}), 60).is_in_doubt(KEY)
