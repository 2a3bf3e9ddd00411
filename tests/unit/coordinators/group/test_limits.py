"""What strangers may not do to a coordinator, and how soon members are to be heard from."""

import pytest

from headrace.coordinators.group.errors import GroupIsFull, GroupTooLarge, InconsistentProtocol
from headrace.coordinators.group.limits import ConsumerTimeouts
from support.groups import beat_request, join_request, sync_request
from unit.coordinators.group.stories import completing_group, consumers, desk


def test_ids_are_not_given_out_without_end() -> None:
    at = desk()
    for _ in range(10_000):
        at.join(join_request(requires_known_member_id=True))

    with pytest.raises(GroupIsFull):
        at.join(join_request(requires_known_member_id=True))

    at.pass_time(10_000)
    assert at.join(join_request(requires_known_member_id=True)).is_answered


def test_a_member_speaks_no_more_protocols_than_anybody_needs() -> None:
    at = desk()
    protocols = [(f"p{number}", b"") for number in range(129)]

    with pytest.raises(InconsistentProtocol):
        at.join(join_request(protocols=protocols))

    assert at.join(join_request(protocols=protocols[:128])).is_answered


def test_a_long_name_does_not_make_a_long_id() -> None:
    at = desk()

    member_id = at.join(join_request(instance_id="i" * 10_000)).answer.member_id

    assert len(member_id) < 300


def test_an_assignment_that_is_too_large_to_be_remembered_is_refused_and_can_be_made_anew() -> None:
    at = desk(max_record_bytes=1_000)
    first, second = completing_group(at, 2)
    waiting = at.sync(sync_request(second, 2))

    with pytest.raises(GroupTooLarge):
        at.sync(sync_request(first, 2, {first: bytes(1_000)}))

    assert not waiting.is_answered
    assert at.log == []
    at.sync(sync_request(first, 2, {first: b"less"}))
    assert waiting.answer.assignment == b""


def test_members_heartbeat_more_often_while_their_group_finds_its_new_shape() -> None:
    at = desk(consumer_heartbeat_interval_ms=5_000)
    assert at.beat(beat_request("a", 0)).heartbeat_interval_ms == 5_000  # who is alone waits for nobody
    assert at.beat(beat_request("b", 0)).heartbeat_interval_ms == 1_000
    assert at.beat(beat_request("a", 2)).heartbeat_interval_ms == 1_000

    at.pass_time(10_000)

    assert at.beat(beat_request("b", 3)).heartbeat_interval_ms == 5_000


def test_members_never_heartbeat_less_often_than_the_setting_says() -> None:
    at = desk(consumer_heartbeat_interval_ms=500)
    at.beat(beat_request("a", 0))

    assert at.beat(beat_request("b", 0)).heartbeat_interval_ms == 500


def test_a_member_that_is_to_give_up_more_has_the_whole_time_for_it() -> None:
    at = desk().set_topics(orders=3, people=3)
    both = frozenset({"orders", "people"})
    at.beat(beat_request("a", 0, topics=both, rebalance_timeout_ms=20_000))
    at.beat(beat_request("b", 0, topics=both))
    at.beat(beat_request("a", 2))
    at.pass_time(15_000)
    at.beat(beat_request("a", 2, topics=frozenset({"places"})))
    assert consumers(at).members["a"].assigned == {}

    at.pass_time(15_000)
    assert "a" in consumers(at).members
    at.pass_time(5_000)

    assert "a" not in consumers(at).members


def test_a_consumer_group_may_have_timeouts_of_its_own() -> None:
    at = desk(consumer_session_timeout_ms=45_000, consumer_heartbeat_interval_ms=5_000)
    at.timeouts["g"] = ConsumerTimeouts(session_timeout_ms=50_000, heartbeat_interval_ms=7_000)

    joined = at.beat(beat_request("a", 0))
    at.pass_time(49_999)
    assert "a" in consumers(at).members
    at.pass_time(2)

    assert joined.heartbeat_interval_ms == 7_000
    assert "a" not in consumers(at).members


def test_what_a_group_does_not_set_is_the_brokers() -> None:
    at = desk(consumer_session_timeout_ms=45_000, consumer_heartbeat_interval_ms=5_000)
    at.timeouts["g"] = ConsumerTimeouts(heartbeat_interval_ms=7_000)
    at.timeouts["another"] = ConsumerTimeouts(session_timeout_ms=60_000)

    at.beat(beat_request("a", 0))
    at.pass_time(45_001)
    assert "a" not in consumers(at).members

    del at.timeouts["g"]
    assert at.beat(beat_request("a", 0)).heartbeat_interval_ms == 5_000
