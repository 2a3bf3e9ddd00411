"""Talks with a broker about the groups that it coordinates, in Kafka's words: requests, and what they mean.

A group that has another coordinator, or one that is not ready, is worth another try (`Again`).
"""

from collections.abc import Mapping
from typing import Any, Final

from headrace.client.errors import ClientError
from headrace.client.groups.descriptions import of_classic_group, of_consumer_group, of_no_group
from headrace.client.groups.group import Described
from headrace.client.wire.brokers import raise_for
from headrace.client.wire.connection import Connection, NotKnown
from headrace.client.wire.live_brokers import Node
from headrace.client.wire.settling import Again
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.schema.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.protocol.schema.describe_groups import DescribeGroupsRequest
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.list_groups import ListedGroup, ListGroupsRequest
from headrace.protocol.schema.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

Offsets = Mapping[TopicPartition, int]
_GROUP: Final = 0  # a kind of coordinator
_SEVERAL_COORDINATORS, _SEVERAL_GROUPS = 4, 8  # since these versions
_BY_NAME: Final = 9  # the last version that has topics by name
_NOT_THIS_KIND: Final = {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}


def coordinators(names: list[str], at: Connection) -> dict[str, Node | Again]:
    """Who coordinates each group, as the broker sees it."""
    request = FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=names)
    if at.version(request) >= _SEVERAL_COORDINATORS:
        return {each.key: _node(each.key, each) for each in at.ask(request).coordinators}
    return {name: _node(name, at.ask(FindCoordinatorRequest(key=name, key_type=_GROUP))) for name in names}


def listed(_node: Node, nodes: list[Node], at: Connection) -> dict[Node, list[ListedGroup] | Again]:
    """The groups that the broker coordinates."""
    answer = at.ask(ListGroupsRequest())
    (node,) = nodes
    if answer.error_code != ErrorCode.NONE:
        return {node: again(answer.error_code, None, f"broker {node.id}")}
    return {node: list(answer.groups)}


def describe(node: Node, names: list[str], at: Connection) -> dict[str, Described | Again]:
    """The groups, of either protocol; those that are not there are dead."""
    found: dict[str, Described | Again] = {}
    for each in _consumer_groups(names, at):
        if each.error_code == ErrorCode.NONE:
            found[each.group_id] = of_consumer_group(each, node)
        elif each.error_code not in _NOT_THIS_KIND:
            found[each.group_id] = again(each.error_code, each.error_message, each.group_id)
    rest = [name for name in names if name not in found]
    for each in at.ask(DescribeGroupsRequest(groups=rest)).groups if rest else ():
        if each.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            found[each.group_id] = of_no_group(each.group_id, node)
        elif each.error_code != ErrorCode.NONE:
            found[each.group_id] = again(each.error_code, each.error_message, each.group_id)
        elif each.protocol_type not in {"consumer", ""}:
            raise ClientError(
                f"{each.group_id} is not a group of consumers: its type is {each.protocol_type}"
            )
        else:
            found[each.group_id] = of_classic_group(each, node)
    return found


def committed(_node: Node, names: list[str], at: Connection) -> dict[str, Offsets | Again]:
    """What each group has committed."""
    asked = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
    request = OffsetFetchRequest(groups=asked, topics=None)
    if at.version(request) >= _SEVERAL_GROUPS:
        answers = {each.group_id: each for each in by_name(request, at).groups}
    else:
        answers = {name: by_name(OffsetFetchRequest(group_id=name, topics=None), at) for name in names}
    return {name: _offsets(name, answer) for name, answer in answers.items()}


def _consumer_groups(names: list[str], at: Connection) -> Any:
    try:
        request = ConsumerGroupDescribeRequest(group_ids=names, include_authorized_operations=False)
        return at.ask(request).groups
    except NotKnown:  # Kafka before 3.7
        return ()


def by_name(request: Message, at: Connection) -> Any:
    """The answer, in the newest version that has topics by name: ids say nothing of topics that are gone."""
    return at.receive(at.send(request, min(at.version(request), _BY_NAME)))


def _offsets(name: str, answer: Any) -> Offsets | Again:
    if answer.error_code != ErrorCode.NONE:
        return again(answer.error_code, None, name)
    return {
        TopicPartition(topic.name, each.partition_index): each.committed_offset
        for topic in answer.topics
        for each in topic.partitions
        if each.error_code == ErrorCode.NONE and each.committed_offset >= 0
    }


def _node(name: str, found: Any) -> Node | Again:
    if found.error_code != ErrorCode.NONE:
        return again(found.error_code, found.error_message, name)
    return Node(found.node_id, found.host, found.port)


def again(code: int, message: str | None, what: str) -> Again:
    """That it is worth another try; ClientError in the broker's words if it is not."""
    if not ErrorCode(code).retriable:
        raise_for(code, message, what)
    return Again(f"{what}: {message or ErrorCode(code).name.replace('_', ' ').lower()}")
