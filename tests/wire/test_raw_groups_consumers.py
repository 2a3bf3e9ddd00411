"""Groups of consumers (KIP-848), heartbeat by heartbeat: what Apache Kafka was seen to answer."""

from collections.abc import Iterator

import pytest

from compat.group_conversations import fresh_topics
from compat.group_conversations.alone import code, talk_with
from compat.group_conversations.classic import Member, assignment
from compat.group_conversations.consumer import Consumer, settle, shares
from compat.group_conversations.desk import Desk
from compat.group_conversations.talk import Talk
from headrace.protocol.consumer_protocol import decode_assignment
from headrace.protocol.errors import ErrorCode
from wire.configs import DELETE, GROUP, SET, alter
from wire.process import BrokerProcess
from wire.raw import RawClient

FOR_A_WHILE = -2


@pytest.fixture
def talk(group_broker: BrokerProcess, request: pytest.FixtureRequest) -> Iterator[Talk]:
    with talk_with(group_broker, request.node.name) as talk:
        yield talk


def test_a_consumer_is_told_its_partitions_once(talk: Talk) -> None:
    a = Consumer(talk, "a")

    joined = a.join()

    assert (code(joined), joined.heartbeat_interval_ms, a.owned) == (
        ErrorCode.NONE,
        1000,
        {"three": [0, 1, 2]},
    )
    assert a.owns().assignment is None
    assert a.heartbeat().assignment is None
    assert a.full().assignment is not None  # who says everything hears everything


