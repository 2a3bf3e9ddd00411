"""Topics that come and go during a conversation, and when the group coordinator has noticed.

A broker may tell clients of a topic before its coordinator knows of it. So a consumer in a group aside asks
to be assigned the topic, again and again, until it is.
"""

from compat.group_conversations.talk import Talk
from compat.group_conversations.topics import delete_topic, make_topic
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.protocol.schema.delete_groups import DeleteGroupsRequest
from wire.raw import RawClient

PROBE = "probe"


def make(talk: Talk, name: str, partitions: int) -> str:
    """Make a topic, and return its full name when it can be assigned."""
    name = talk.called(name)
    with RawClient(talk.bootstrap) as client:
        talk.meet_topic(name, make_topic(client, name, partitions))
    talk.until(f"{name} can be assigned", lambda: _is_assigned(talk, name))
    return name


def delete(talk: Talk, name: str) -> None:
    """Delete a topic, and return when it cannot be assigned any more."""
    with RawClient(talk.bootstrap) as client:
        delete_topic(client, name)
    talk.until(f"{name} cannot be assigned", lambda: not _is_assigned(talk, name))


def _is_assigned(talk: Talk, topic: str) -> bool:
    """Whether a new group that wants the topic gets it; leaves nothing behind."""
    group = talk.called(PROBE)
    joining = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=PROBE,
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    answer = talk.ask_aside(joining)
    leaving = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=PROBE, member_epoch=-1, topic_partitions=None
    )
    talk.ask_aside(leaving)
    (deleted,) = talk.ask_aside(DeleteGroupsRequest(groups_names=[group])).results
    assert answer.error_code == deleted.error_code == ErrorCode.NONE, (answer, deleted)
    return bool(answer.assignment and answer.assignment.topic_partitions)
