"""Members of a consumer group that speak the classic protocol."""

import pytest

from headrace.coordinators.group.consumer import MemberState
from headrace.coordinators.group.decision import Joined, Synced
from headrace.coordinators.group.errors import (
    FencedInstance,
    GroupIsFull,
    IllegalGeneration,
    InconsistentProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from headrace.protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_assignment,
    encode_subscription,
)
from headrace.protocol.schema.consumer_protocol_subscription import TopicPartition
from support.groups import GroupDesk, beat_request, commit_request, join_request, sync_request
from unit.coordinators.group.stories import consumers, desk, numbers


def owning(*partitions: int, version: int = 1) -> tuple[tuple[str, bytes]]:
    """The protocols of a cooperative member that owns these partitions of `orders`."""
    owned = [TopicPartition(topic="orders", partitions=list(partitions))] if partitions else []
    message = ConsumerProtocolSubscription(topics=["orders"], owned_partitions=owned)
    return (("range", encode_subscription(message, version)),)


def mixed(at: GroupDesk) -> tuple[str, int]:
    """A consumer, `a`, that has everything, and a classic member that has just joined; its id and epoch."""
    at.beat(beat_request("a", 0))
    joined = at.join(join_request()).answer
    assert isinstance(joined, Joined)
    return joined.member_id, joined.generation


def give_up(at: GroupDesk, member_id: str = "a") -> None:
    """The consumer is told what to give up, and does so."""
    epoch = consumers(at).members[member_id].epoch
    at.beat(beat_request(member_id, epoch))
    at.beat(beat_request(member_id, epoch, owned=consumers(at).members[member_id].assigned))


def read(answer: Synced) -> set[int]:
    return {
        number
        for each in decode_assignment(answer.assignment).assigned_partitions
        for number in each.partitions
    }


def test_a_classic_member_is_answered_at_once_and_nobody_leads() -> None:
    at = desk()
    at.beat(beat_request("a", 0))

    answer = at.join(join_request()).answer

    assert answer == Joined("client-id1", 3, "consumer", "range", leader="")
    member = consumers(at).members["client-id1"]
    assert member.classic is not None
    assert (member.topics, member.state) == (frozenset({"orders"}), MemberState.UNRELEASED)


def test_it_gets_its_share_when_the_consumer_has_given_it_up() -> None:
    at = desk()
    member_id, epoch = mixed(at)
    assert read(at.sync(sync_request(member_id, epoch)).answer) == set()
    at.heartbeat(member_id, epoch)
    give_up(at)

    with pytest.raises(RebalanceInProgress):
        at.heartbeat(member_id, epoch)
    assert at.join(join_request(member_id)).answer.generation == epoch
    share = read(at.sync(sync_request(member_id, epoch)).answer)

    assert len(share) == 1
    assert share.isdisjoint(numbers(at, consumers(at).members["a"].assigned))
    at.heartbeat(member_id, epoch)
    assert consumers(at).state_name == "Stable"


def test_a_cooperative_member_gives_up_before_it_moves_on() -> None:
    at = desk()
    at.beat(beat_request("a", 0, topics=frozenset({"people"})))
    joined = at.join(join_request(protocols=owning())).answer
    member_id, before = joined.member_id, joined.generation
    assert read(at.sync(sync_request(member_id, before)).answer) == {0, 1, 2}
    at.beat(beat_request("b", 0))

    told = at.join(join_request(member_id, protocols=owning(0, 1, 2))).answer
    assert told.generation == before
    kept = read(at.sync(sync_request(member_id, before)).answer)
    assert len(kept) == 2
    with pytest.raises(RebalanceInProgress):
        at.heartbeat(member_id, before)
    assert at.beat(beat_request("b", before + 1)).assignment is None  # not yet
    moved = at.join(join_request(member_id, protocols=owning(*kept))).answer

    assert moved.generation == consumers(at).epoch == before + 1
    assert numbers(at, at.beat(beat_request("b", before + 1)).assignment) == {0, 1, 2} - kept