def test_partitions_are_given_up_before_they_are_given_away(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Consumer(talk, "b")
    a.join()
    before = a.epoch
    b.join()
    assert b.owned == {}
    assert a.heartbeat().member_epoch == before  # and it is to give up one
    assert len(a.owned["three"]) == 2
    assert b.heartbeat().assignment is None
    assert a.owns().member_epoch == b.epoch
    b.heartbeat()
    assert sorted(a.owned["three"] + b.owned["three"]) == [0, 1, 2]


def test_three_consumers_get_equal_shares(talk: Talk) -> None:
    trio = [Consumer(talk, name, topics=["one", "two", "three"]) for name in "abc"]
    for each in trio:
        each.join()
    settle(*trio)
    assert shares(*trio) == "a:2 b:2 c:2"
    trio[0].leave()
    settle(*trio[1:])
    assert shares(*trio[1:]) == "b:3 c:3"


def test_joins_that_make_no_sense(talk: Talk) -> None:
    a = Consumer(talk, "a")

    for nonsense in (
        {"group_id": ""},
        {"member_id": ""},
        {"member_epoch": -3},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": a.partitions({"three": [0]})},
        {"subscribed_topic_names": None},
        {"instance_id": ""},
    ):
        assert code(a.join(**nonsense)) == ErrorCode.INVALID_REQUEST, nonsense
    assert code(a.join(server_assignor="best")) == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert code(a.join(subscribed_topic_regex="[")) == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert list(Desk(talk).list().groups) == []  # nothing is left of any of them


def test_epochs_that_do_not_fit_are_fenced(talk: Talk) -> None:
    a = Consumer(talk, "a")
    assert code(a.heartbeat(member_epoch=1)) == ErrorCode.GROUP_ID_NOT_FOUND
    a.join()
    assert code(a.heartbeat(member_epoch=a.epoch + 1)) == ErrorCode.FENCED_MEMBER_EPOCH
    assert code(a.heartbeat(member_epoch=a.epoch - 1)) == ErrorCode.FENCED_MEMBER_EPOCH
    assert code(a.heartbeat(member_id="nobody")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(a.heartbeat()) == ErrorCode.NONE


def test_a_static_consumer_finds_its_partitions_when_it_is_back(talk: Talk) -> None:
    a, b = Consumer(talk, "a", instance="shop-7"), Consumer(talk, "b")
    a.join()
    b.join()
    settle(a, b)
    twin = Consumer(talk, "twin", instance="shop-7")
    assert code(twin.join()) == ErrorCode.UNRELEASED_INSTANCE_ID
    epoch, owned = a.epoch, a.owned
    assert a.leave(member_epoch=FOR_A_WHILE).member_epoch == FOR_A_WHILE
    assert b.heartbeat().assignment is None
    assert code(twin.join()) == ErrorCode.NONE
    assert (twin.epoch, twin.owned) == (epoch, owned)
    assert code(a.heartbeat(member_epoch=epoch)) == ErrorCode.FENCED_INSTANCE_ID


def test_a_consumer_that_gives_nothing_up_in_time_is_removed(talk: Talk) -> None:
    a, b = Consumer(talk, "a", rebalance_ms=200), Consumer(talk, "b")
    a.join()
    b.join()
    a.heartbeat()  # and it is to give up some

    talk.until("a is gone", lambda: code(a.heartbeat()) == ErrorCode.UNKNOWN_MEMBER_ID)

    b.heartbeat()
    assert b.owned == {"three": [0, 1, 2]}


def test_a_pattern_means_topics_of_today_and_of_tomorrow(talk: Talk) -> None:
    a = Consumer(talk, "a", topics=None)
    a.join(subscribed_topic_regex=f"tw.|{talk.prefix}.*")
    assert a.owned == {"two": [0, 1]}
    name = fresh_topics.make(talk, "later", 1)
    a.owns()
    assert a.owned == {"two": [0, 1], name: [0]}


def test_a_pattern_never_means_topics_of_the_brokers_own(talk: Talk) -> None:
    a = Consumer(talk, "a", topics=None)

    a.join(subscribed_topic_regex=".*consumer_offsets|one")  # Kafka gives it both

    assert a.owned == {"one": [0]}


def test_a_classic_group_becomes_a_group_of_consumers_and_classic_again(talk: Talk) -> None:
    a, b, desk = Member(talk, "a"), Consumer(talk, "b"), Desk(talk)
    a.enter()
    a.sync({a: assignment(three=[0, 1, 2])})
    b.join()
    assert [each.group_type for each in desk.list().groups] == ["consumer"]
    assert b.owned == {}
    assert code(a.heartbeat()) == ErrorCode.REBALANCE_IN_PROGRESS
    a.join()
    (kept,) = decode_assignment(a.sync().assignment).assigned_partitions
    b.heartbeat()
    assert sorted([*kept.partitions, *b.owned["three"]]) == [0, 1, 2]
    b.leave()
    assert [each.group_type for each in desk.list().groups] == ["classic"]
    assert code(a.heartbeat()) == ErrorCode.REBALANCE_IN_PROGRESS
    assert a.join().leader == a.member_id


def test_other_peoples_groups_are_not_for_consumers(talk: Talk) -> None:
    a, b = Member(talk, "a", protocols=[("default", b"hello")]), Consumer(talk, "b")
    a.join(protocol_type="connect")
    a.join(protocol_type="connect")
    assert code(b.join()) == ErrorCode.GROUP_ID_NOT_FOUND
    c, d = Consumer(talk, "c", "h"), Member(talk, "d", "h")
    c.join()
    assert code(d.join(protocol_type="connect")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_consumer_goes_on_after_a_crash_with_what_it_had(group_broker: BrokerProcess, talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Consumer(talk, "b")
    a.join()
    b.join()
    settle(a, b)
    before = shares(a, b)
    group_broker.kill()
    group_broker.start()

    with talk_with(group_broker, talk.name) as after:
        a.talk = b.talk = after

        assert [code(each.heartbeat()) for each in (a, b)] == [ErrorCode.NONE, ErrorCode.NONE]
        assert shares(a, b) == before
        b.leave()
        a.heartbeat()
        assert a.owned == {"three": [0, 1, 2]}


def test_a_group_sets_its_own_heartbeat_interval(talk: Talk, group_broker: BrokerProcess) -> None:
    a, interval = Consumer(talk, "a"), "consumer.heartbeat.interval.ms"
    a.join()

    with RawClient(group_broker.bootstrap) as client:
        assert alter(client, GROUP, a.group, (interval, SET, "3000")) == (ErrorCode.NONE, "")
        longer = a.heartbeat().heartbeat_interval_ms
        assert alter(client, GROUP, a.group, (interval, DELETE, None)) == (ErrorCode.NONE, "")

    assert (longer, a.heartbeat().heartbeat_interval_ms) == (3000, 1000)
