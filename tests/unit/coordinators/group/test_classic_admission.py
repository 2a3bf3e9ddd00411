"""Who may join a classic group: somebody who speaks its protocol, within its limits."""

from typing import Any

import pytest

from headrace.coordinators.group.classic import ClassicState
from headrace.coordinators.group.errors import (
    GroupIsFull,
    InconsistentProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    UnknownMember,
)
from support.groups import GroupDesk, join_request
from unit.coordinators.group.stories import classic, desk, stable_group

# -- protocols -------------------------------------------------------------------------------------


def test_the_protocol_that_most_like_best_of_those_that_all_know_is_chosen() -> None:
    at = GroupDesk(initial_rebalance_delay_ms=3_000)
    wishes = [("sticky", "range", "odd"), ("range", "sticky"), ("range", "sticky"), ("sticky", "range")]
    waiters = [at.join(join_request(protocols=[(name, b"") for name in names])) for names in wishes]
    waiters.append(at.join(join_request(protocols=[("strange", b""), ("range", b"x")])))
    at.pass_time(6_000)

    assert {waiter.answer.protocol_name for waiter in waiters} == {"range"}
    assert waiters[0].answer.members[-1].metadata == b"x"


@pytest.mark.parametrize(
    "some",
    [
        {"protocols": (("sticky", b""),)},
        {"protocols": ()},
        {"protocol_type": "connect"},
        {"protocol_type": ""},
    ],
    ids=["unknown", "none", "another type", "no type"],
)
def test_who_speaks_nothing_that_all_know_is_refused(some: dict[str, Any]) -> None:
    at = desk()
    stable_group(at)

    with pytest.raises(InconsistentProtocol):
        at.join(join_request(**some))

    assert len(classic(at).members) == 1
    assert classic(at).state is ClassicState.STABLE


@pytest.mark.parametrize("some", [{"protocols": ()}, {"protocol_type": ""}], ids=["no protocol", "no type"])
def test_no_group_begins_without_a_protocol(some: dict[str, Any]) -> None:
    at = desk()

    with pytest.raises(InconsistentProtocol):
        at.join(join_request(**some))

    assert at.coordinator.groups == {}


def test_a_member_must_keep_a_protocol_that_all_know() -> None:
    at = desk()
    _, second = stable_group(at, 2)

    with pytest.raises(InconsistentProtocol):
        at.join(join_request(second, protocols=(("sticky", b""),)))

    assert classic(at).state is ClassicState.STABLE


def test_a_group_that_was_left_speaks_what_the_next_member_speaks() -> None:
    at = desk()
    (first,) = stable_group(at)
    at.leave((first, None))

    answer = at.join(join_request(protocol_type="connect", protocols=(("eager", b""),))).answer

    assert (answer.protocol_type, answer.protocol_name) == ("connect", "eager")


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("session_timeout_ms", [5_999, 1_800_001, 0, -1])
def test_a_session_timeout_out_of_bounds_is_refused(session_timeout_ms: int) -> None:
    at = desk()

    with pytest.raises(InvalidSessionTimeout):
        at.join(join_request(session_timeout_ms=session_timeout_ms))

    assert at.coordinator.groups == {}


def test_a_group_must_have_a_name() -> None:
    with pytest.raises(InvalidGroupId):
        desk().join(join_request(group_id=""))


def test_an_id_that_nobody_was_given_is_unknown() -> None:
    at = desk()
    with pytest.raises(UnknownMember):
        at.join(join_request("somebody"))
    assert at.coordinator.groups == {}

    stable_group(at)
    with pytest.raises(UnknownMember):
        at.join(join_request("somebody"))


def test_a_full_group_takes_nobody_but_its_members() -> None:
    at = desk(max_size=2)
    first, second = stable_group(at, 2)

    with pytest.raises(GroupIsFull):
        at.join(join_request())

    again = at.join(join_request(first))
    at.join(join_request(second))
    assert again.answer.generation == 3


def test_a_group_that_comes_together_takes_the_first_to_join_up_to_its_size() -> None:
    at = GroupDesk(initial_rebalance_delay_ms=3_000, max_size=2)
    ids = [at.join(join_request(requires_known_member_id=True)).answer.member_id for _ in range(3)]
    at.join(join_request(ids[0]))
    at.join(join_request(ids[1]))

    with pytest.raises(GroupIsFull):
        at.join(join_request(ids[2]))

    assert classic(at).pending == set()
