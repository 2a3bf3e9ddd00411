"""What a group coordinator knows by now.

A broker may tell clients of a topic or of a setting before its coordinator knows of it. So a consumer joins a
group, sees what it is answered, and leaves.
"""

from typing import Any

from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.protocol.schema.delete_groups import DeleteGroupsRequest
from wire.raw import RawClient

PROBE = "probe"


def first_answer(client: RawClient, group: str, topic: str) -> Any:
    """What the first member of a new group that wants the topic is answered; leaves nothing behind."""
    joining = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=PROBE,
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    answer = client.ask(joining, 1)
    leaving = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=PROBE, member_epoch=-1, topic_partitions=None
    )
    client.ask(leaving, 1)
    (deleted,) = client.ask(DeleteGroupsRequest(groups_names=[group]), 2).results
    assert answer.error_code == deleted.error_code == ErrorCode.NONE, (answer, deleted)
    return answer


def can_be_assigned(client: RawClient, topic: str, group: str = PROBE) -> bool:
    assignment = first_answer(client, group, topic).assignment
    return bool(assignment and assignment.topic_partitions)
