"""Classic groups, request by request: what Apache Kafka was seen to answer, and where we do better."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.group_conversations.alone import code, talk_with
from compat.group_conversations.brokers import ALIKE, MAX_SIZE
from compat.group_conversations.classic import Member, assembled, stable, subscription
from compat.group_conversations.desk import Desk
from compat.group_conversations.talk import Talk
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.delete_groups import DeleteGroupsRequest
from headrace.protocol.schema.leave_group import MemberIdentity
from wire.process import BrokerProcess
from wire.raw import RawClient


@pytest.fixture
def talk(group_broker: BrokerProcess, request: pytest.FixtureRequest) -> Iterator[Talk]:
    with talk_with(group_broker, request.node.name) as talk:
        yield talk


@pytest.mark.parametrize("level", range(4, 10))
def test_a_new_member_is_told_its_id_and_joins_with_it(talk: Talk, level: int) -> None:
    talk.level = level
    a = Member(talk, "a")

    told = a.join()

    assert code(told) == ErrorCode.MEMBER_ID_REQUIRED
    assert told.member_id.startswith("raw-")  # the client's own id
    joined = a.join()
    assert (code(joined), joined.generation_id, joined.leader) == (ErrorCode.NONE, 1, told.member_id)


@pytest.mark.parametrize("level", range(4))
def test_an_old_member_joins_at_once(talk: Talk, level: int) -> None:
    talk.level = level
    joined = Member(talk, "a").join()

    assert (code(joined), joined.generation_id, joined.leader) == (ErrorCode.NONE, 1, joined.member_id)


def test_only_the_leader_sees_the_members(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", protocols=[("range", subscription("two"))])
    a.enter()
    entering = b.enter_call()
    led, followed = a.join(), entering.answer()

    assert {each.member_id: each.metadata for each in led.members} == {
        a.member_id: subscription("three"),
        b.member_id: subscription("two"),
    }
    assert list(followed.members) == []
    assert led.leader == followed.leader == a.member_id
    assert led.generation_id == followed.generation_id == 2


def test_a_follower_gets_what_the_leader_assigns(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assembled(a, b)
    waiting = b.sync_call()

    assert a.sync({a: b"for a", b: b"for b"}).assignment == b"for a"
    assert waiting.answer().assignment == b"for b"
    assert b.sync().assignment == b"for b"  # again, whenever it asks


def test_a_new_group_waits_for_more_members(tmp_path: Path) -> None:
    settings = {**ALIKE, "group.initial.rebalance.delay.ms": "500"}
    with BrokerProcess(tmp_path, settings) as broker, talk_with(broker, "delayed") as talk:
        a, b = Member(talk, "a"), Member(talk, "b")
        calls = [a.enter_call(), b.enter_call()]

        assert [call.answer().generation_id for call in calls] == [1, 1]


def test_what_cannot_join(talk: Talk) -> None:
    a = Member(talk, "a")

    assert code(a.join(group_id="")) == ErrorCode.INVALID_GROUP_ID
    assert code(a.join(member_id="nobody")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(a.join(session_timeout_ms=99)) == ErrorCode.INVALID_SESSION_TIMEOUT
    assert code(a.join(session_timeout_ms=60_001)) == ErrorCode.INVALID_SESSION_TIMEOUT
    assert code(a.join(protocols=[])) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(a.join(protocol_type="")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert list(Desk(talk).list().groups) == []  # nothing is left of any of them


def test_a_group_that_is_not_deleted_says_why_since_v3(talk: Talk, group_broker: BrokerProcess) -> None:
    stable(Member(talk, "a"))
    group = talk.called("g")

    with RawClient(group_broker.bootstrap) as client:
        results = client.ask(DeleteGroupsRequest(groups_names=[group, "nobody"]), 3).results

    assert [(each.error_code, each.error_message) for each in results] == [
        (ErrorCode.NON_EMPTY_GROUP, f"group {group!r} has 1 members (NON_EMPTY_GROUP)"),
        (ErrorCode.GROUP_ID_NOT_FOUND, None),
    ]


def test_a_group_speaks_one_protocol(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", protocols=[("roundrobin", subscription("three"))])
    stable(a)

    assert code(b.join()) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(a.sync(protocol_name="roundrobin")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(a.sync(protocol_name=None)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(a.heartbeat()) == ErrorCode.NONE


def test_a_full_group_takes_nobody(talk: Talk) -> None:
    assembled(*(Member(talk, f"m{number}") for number in range(MAX_SIZE)))

    assert code(Member(talk, "late").join()) == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_metadata_that_nobody_can_read_does_not_stop_the_group(talk: Talk) -> None:
    a = Member(talk, "a", protocols=[("range", b"what is this")])  # Kafka would never answer

    assert code(a.enter()) == ErrorCode.NONE
    assert a.sync({a: b"all"}).assignment == b"all"
    a.commit({"three": {0: 1}})
    (topic,) = Desk(talk).delete_offsets("g", {"three": [0]}).topics
    assert topic.partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC  # it may be


def test_a_join_that_another_one_replaces_is_answered(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    stable(a)
    first = b.enter_call()
    second = b.join_call()

    assert code(first.answer()) == ErrorCode.REBALANCE_IN_PROGRESS  # Kafka would never answer
    a.join()
    assert code(second.answer()) == ErrorCode.NONE


def test_heartbeats_say_what_to_do(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assert code(a.heartbeat(member_id="nobody")) == ErrorCode.UNKNOWN_MEMBER_ID  # no group
    a.enter()
    assert code(a.heartbeat()) == ErrorCode.NONE  # its assignment is awaited
    a.sync({a: b"all"})
    assert code(a.heartbeat(generation_id=2)) == ErrorCode.ILLEGAL_GENERATION
    assert code(a.heartbeat(member_id="nobody")) == ErrorCode.UNKNOWN_MEMBER_ID
    b.enter_call()
    assert code(a.heartbeat()) == ErrorCode.REBALANCE_IN_PROGRESS
    assert code(a.sync()) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_comes_back_and_nobody_notices(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="shop-7")
    stable(a, b)
    back = Member(talk, "back", instance="shop-7")

    joined = back.join()

    assert (code(joined), joined.generation_id) == (ErrorCode.NONE, 2)
    assert joined.member_id.startswith("shop-7-")
    assert joined.member_id != b.member_id
    assert back.sync().assignment == b"for b"
    assert code(a.heartbeat()) == ErrorCode.NONE
    assert code(b.heartbeat()) == ErrorCode.FENCED_INSTANCE_ID
    assert code(b.join()) == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_leader_that_is_back_need_not_assign(talk: Talk) -> None:
    a, b = Member(talk, "a", instance="shop-7"), Member(talk, "b")
    stable(a, b)

    joined = Member(talk, "back", instance="shop-7").join()
    assert joined.skip_assignment
    assert joined.leader == joined.member_id
    talk.level = 8  # cannot be told to skip, so it is told that somebody else leads
    joined = Member(talk, "again", instance="shop-7").join(group_id=a.group)
    assert joined.leader != joined.member_id
    assert list(joined.members) == []


def test_members_leave_by_id_and_by_instance(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="shop-7")
    stable(a, b)
    left = a.leave(
        members=[
            MemberIdentity(member_id="nobody"),
            MemberIdentity(member_id="nobody", group_instance_id="shop-7"),
            MemberIdentity(member_id="", group_instance_id="shop-7"),
            MemberIdentity(member_id=a.member_id),
        ]
    )

    assert code(left) == ErrorCode.NONE
    assert [each.error_code for each in left.members] == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]
    (group,) = Desk(talk).describe("g").groups
    assert (group.group_state, list(group.members)) == ("Empty", [])


def test_a_silent_member_is_removed_and_the_others_join_again(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", session_ms=500)
    stable(a, b)

    talk.until("b is gone", lambda: code(a.heartbeat()) == ErrorCode.REBALANCE_IN_PROGRESS)

    assert code(b.heartbeat()) == ErrorCode.UNKNOWN_MEMBER_ID
    assert [each.member_id for each in a.join().members] == [a.member_id]


def test_who_does_not_join_again_in_time_is_removed(talk: Talk) -> None:
    a, b, c = (Member(talk, name, rebalance_ms=1000) for name in "abc")
    stable(a, b)
    entering = c.enter_call()

    joined = a.join()  # answered when b's time is up

    assert {each.member_id for each in joined.members} == {a.member_id, c.member_id}
    assert code(entering.answer()) == ErrorCode.NONE
    assert code(b.heartbeat()) == ErrorCode.UNKNOWN_MEMBER_ID


def test_groups_are_described_listed_and_deleted(talk: Talk) -> None:
    a, desk = Member(talk, "a"), Desk(talk)
    (unknown,) = desk.describe("g").groups
    assert (unknown.error_code, unknown.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    stable(a)
    (group,) = desk.describe("g").groups
    assert (group.group_state, group.protocol_data) == ("Stable", "range")
    assert [(each.client_id, each.client_host) for each in group.members] == [("raw", "/127.0.0.1")]
    assert [each.group_type for each in desk.list(states=["sTABLE"], types=["Classic"]).groups] == ["classic"]
    assert list(desk.list(states=["Nonsense"]).groups) == []
    assert [each.error_code for each in desk.delete("g").results] == [ErrorCode.NON_EMPTY_GROUP]
    a.leave()
    assert [each.error_code for each in desk.delete("g").results] == [ErrorCode.NONE]
    assert [each.error_code for each in desk.delete("g").results] == [ErrorCode.GROUP_ID_NOT_FOUND]


def test_a_group_lives_on_after_a_crash(group_broker: BrokerProcess, talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="shop-7")
    stable(a, b)
    group_broker.kill()
    group_broker.start()

    with talk_with(group_broker, talk.name) as after:
        a.talk = b.talk = after

        assert code(a.heartbeat()) == ErrorCode.NONE
        assert b.sync().assignment == b"for b"
        (group,) = Desk(after).describe("g").groups
        assert (group.group_state, len(group.members)) == ("Stable", 2)
