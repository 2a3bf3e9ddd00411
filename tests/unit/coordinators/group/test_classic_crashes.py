"""What is left of a classic group when its coordinator is gone and another reads the log."""

import pytest

from headrace.coordinators.group.classic import ClassicState
from headrace.coordinators.group.errors import IllegalGeneration, UnknownMember
from support.groups import commit_request, compacted, join_request, subscription, sync_request
from unit.coordinators.group.stories import classic, completing_group, desk, stable_group, sync_all


def test_a_stable_group_goes_on_as_it_was() -> None:
    at = desk()
    first, second = stable_group(at, 2)

    at.crash()

    at.heartbeat(first, 2)
    assert at.sync(sync_request(second, 2)).answer.assignment == second.encode()
    assert classic(at).leader == first


def test_members_have_a_session_from_when_the_log_is_read() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    at.pass_time(9_000)
    at.crash()

    at.pass_time(9_999)
    at.heartbeat(first, 2)
    at.pass_time(1)

    assert list(classic(at).members) == [first]
    assert second not in classic(at).members


def test_a_generation_that_nobody_has_synced_in_is_forgotten_and_comes_again() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    new = at.join(join_request())
    at.join(join_request(first))
    at.join(join_request(second))
    assert new.answer.generation == 3

    at.crash()

    assert (classic(at).state, classic(at).generation) == (ClassicState.STABLE, 2)
    with pytest.raises(IllegalGeneration):
        at.heartbeat(first, 3)
    with pytest.raises(UnknownMember):
        at.sync(sync_request(new.answer.member_id, 3))
    assert at.join(join_request(first)).answers == []
    assert at.join(join_request(second)).answer.generation == 3


def test_a_group_that_never_was_stable_is_not_remembered() -> None:
    at = desk()
    completing_group(at)

    at.crash()

    assert at.coordinator.groups == {}


def test_members_who_were_given_an_id_are_forgotten() -> None:
    at = desk()
    stable_group(at)
    pending = at.join(join_request(requires_known_member_id=True)).answer.member_id

    at.crash()

    with pytest.raises(UnknownMember):
        at.join(join_request(pending))


def test_an_empty_group_remembers_its_generation() -> None:
    at = desk()
    (first,) = stable_group(at)
    at.leave((first, None))

    at.crash()

    assert (classic(at).state, classic(at).generation) == (ClassicState.EMPTY, 2)
    assert at.join(join_request()).answer.generation == 3


def test_a_member_is_remembered_as_it_was_last() -> None:
    at = desk()
    (first,) = stable_group(at)
    protocols = (("range", subscription("people")),)
    at.join(join_request(first, protocols=protocols, session_timeout_ms=20_000, rebalance_timeout_ms=90_000))
    sync_all(at, [first])

    at.crash()

    member = classic(at).members[first]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (20_000, 90_000)
    assert member.metadata("range") == protocols[0][1]
    assert classic(at).subscribed == frozenset({"people"})


def test_a_member_that_changed_its_protocol_can_be_joined_by_others() -> None:
    at = desk()
    first = at.join(join_request(instance_id="i1", protocols=(("range", b""),))).answer.member_id
    sync_all(at, [first])
    at.leave((first, "i1"))
    again = at.join(join_request(instance_id="i1", protocols=(("sticky", b""),))).answer.member_id
    sync_all(at, [again])

    at.crash()

    at.join(join_request(protocols=(("sticky", b""), ("range", b""))))
    assert at.join(join_request(again, "i1", protocols=(("sticky", b""),))).answer.protocol_name == "sticky"


def test_a_member_of_a_log_of_long_ago_is_waited_for_as_long_as_its_session() -> None:
    at = desk()
    (first,) = stable_group(at)
    key, value = at.log[-1]
    assert value is not None
    at.log[-1] = key, value.replace((60_000).to_bytes(4, "big"), (-1).to_bytes(4, "big", signed=True))

    group = at.replayed().groups["g"]

    assert group.members[first].rebalance_timeout_ms == 10_000


def test_compaction_keeps_what_there_is() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    at.commit(commit_request([("orders", 0, 1)], first, 2))
    at.commit(commit_request([("orders", 0, 2)], first, 2))
    at.leave((first, None))
    at.join(join_request(second))
    sync_all(at, [second])

    at.log = compacted(at.log)
    at.crash()

    assert len(at.log) == 2
    at.heartbeat(second, 3)
    committed = at.coordinator.offsets.get("g", "orders", 0)
    assert committed is not None
    assert committed.offset == 2