def test_an_eager_member_has_given_up_everything_when_it_joins() -> None:
    at = desk()
    at.beat(beat_request("a", 0, topics=frozenset({"people"})))
    joined = at.join(join_request()).answer
    at.sync(sync_request(joined.member_id, joined.generation))
    at.beat(beat_request("b", 0))

    moved = at.join(join_request(joined.member_id)).answer

    assert moved.generation == consumers(at).epoch
    assert consumers(at).members[joined.member_id].revoking == {}
    assert len(numbers(at, at.beat(beat_request("b", moved.generation)).assignment)) == 1


def test_an_assignment_comes_in_the_version_of_the_subscription() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    for version in (0, 1, 2, 3):
        joined = at.join(join_request(protocols=owning(version=version))).answer
        synced = at.sync(sync_request(joined.member_id, joined.generation)).answer

        assert int.from_bytes(synced.assignment[:2], "big") == version


def test_a_member_that_is_behind_is_told_to_join_again() -> None:
    at = desk()
    member_id, epoch = mixed(at)
    at.beat(beat_request("b", 0))

    with pytest.raises(RebalanceInProgress):
        at.heartbeat(member_id, epoch)
    with pytest.raises(RebalanceInProgress):
        at.sync(sync_request(member_id, epoch))


@pytest.mark.parametrize(
    ("name", "generation", "error"),
    [("somebody", 3, UnknownMember), ("a", 3, UnknownMember), ("client-id1", 2, IllegalGeneration)],
    ids=["stranger", "consumer", "generation"],
)
def test_heartbeats_and_syncs_of_others_are_refused(
    name: str, generation: int, error: type[Exception]
) -> None:
    at = desk()
    mixed(at)

    with pytest.raises(error):
        at.heartbeat(name, generation)
    with pytest.raises(error):
        at.sync(sync_request(name, generation))


def test_a_sync_names_the_protocol_that_the_member_joined_with() -> None:
    at = desk()
    member_id, epoch = mixed(at)

    with pytest.raises(InconsistentProtocol):
        at.sync(sync_request(member_id, epoch, protocol_name="sticky"))
    with pytest.raises(InconsistentProtocol):
        at.sync(sync_request(member_id, epoch, protocol_type="connect"))
    assert at.sync(sync_request(member_id, epoch, protocol_name="range")).answer.protocol_name == "range"


# -- who may join ----------------------------------------------------------------------------------


def test_a_new_member_is_told_its_id_and_joins_with_it() -> None:
    at = desk()
    at.beat(beat_request("a", 0))

    with pytest.raises(MemberIdRequired) as refused:
        at.join(join_request(requires_known_member_id=True))
    member_id = refused.value.member_id
    assert member_id is not None

    assert at.join(join_request(member_id, requires_known_member_id=True)).answer.member_id == member_id


@pytest.mark.parametrize(
    ("some", "error"),
    [
        ({"protocol_type": "connect"}, InconsistentProtocol),
        ({"protocols": ()}, InconsistentProtocol),
        ({"protocols": (("sticky", owning()[0][1]),)}, InconsistentProtocol),
        ({"protocols": (("range", b"no subscription"),)}, InconsistentProtocol),
        ({"member_id": "somebody", "instance_id": "i1"}, UnknownMember),
    ],
    ids=["type", "none", "unknown", "unreadable", "instance"],
)
def test_who_does_not_fit_is_refused(some: dict[str, object], error: type[Exception]) -> None:
    at = desk()
    mixed(at)
    written, members = len(at.log), list(consumers(at).members)

    with pytest.raises(error):
        at.join(join_request()._replace(**some))  # type: ignore[arg-type]

    assert (len(at.log), list(consumers(at).members)) == (written, members)


def test_a_full_group_takes_nobody_but_its_members() -> None:
    at = desk(consumer_max_size=2)
    member_id, _ = mixed(at)

    with pytest.raises(GroupIsFull):
        at.join(join_request())

    assert at.join(join_request(member_id)).answer.member_id == member_id


# -- static ----------------------------------------------------------------------------------------


def test_a_static_member_that_is_back_has_what_it_had() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    old = at.join(join_request(instance_id="i1")).answer.member_id
    give_up(at)
    at.join(join_request(old, "i1"))
    had = consumers(at).members[old].assigned
    epoch = consumers(at).epoch

    back = at.join(join_request(instance_id="i1")).answer

    assert back.member_id != old
    assert back.generation == consumers(at).epoch == epoch
    assert consumers(at).members[back.member_id].assigned == had
    with pytest.raises(FencedInstance):
        at.heartbeat(old, epoch, "i1")
    with pytest.raises(FencedInstance):
        at.join(join_request(old, "i1"))


