"""Requests to the coordinators of consumer groups, which are located again when they have moved.

Requests that change a group may reach its coordinator twice, if the first response was lost.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from headrace.client.errors import ClientError, GroupActive, NoSuchGroup, NoSuchTopic
from headrace.client.groups.group import (
    DEAD,
    Described,
    described,
    is_of_consumers,
    of_classic_group,
    of_consumer_group,
    state_of,
)
from headrace.client.wire.brokers import QUESTION_S, QUICK_S, SILENT_S, Brokers, read_lists
from headrace.client.wire.connection import Connection, NotKnown
from headrace.client.wire.requests import Node, coordinators_request, offset_commit_request
from headrace.client.wire.retry import Answers, Backoff, Unanswered, ask_owners, unanswered
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition, by_topic
from headrace.protocol.message import Message
from headrace.protocol.schema.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.protocol.schema.delete_groups import DeleteGroupsRequest
from headrace.protocol.schema.describe_groups import DescribeGroupsRequest
from headrace.protocol.schema.list_groups import ListedGroup, ListGroupsRequest
from headrace.protocol.schema.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.schema.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

OFFSETS_TOPIC: Final = "__consumer_offsets"  # the leaders of its partitions coordinate the groups
GROUPS_PER_S: Final = 1000  # that a broker describes, with time to spare
_SEVERAL_COORDINATORS, _SEVERAL_GROUPS = 4, 8  # the first versions of FindCoordinator and OffsetFetch
_BY_NAME: Final = 9  # the last version of OffsetFetch and OffsetCommit that names topics
_NOT_THIS_KIND: Final = {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}

Answer = TypeVar("Answer")
Offsets = Mapping[TopicPartition, int]
Ask = Callable[[Node, list[str], Connection], Mapping[str, Answer | Unanswered]]


@dataclass(frozen=True, slots=True)
class Listed:
    """A group in a broker's list. State and type are empty if the broker is too old to report them."""

    state: str
    type: str
    node: Node


@dataclass(frozen=True, slots=True)
class Listing:
    """The groups by name, how many brokers listed theirs, and why the lists of other brokers are missing."""

    groups: dict[str, Listed]
    answered: int
    missing: tuple[str, ...]


def listed(brokers: Brokers) -> Listing:
    lists = read_lists(brokers, OFFSETS_TOPIC, _list)
    groups = {
        each.group_id: Listed(state_of(each.group_state), each.group_type.lower(), node)
        for node, of_node in lists.by_node.items()
        for each in of_node
        if is_of_consumers(each)
    }
    return Listing(groups, len(lists.by_node), lists.missing)


def ask_coordinators(
    brokers: Brokers,
    names: Iterable[str],
    ask: Ask[Answer],
    backoff: Backoff,
    known: Mapping[str, Node] | None = None,
) -> Answers[str, Answer]:
    """Send one of the requests below to the coordinator of each group, `known` or located first."""
    groups = list(names)

    def within_s() -> float:
        return max(SILENT_S, min(QUICK_S + len(groups) / GROUPS_PER_S, backoff.left_s))

    return ask_owners(
        groups,
        locate=lambda some: brokers.first(partial(_coordinators, some), within_s()),
        ask=lambda asked: brokers.scatter(asked, ask, within_s()),
        backoff=backoff,
        known=known,
    )


def backoff_for(names: Iterable[str]) -> Backoff:
    """Return how long a question about so many groups may take."""
    return Backoff(QUESTION_S + sum(1 for _ in names) / GROUPS_PER_S)


# -- one coordinator -------------------------------------------------------------------------------


def _coordinators(names: list[str], at: Connection) -> dict[str, Node | Unanswered]:
    request = coordinators_request(names)
    if at.version(request) >= _SEVERAL_COORDINATORS:
        return {each.key: _node(each.key, each, at) for each in at.ask(request).coordinators}
    return {name: _node(name, at.ask(coordinators_request([name])), at) for name in names}


def _node(name: str, found: Any, at: Connection) -> Node | Unanswered:
    if found.error_code != ErrorCode.NONE:
        return _unanswered(found.error_code, found.error_message, name, at)
    return Node(found.node_id, found.host, found.port)


def _list(node: Node, at: Connection) -> list[ListedGroup] | Unanswered:
    answer = at.ask(ListGroupsRequest())
    if answer.error_code != ErrorCode.NONE:
        return _unanswered(answer.error_code, None, f"broker {node.id}", at)
    return list(answer.groups)


