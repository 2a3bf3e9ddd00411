"""Consumers that are not heard of (KIP-848): in a session, and while they should give something up."""

from compat.group_conversations.consumer import Consumer
from compat.group_conversations.desk import Desk
from compat.group_conversations.probe import first_answer
from compat.group_conversations.stories import CONSUMER_LEVELS, conversation
from compat.group_conversations.talk import Talk
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.configs import GROUP, SET, alter
from wire.raw import RawClient

SHORT_MS = 400
SHORT_SESSION = {"consumer.session.timeout.ms": "2000", "consumer.heartbeat.interval.ms": "500"}


def wait_for_members(talk: Talk, group: str, count: int) -> None:
    request = ConsumerGroupDescribeRequest(
        group_ids=[talk.called(group)], include_authorized_operations=False
    )
    talk.until(f"{count} members", lambda: len(talk.ask_aside(request).groups[0].members) == count)


def shorten_session(talk: Talk, group: str) -> None:
    """Set a short session timeout for a group; return when the coordinator knows, which its answers tell."""
    changes = [(name, SET, value) for name, value in SHORT_SESSION.items()]
    with RawClient(talk.bootstrap) as client:
        assert alter(client, GROUP, talk.called(group), *changes)[0] == ErrorCode.NONE
        talk.until(
            "the session timeout is short",
            lambda: first_answer(client, talk.called(group), "three").heartbeat_interval_ms == 500,
        )


@conversation((10,))
def silent_consumers_are_removed(talk: Talk) -> None:
    shorten_session(talk, "g")
    shorten_session(talk, "h")
    a, static, away = (
        Consumer(talk, "a"),
        Consumer(talk, "s", "h", instance="i"),
        Consumer(talk, "w", "h", instance="k"),
    )
    a.join()
    static.join()
    away.join()
    away.leave(member_epoch=-2)
    wait_for_members(talk, "g", 0)
    wait_for_members(talk, "h", 0)
    Desk(talk).describe_consumers("g", "h")
    a.heartbeat()
    static.heartbeat()
    away.join()


@conversation(CONSUMER_LEVELS)
def who_gives_nothing_up_in_time_is_removed(talk: Talk) -> None:
    a, b = Consumer(talk, "a", rebalance_ms=SHORT_MS), Consumer(talk, "b")
    a.join()
    a.owns()
    b.join()
    a.heartbeat()
    wait_for_members(talk, "g", 1)
    Desk(talk).describe_consumers("g")
    a.heartbeat()
    b.heartbeat()
    a.join()


@conversation(CONSUMER_LEVELS)
def who_gives_up_in_time_stays(talk: Talk) -> None:
    a, b = Consumer(talk, "a", rebalance_ms=SHORT_MS * 5), Consumer(talk, "b")
    a.join()
    a.owns()
    b.join()
    a.heartbeat()
    a.owns()
    b.heartbeat()
    Desk(talk).describe_consumers("g")
