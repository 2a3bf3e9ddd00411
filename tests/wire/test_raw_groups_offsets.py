"""Offsets of groups, request by request: what Apache Kafka was seen to answer."""

from collections.abc import Iterator

import pytest

from compat.group_conversations import fresh_topics
from compat.group_conversations.alone import code, codes, offsets, talk_with
from compat.group_conversations.brokers import MAX_METADATA_BYTES
from compat.group_conversations.classic import Member, assembled, stable
from compat.group_conversations.consumer import Consumer
from compat.group_conversations.desk import Desk
from compat.group_conversations.talk import Talk
from headrace.protocol.errors import ErrorCode
from wire.process import BrokerProcess

ONE, TWO, THREE = ("one", 0), ("two", 0), ("three", 0)


@pytest.fixture
def talk(group_broker: BrokerProcess, request: pytest.FixtureRequest) -> Iterator[Talk]:
    with talk_with(group_broker, request.node.name, level=9) as talk:
        yield talk


@pytest.mark.parametrize("level", range(2, 11))
def test_an_offset_and_its_text_come_back_at_every_version(talk: Talk, level: int) -> None:
    talk.level = level
    desk = Desk(talk)
    committed = desk.commit("g", {"three": {0: (5, "so far"), 1: (6, None)}})
    fetched = desk.fetch("g", {"three": [0, 1, 2]})

    assert set(codes(committed).values()) == {ErrorCode.NONE}
    (topic,) = fetched.topics if level < 8 else fetched.groups[0].topics
    assert [(each.committed_offset, each.metadata) for each in topic.partitions] == [
        (5, "so far"),
        (6, ""),
        (-1, ""),
    ]


def test_what_cannot_be_committed_does_not_keep_the_rest_from_it(talk: Talk) -> None:
    desk = Desk(talk)
    too_long = "x" * (MAX_METADATA_BYTES + 1)

    committed = desk.commit("g", {"three": {0: 1, 1: (1, too_long), 3: 1, -1: 1}, "nowhere": {0: 1}})

    assert codes(committed) == {
        ("three", 0): ErrorCode.NONE,
        ("three", 1): ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ("three", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("three", -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert offsets(desk.fetch("g")) == {THREE: 1}


def test_who_may_commit_to_a_classic_group(talk: Talk) -> None:
    a, b, desk = Member(talk, "a"), Member(talk, "b"), Desk(talk)
    assembled(a, b)
    assert codes(a.commit({"one": {0: 1}})) == {ONE: ErrorCode.REBALANCE_IN_PROGRESS}
    a.sync({a: b"all"})
    assert codes(a.commit({"one": {0: 2}})) == {ONE: ErrorCode.NONE}
    stale = a.commit({"one": {0: 3}}, generation_id_or_member_epoch=1)
    assert codes(stale) == {ONE: ErrorCode.ILLEGAL_GENERATION}
    assert codes(a.commit({"one": {0: 4}}, member_id="nobody")) == {ONE: ErrorCode.UNKNOWN_MEMBER_ID}
    assert codes(desk.commit("g", {"one": {0: 5}})) == {ONE: ErrorCode.UNKNOWN_MEMBER_ID}
    assert offsets(desk.fetch("g")) == {ONE: 2}


def test_who_may_commit_to_a_group_of_consumers(talk: Talk) -> None:
    a, desk = Consumer(talk, "a"), Desk(talk)
    a.join()
    assert codes(a.commit({"one": {0: 1}})) == {ONE: ErrorCode.NONE}
    stale = a.commit({"one": {0: 2}}, generation_id_or_member_epoch=a.epoch + 1)
    assert codes(stale) == {ONE: ErrorCode.STALE_MEMBER_EPOCH}
    assert codes(a.commit({"one": {0: 3}}, member_id="nobody")) == {ONE: ErrorCode.UNKNOWN_MEMBER_ID}
    assert codes(desk.commit("g", {"one": {0: 4}})) == {ONE: ErrorCode.UNKNOWN_MEMBER_ID}
    talk.level = 8  # which does not know of epochs
    assert codes(a.commit({"one": {0: 5}})) == {ONE: ErrorCode.UNSUPPORTED_VERSION}
    talk.level = 9
    assert offsets(desk.fetch("g")) == {ONE: 1}


def test_who_may_fetch_from_a_group_of_consumers(talk: Talk) -> None:
    a, desk = Consumer(talk, "a"), Desk(talk)
    a.join()
    a.commit({"one": {0: 1}})

    def error(member_id: str | None, epoch: int) -> ErrorCode:
        return code(desk.fetch("g", {"one": [0]}, member_id=member_id, member_epoch=epoch).groups[0])

    assert error(a.member_id, a.epoch) == ErrorCode.NONE
    assert error(None, -1) == ErrorCode.NONE
    assert error(a.member_id, a.epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert error("nobody", a.epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert error(None, a.epoch) == ErrorCode.UNKNOWN_MEMBER_ID  # Kafka fails with UNKNOWN_SERVER_ERROR


def test_groups_and_topics_that_are_not_there_have_no_offsets(talk: Talk) -> None:
    desk = Desk(talk)
    assert offsets(desk.fetch("g", {"one": [0, 1], "nowhere": [0]})) == {
        ("one", 0): -1,
        ("one", 1): -1,
        ("nowhere", 0): -1,
    }
    assert offsets(desk.fetch("g")) == {}
    talk.level = 10
    (group,) = desk.fetch("g", {"one": [0], "nowhere": [0]}).groups
    assert [topic.partitions[0].error_code for topic in group.topics] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]


def test_several_groups_are_fetched_at_once(talk: Talk) -> None:
    desk = Desk(talk)
    desk.commit("g", {"one": {0: 1}, "two": {0: 2}})
    desk.commit("h", {"one": {0: 3}})

    answer = desk.fetch_many({"g": None, "h": {"one": [0], "two": [0]}, "nobody": None})

    fetched = [
        {
            (topic.name, each.partition_index): each.committed_offset
            for topic in group.topics
            for each in topic.partitions
        }
        for group in answer.groups
    ]
    assert fetched == [{ONE: 1, TWO: 2}, {ONE: 3, TWO: -1}, {}]


def test_offsets_are_deleted_unless_members_need_them(talk: Talk) -> None:
    a, desk = Member(talk, "a"), Desk(talk)
    stable(a)  # which reads the topic three
    a.commit({"three": {0: 1}, "two": {0: 2}})

    deleted = desk.delete_offsets("g", {"three": [0], "two": [0, 5]})

    assert codes(deleted) == {
        ("three", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("two", 0): ErrorCode.NONE,
        ("two", 5): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert offsets(desk.fetch("g")) == {THREE: 1}
    assert code(desk.delete_offsets("nobody", {"two": [0]})) == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_go_with_their_topic_and_with_their_group(talk: Talk) -> None:
    desk = Desk(talk)
    name = fresh_topics.make(talk, "short-lived", 1)
    desk.commit("g", {name: {0: 5}, "one": {0: 6}})
    fresh_topics.delete(talk, name)
    fresh_topics.make(talk, "short-lived", 1)
    assert offsets(desk.fetch("g")) == {ONE: 6}
    desk.delete("g")
    assert offsets(desk.fetch("g")) == {}
