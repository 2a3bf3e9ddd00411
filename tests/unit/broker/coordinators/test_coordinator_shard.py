"""The coordinator of a partition, on a real log and a real event loop whose clock the tests move."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from headrace.broker.coordinators.shard import timer_at
from headrace.broker.errors import LeadershipInterrupted
from headrace.broker.replicas.pending_verification import Verification
from headrace.coordinators.decision import Producer
from headrace.coordinators.errors import CoordinatorLoading, CoordinatorNotAvailable, NotCoordinator
from headrace.coordinators.group.classic import ClassicState
from headrace.coordinators.group.coordinator import GroupCoordinator
from headrace.coordinators.group.decision import Decision, Joined, Synced
from headrace.protocol.errors import KafkaError
from headrace.protocol.records import Record, encode_batch
from headrace.storage.errors import InvalidTxnState
from headrace.storage.topics import OFFSETS_TOPIC
from support.groups import commit_request, join_request, sync_request
from support.logs import read_all
from unit.broker.group_office import HERE, THERE, Office

PRODUCER = Producer(producer_id=9, epoch=0)

# -- writing and reading ---------------------------------------------------------------------------


def test_what_is_decided_is_in_the_log_before_it_is_said(office: Office) -> None:
    joined = office.join(join_request()).result()
    assert read_all(office.log) == []

    synced = office.sync(sync_request(joined.member_id, 1, {joined.member_id: b"mine"}))

    assert synced.result() == Synced("consumer", "range", b"mine")
    assert len(read_all(office.log)) == 1


def test_another_coordinator_reads_it(open_office: Callable[..., Office]) -> None:
    member_id = open_office().stable_member()

    again = open_office()
    with pytest.raises(CoordinatorLoading):
        _ = again.shard
    again.load()

    answer = again.sync(sync_request(member_id, 1)).result()
    assert answer.assignment == b"mine"


def test_members_are_removed_by_the_clock(office: Office) -> None:
    office.stable_member()

    office.pass_time(9_500)
    assert office.group().state is ClassicState.STABLE
    office.pass_time(1_000)

    assert office.group().state is ClassicState.EMPTY


def test_a_timer_is_never_a_fraction_before_its_deadline() -> None:
    """1001 / 1000 * 1000 is less than 1001: a timer at that time would find nothing due."""
    assert [due_ms for due_ms in range(1_000, 20_000) if int(timer_at(due_ms, 0.0) * 1000) != due_ms] == []
    assert timer_at(1_000, 1.0001) == 1.0001, "what is due does not wait"


def test_members_of_a_log_that_was_read_are_removed_by_the_clock(open_office: Callable[..., Office]) -> None:
    open_office().stable_member()
    again = open_office()
    again.load()

    again.pass_time(10_500)

    assert again.group().state is ClassicState.EMPTY


def test_a_client_that_has_gone_is_not_answered(office: Office) -> None:
    member_id = office.stable_member()
    gone = office.join(join_request(requires_known_member_id=False))
    gone.cancel()

    again = office.join(join_request(member_id))

    assert isinstance(again.result(), Joined)


# -- a broker that stood still ---------------------------------------------------------------------


def test_members_that_a_broker_could_not_hear_have_a_second_to_be_heard(office: Office) -> None:
    member_id = office.stable_member()

    office.stand_still(60_000)
    office.run()
    assert office.group().state is ClassicState.STABLE
    office.shard.machine.heartbeat("g", member_id, None, 1, office.shard.now_ms)
    office.pass_time(9_500)

    assert office.group().state is ClassicState.STABLE


def test_members_that_are_silent_after_that_are_removed(office: Office) -> None:
    office.stable_member()

    office.stand_still(60_000)
    office.run()
    office.pass_time(1_000)

    assert office.group().state is ClassicState.EMPTY


# -- many offsets at once --------------------------------------------------------------------------


def commit_many(office: Office, count: int) -> None:
    for start in range(0, count, 50):
        office.commit(commit_request([("orders", number, 1) for number in range(start, start + 50)]))


def test_any_number_of_offsets_can_expire_at_once(office: Office) -> None:
    commit_many(office, 2_000)
    assert len(office.shard.machine.offsets.of("g")) == 2_000

    office.broker.groups.expire_offsets()

    assert office.shard.machine.groups == {}


def test_any_number_of_offsets_can_go_with_their_topic(office: Office) -> None:
    commit_many(office, 2_000)

    office.broker.groups.topic_removed("orders")

    assert office.shard.machine.offsets.of("g") == {}


def test_offsets_of_a_topic_that_goes_while_they_are_read_go_with_it(
    open_office: Callable[..., Office],
) -> None:
    open_office().commit(commit_request([("orders", 0, 1), ("people", 0, 1)]))
    again = open_office()

    again.broker.groups.topic_removed("orders")
    again.load()

    assert set(again.shard.machine.offsets.of("g")) == {("people", 0)}


def test_a_record_that_is_too_large_alone_does_not_keep_others_from_being_forgotten(office: Office) -> None:
    """Names may be longer than anybody would make them, and parts are halved until they fit."""
    for number in range(60):
        office.commit(commit_request([("orders", 0, 1)], group_id="g" * 1_000 + str(number)))

    office.broker.groups.topic_removed("orders")

    assert all(not office.shard.machine.offsets.of(group) for group in office.shard.machine.groups)


# -- coming and going ------------------------------------------------------------------------------


def test_whoever_waits_is_told_when_another_broker_leads(office: Office) -> None:
    office.stable_member()
    joining = office.join(join_request())

    office.lead(leader=THERE, leader_epoch=1)

    assert isinstance(joining.exception(), NotCoordinator)
    with pytest.raises(NotCoordinator):
        _ = office.shard


def test_a_coordinator_begins_anew_when_its_broker_leads_again(office: Office) -> None:
    member_id = office.stable_member()
    joining = office.join(join_request())

    office.lead(leader_epoch=1)

    assert isinstance(joining.exception(), NotCoordinator)
    with pytest.raises(CoordinatorLoading):
        _ = office.shard
    office.load()
    office.shard.machine.heartbeat("g", member_id, None, 1, office.shard.now_ms)


def test_a_coordinator_goes_on_when_nothing_changes_but_who_is_in_sync(office: Office) -> None:
    office.stable_member()
    before = office.shard

    office.lead()

    assert office.shard is before


def test_nobody_is_removed_by_a_coordinator_that_has_stopped(office: Office) -> None:
    office.stable_member()
    stopped = office.shard
    office.lead(leader=THERE, leader_epoch=1)
    written = office.log.log_end_offset

    office.pass_time(20_000)

    assert office.log.log_end_offset == written
    with pytest.raises(CoordinatorNotAvailable):
        stopped.write(GroupCoordinator.expire_offsets)


def test_a_coordinator_may_stop_while_it_reads(open_office: Callable[..., Office]) -> None:
    open_office().stable_member()
    again = open_office()
    with pytest.raises(CoordinatorLoading):
        _ = again.shard

    again.lead(leader=THERE, leader_epoch=1)
    again.run()

    with pytest.raises(NotCoordinator):
        _ = again.shard


def test_a_log_that_cannot_be_read_is_said_so(
    open_office: Callable[..., Office], caplog: pytest.LogCaptureFixture
) -> None:
    first = open_office()
    first.log.append_internal(encode_batch([Record(b"\x00\x02\x00", b"", timestamp=1)]), leader_epoch=0)
    again = open_office()

    again.load()

    assert "cannot be read" in caplog.text
    with pytest.raises(CoordinatorNotAvailable, match="cannot be read"):
        _ = again.shard


def test_there_is_no_coordinator_before_there_is_a_topic_for_it(office: Office) -> None:
    office.broker.image.remove_topic(OFFSETS_TOPIC)

    with pytest.raises(CoordinatorNotAvailable):
        _ = office.shard


# -- replicas --------------------------------------------------------------------------------------


def test_whoever_waits_is_answered_when_the_followers_have_it(open_office: Callable[..., Office]) -> None:
    office = open_office(HERE, THERE)
    joined = office.join(join_request()).result()

    async def sync() -> "asyncio.Future[Any]":
        return office.sync(sync_request(joined.member_id, 1, {joined.member_id: b"mine"}))

    waiting = office.loop.run_until_complete(sync())
    assert not waiting.done()
    office.partition.follower_fetches(THERE, office.log.log_end_offset, broker_epoch=1, now_ms=0)
    office.run()

    assert waiting.result().assignment == b"mine"


def test_whoever_waits_for_followers_is_told_when_another_broker_leads(
    open_office: Callable[..., Office],
) -> None:
    office = open_office(HERE, THERE)
    joined = office.join(join_request()).result()

    async def sync() -> "asyncio.Future[Any]":
        return office.sync(sync_request(joined.member_id, 1, {joined.member_id: b"mine"}))

    waiting = office.loop.run_until_complete(sync())
    office.lead(leader=THERE, leader_epoch=1)
    office.run()

    assert isinstance(waiting.exception(), NotCoordinator)


def test_an_answer_waits_for_the_followers(open_office: Callable[..., Office]) -> None:
    office = open_office(HERE, THERE)

    async def commit() -> "asyncio.Future[Any]":
        request = commit_request([("orders", 0, 5)])
        return office.shard.write(lambda machine, now_ms: machine.commit(request, now_ms))

    reply = office.loop.run_until_complete(commit())
    barrier = office.loop.run_until_complete(later(office.shard.barrier))
    assert not reply.done()
    assert barrier is not None
    assert not barrier.done()
    office.partition.follower_fetches(THERE, office.log.log_end_offset, broker_epoch=1, now_ms=0)
    office.run()

    assert reply.result() is None
    assert barrier.result() is None
    assert office.shard.barrier() is None


def test_an_answer_that_is_not_committed_in_time_is_an_error(open_office: Callable[..., Office]) -> None:
    office = open_office(HERE, THERE)

    async def commit() -> "asyncio.Future[Any]":
        request = commit_request([("orders", 0, 5)])
        return office.shard.write(lambda machine, now_ms: machine.commit(request, now_ms))

    reply = office.loop.run_until_complete(commit())
    office.pass_time(4_500)
    assert not reply.done()
    office.pass_time(1_000)

    assert isinstance(reply.exception(), CoordinatorNotAvailable)


async def later(function: Callable[[], Any]) -> Any:
    return function()


# -- transactions ----------------------------------------------------------------------------------


def commit_in_transaction(
    office: Office, offset: int, *, verified: bool = True, earlier_epochs: int = 0
) -> None:
    def decide(machine: GroupCoordinator, now_ms: int) -> Decision:
        return machine.commit_in_transaction(commit_request([("orders", 0, offset)]), PRODUCER, now_ms)

    verification = Verification(PRODUCER, office.shard.leader_epoch - earlier_epochs)
    if verified:
        office.shard.partition.verifications[PRODUCER.producer_id] = verification
    office.shard.write(decide, verification)


def end_transaction(office: Office, *, commit: bool) -> "asyncio.Future[Any]":
    return office.shard.end_transaction(PRODUCER, commit=commit, coordinator_epoch=0, transaction_version=0)


@pytest.mark.parametrize("committed", [True, False])
def test_offsets_of_a_transaction_count_when_its_marker_says_so(office: Office, committed: bool) -> None:
    office.commit(commit_request([("orders", 0, 1)]))
    commit_in_transaction(office, 7)
    assert offsets(office) == [1]

    reply = end_transaction(office, commit=committed)

    assert reply.result() is None
    assert offsets(office) == [7 if committed else 1]


def test_an_open_transaction_can_be_ended_by_the_next_coordinator(open_office: Callable[..., Office]) -> None:
    commit_in_transaction(open_office(), 7)
    again = open_office()
    again.load()
    assert offsets(again) == []

    end_transaction(again, commit=True)

    assert offsets(again) == [7]
    third = open_office()
    third.load()
    assert offsets(third) == [7]


@pytest.mark.parametrize(("earlier_epochs", "error"), [(0, InvalidTxnState), (2, LeadershipInterrupted)])
def test_offsets_of_a_transaction_that_is_not_verified_change_nothing(
    office: Office, earlier_epochs: int, error: type[KafkaError]
) -> None:
    office.commit(commit_request([("orders", 0, 1)]))
    shard = office.shard

    with pytest.raises(error):
        commit_in_transaction(office, 7, verified=False, earlier_epochs=earlier_epochs)

    assert office.shard is shard  # it was not loaded again
    assert offsets(office) == [1]
    assert not shard.machine.pending_offsets.has_group("g")


def test_a_deleted_offset_is_not_committed_by_a_transaction_later(open_office: Callable[..., Office]) -> None:
    office = open_office()
    office.commit(commit_request([("orders", 0, 1)]))
    commit_in_transaction(office, 7)
    office.shard.write(lambda machine, now_ms: machine.delete_group("g", now_ms))
    assert not office.shard.machine.pending_offsets.has_group("g")
    again = open_office()
    again.load()

    assert not again.shard.machine.pending_offsets.has_group("g")
    end_transaction(again, commit=True)
    assert offsets(again) == []


def offsets(office: Office) -> list[int]:
    return [each.offset for each in office.shard.machine.offsets.of("g").values()]


# -- a lease that has expired ----------------------------------------------------------------------


def test_a_coordinator_without_a_lease_answers_nothing(open_office: Callable[..., Office]) -> None:
    office = open_office(HERE, THERE)
    shard = office.shard
    office.broker.lease.revoke()

    with pytest.raises(NotCoordinator):
        _ = office.shard  # every request to a group begins with this, OffsetFetch included
    with pytest.raises(NotCoordinator):
        shard.write_in_parts(GroupCoordinator.expire_offsets)
    with pytest.raises(CoordinatorNotAvailable):
        office.broker.groups.ensure_all_ready()


def test_a_coordinator_that_has_stepped_down_answers_nothing(office: Office) -> None:
    _ = office.shard
    office.partition.step_down(controller_epoch=1, partition_epoch=office.partition.version)

    with pytest.raises(NotCoordinator):
        _ = office.shard