def test_a_consumer_takes_over_from_a_classic_member_with_its_instance() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    old = at.join(join_request(instance_id="i1")).answer.member_id
    give_up(at)
    at.join(join_request(old, "i1"))
    had = consumers(at).members[old].assigned

    back = at.beat(beat_request("b", 0, instance_id="i1"))

    assert back.assignment == had
    assert consumers(at).classic_members() == []


# -- going -----------------------------------------------------------------------------------------


def test_a_classic_member_leaves_and_consumers_do_not_leave_this_way() -> None:
    at = desk()
    member_id, _ = mixed(at)

    gone, consumer, stranger = at.leave((member_id, None), ("a", None), ("somebody", None))

    assert gone is None
    assert isinstance(consumer, UnknownMember)
    assert isinstance(stranger, UnknownMember)
    assert list(consumers(at).members) == ["a"]


def test_a_static_member_is_removed_by_its_instance() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    at.join(join_request(instance_id="i1"))

    assert at.leave(("", "i1")) == [None]

    assert list(consumers(at).members) == ["a"]


def test_a_silent_classic_member_is_removed_when_its_own_session_is_over() -> None:
    at = desk()
    member_id, epoch = mixed(at)
    at.sync(sync_request(member_id, epoch))

    at.pass_time(9_999)
    assert member_id in consumers(at).members
    at.pass_time(1)

    assert list(consumers(at).members) == ["a"]


def test_who_does_not_sync_in_time_is_removed() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    member_id = at.join(join_request(session_timeout_ms=30_000, rebalance_timeout_ms=20_000)).answer.member_id

    at.pass_time(19_999)
    assert member_id in consumers(at).members
    at.pass_time(1)

    assert list(consumers(at).members) == ["a"]


def test_who_has_synced_in_time_stays() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    joined = at.join(join_request(session_timeout_ms=30_000, rebalance_timeout_ms=20_000)).answer
    at.sync(sync_request(joined.member_id, joined.generation))

    at.pass_time(29_999)

    assert joined.member_id in consumers(at).members


def test_who_does_not_join_again_in_time_is_removed() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    joined = at.join(join_request(session_timeout_ms=30_000, rebalance_timeout_ms=20_000)).answer
    at.sync(sync_request(joined.member_id, joined.generation))
    at.beat(beat_request("b", 0))
    for _ in range(2):
        with pytest.raises(RebalanceInProgress):
            at.heartbeat(joined.member_id, joined.generation)
        at.pass_time(9_999)
    assert joined.member_id in consumers(at).members
    at.pass_time(2)

    assert joined.member_id not in consumers(at).members


def test_who_joins_again_in_time_stays() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    joined = at.join(join_request(session_timeout_ms=30_000, rebalance_timeout_ms=20_000)).answer
    at.beat(beat_request("b", 0))
    with pytest.raises(RebalanceInProgress):
        at.heartbeat(joined.member_id, joined.generation)
    at.pass_time(19_999)
    again = at.join(join_request(joined.member_id, session_timeout_ms=30_000, rebalance_timeout_ms=20_000))
    at.sync(sync_request(joined.member_id, again.answer.generation))
    at.pass_time(20_001)

    assert joined.member_id in consumers(at).members


# -- commits ---------------------------------------------------------------------------------------


def test_a_classic_member_commits_in_its_generation_with_any_version() -> None:
    at = desk()
    member_id, epoch = mixed(at)

    at.commit(commit_request([("orders", 0, 5)], member_id, epoch, version=2))
    with pytest.raises(IllegalGeneration):
        at.commit(commit_request([("orders", 0, 6)], member_id, epoch - 1))

    committed = at.coordinator.offsets.get("g", "orders", 0)
    assert committed is not None
    assert committed.offset == 5


# -- crashes ---------------------------------------------------------------------------------------


def test_classic_members_are_remembered_as_such() -> None:
    at = desk()
    member_id, epoch = mixed(at)

    at.crash()

    at.heartbeat(member_id, epoch)
    at.pass_time(9_999)
    assert member_id in consumers(at).members
    at.pass_time(1)
    assert list(consumers(at).members) == ["a"]
