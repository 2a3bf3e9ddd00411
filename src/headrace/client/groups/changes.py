"""Talks with a broker that change the groups which it coordinates: commits, and what is deleted.

Each may be said twice, if the answer to the first was lost.
"""

from headrace.client.errors import ClientError, GroupActive, NoSuchGroup, NoSuchTopic
from headrace.client.groups.talks import Offsets, again, by_name
from headrace.client.wire.connection import Connection
from headrace.client.wire.live_brokers import Node
from headrace.client.wire.settling import Again
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition, by_topic
from headrace.protocol.schema.delete_groups import DeleteGroupsRequest
from headrace.protocol.schema.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.schema.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)


def commit(
    offsets: Offsets, _node: Node, names: list[str], at: Connection
) -> dict[str, dict[TopicPartition, int] | Again]:
    """Commit for a group that nobody is in; GroupActive if somebody is."""
    (name,) = names
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=offsets[TopicPartition(topic, index)],
                    committed_metadata="",
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(offsets).items()
    ]
    answer = by_name(OffsetCommitRequest(group_id=name, member_id="", topics=topics), at)
    for topic in answer.topics:
        for each in topic.partitions:
            if each.error_code == ErrorCode.UNKNOWN_MEMBER_ID:  # while there are members, only they commit
                raise GroupActive(name)
            if each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise NoSuchTopic(topic.name)
            if each.error_code != ErrorCode.NONE:
                return {name: again(each.error_code, None, topic.name)}
    return {name: dict(offsets)}


def delete(_node: Node, names: list[str], at: Connection) -> dict[str, bool | Again]:
    """Delete groups; one that is not there is deleted already, perhaps by us, if an answer was lost."""
    done: dict[str, bool | Again] = {}
    for each in at.ask(DeleteGroupsRequest(groups_names=names)).results:
        if each.error_code == ErrorCode.NON_EMPTY_GROUP:
            raise GroupActive(each.group_id)
        gone = each.error_code in {ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND}
        done[each.group_id] = gone or again(each.error_code, None, each.group_id)
    return done


def forget(
    places: list[TopicPartition], _node: Node, names: list[str], at: Connection
) -> dict[str, bool | Again]:
    """Forget what a group has committed for some partitions; ClientError while its members read the topic."""
    (name,) = names
    topics = [
        OffsetDeleteRequestTopic(
            name=topic,
            partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
        )
        for topic, indexes in by_topic(places).items()
    ]
    answer = at.ask(OffsetDeleteRequest(group_id=name, topics=topics))
    if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        raise NoSuchGroup(name)
    if answer.error_code != ErrorCode.NONE:
        return {name: again(answer.error_code, None, f"group {name}")}
    for topic in answer.topics:
        for each in topic.partitions:
            place = TopicPartition(topic.name, each.partition_index)
            if each.error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
                raise ClientError(f"{place}: group subscribed to topic")
            if each.error_code not in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
                return {name: again(each.error_code, None, str(place))}
    return {name: True}