def describe(node: Node, names: list[str], at: Connection) -> dict[str, Described | Unanswered]:
    """Return the groups with their members; a group that does not exist is Dead."""
    found: dict[str, Described | Unanswered] = {}
    try:
        request = ConsumerGroupDescribeRequest(group_ids=names, include_authorized_operations=False)
        of_consumers = at.ask(request).groups
    except NotKnown:  # Kafka before 3.7
        of_consumers = ()
    for each in of_consumers:
        if each.error_code == ErrorCode.NONE:
            found[each.group_id] = of_consumer_group(each, node)
        elif each.error_code not in _NOT_THIS_KIND:
            found[each.group_id] = _unanswered(each.error_code, each.error_message, each.group_id, at)
    rest = [name for name in names if name not in found]
    for group in at.ask(DescribeGroupsRequest(groups=rest)).groups if rest else ():
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            found[group.group_id] = described(group.group_id, DEAD, "unknown", None, node)
        elif group.error_code != ErrorCode.NONE:
            found[group.group_id] = _unanswered(group.error_code, group.error_message, group.group_id, at)
        elif group.protocol_type not in {"consumer", ""}:
            raise ClientError(f"{group.group_id} is not a consumer group: its type is {group.protocol_type}")
        else:
            found[group.group_id] = of_classic_group(group, node)
    return found


def committed(_node: Node, names: list[str], at: Connection) -> dict[str, Offsets | Unanswered]:
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
    request = OffsetFetchRequest(groups=groups, topics=None)
    if at.version(request) >= _SEVERAL_GROUPS:
        answers = {group.group_id: group for group in _ask_by_name(request, at).groups}
    else:
        answers = {name: _ask_by_name(OffsetFetchRequest(group_id=name, topics=None), at) for name in names}
    offsets: dict[str, Offsets | Unanswered] = {}
    for name, answer in answers.items():
        if answer.error_code != ErrorCode.NONE:
            offsets[name] = _unanswered(answer.error_code, None, name, at)
            continue
        offsets[name] = {
            TopicPartition(topic.name, partition.partition_index): partition.committed_offset
            for topic in answer.topics
            for partition in topic.partitions
            if partition.error_code == ErrorCode.NONE and partition.committed_offset >= 0
        }
    return offsets


def commit(
    offsets: Offsets, _node: Node, names: list[str], at: Connection
) -> dict[str, Offsets | Unanswered]:
    """Commit offsets for one group without members; GroupActive if it has members."""
    (name,) = names
    for topic in _ask_by_name(offset_commit_request(name, offsets), at).topics:
        for partition in topic.partitions:
            if partition.error_code == ErrorCode.UNKNOWN_MEMBER_ID:  # only members commit while there are any
                raise GroupActive(name)
            if partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise NoSuchTopic(topic.name)
            if partition.error_code != ErrorCode.NONE:
                return {name: _unanswered(partition.error_code, None, topic.name, at)}
    return {name: offsets}


def delete(_node: Node, names: list[str], at: Connection) -> dict[str, bool | Unanswered]:
    """Delete groups without members; GroupActive if one of them has members.

    A group that does not exist counts as deleted: an earlier attempt may have deleted it.
    """
    done: dict[str, bool | Unanswered] = {}
    for result in at.ask(DeleteGroupsRequest(groups_names=names)).results:
        if result.error_code == ErrorCode.NON_EMPTY_GROUP:
            raise GroupActive(result.group_id)
        deleted = result.error_code in {ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND}
        done[result.group_id] = deleted or _unanswered(result.error_code, None, result.group_id, at)
    return done


def delete_offsets(
    partitions: list[TopicPartition], _node: Node, names: list[str], at: Connection
) -> dict[str, bool | Unanswered]:
    """Delete committed offsets of one group; ClientError while its members are subscribed to the topic."""
    (name,) = names
    topics = [
        OffsetDeleteRequestTopic(
            name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
        )
        for topic, indexes in by_topic(partitions).items()
    ]
    answer = at.ask(OffsetDeleteRequest(group_id=name, topics=topics))
    if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        raise NoSuchGroup(name)
    if answer.error_code != ErrorCode.NONE:
        return {name: _unanswered(answer.error_code, None, f"group {name}", at)}
    for topic in answer.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if each.error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
                raise ClientError(
                    f"{partition}: the group is subscribed to the topic (GROUP_SUBSCRIBED_TO_TOPIC)"
                )
            if each.error_code not in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
                return {name: _unanswered(each.error_code, None, str(partition), at)}
    return {name: True}


def _ask_by_name(request: Message, at: Connection) -> Any:
    """Ask in the newest version that names topics: topic ids say nothing of deleted topics."""
    return at.receive(at.send(request, min(at.version(request), _BY_NAME)))


def _unanswered(code: int, message: str | None, what: str, at: Connection) -> Unanswered:
    return unanswered(code, message, what, f"the broker at {at.address}")
