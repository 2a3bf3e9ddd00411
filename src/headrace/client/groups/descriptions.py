"""Descriptions of groups in responses of both group protocols, as one type. Pure: no request is sent."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from headrace.client.groups.group import DEAD, Assigned, Coordinator, Described, Member
from headrace.client.wire.requests import Node
from headrace.protocol.consumer_protocol import decode_assignment
from headrace.protocol.errors import ProtocolError
from headrace.protocol.schema import consumer_group_describe as consumer
from headrace.protocol.schema import describe_groups as classic
from headrace.protocol.schema.list_groups import ListedGroup

CLASSIC, CONSUMER = "classic", "consumer"
_OF_CONSUMERS: Final = {"consumer", ""}  # protocol types; nobody has joined the group of the last
_STATES: Final = {"Assigning": "Reconciling"}  # to those who look it is the same: not settled yet


def is_of_consumers(found: ListedGroup) -> bool:
    """Whether it is one of ours to show: it has a name, and is not Connect's, a share group or such.

    Kafka lets clients commit for a group without a name; it cannot be asked for.
    """
    return bool(found.group_id) and found.protocol_type in _OF_CONSUMERS


def state_of(state: str) -> str:
    """Kafka's word, but for one that is nobody's business."""
    return _STATES.get(state, state)


def of_consumer_group(found: consumer.DescribedGroup, node: Node) -> Described:
    """A group of the new protocol, whose brokers know what is assigned."""
    return Described(
        name=found.group_id,
        state=state_of(found.group_state),
        type=CONSUMER,
        assignor=found.assignor_name or None,
        coordinator=_coordinator(node),
        members=tuple(
            Member(
                member_id=each.member_id,
                instance_id=each.instance_id or None,
                client_id=each.client_id,
                host=_host(each.client_host),
                assignment=_assigned(
                    (of.topic_name, index)
                    for of in each.assignment.topic_partitions
                    for index in of.partitions
                ),
            )
            for each in found.members
        ),
    )


def of_classic_group(found: classic.DescribedGroup, node: Node) -> Described:
    """A group of the old protocol, whose members have told each other what is assigned."""
    return Described(
        name=found.group_id,
        state=state_of(found.group_state),
        type=CLASSIC,
        assignor=found.protocol_data or None,
        coordinator=_coordinator(node),
        members=tuple(
            Member(
                member_id=each.member_id,
                instance_id=each.group_instance_id or None,
                client_id=each.client_id,
                host=_host(each.client_host),
                assignment=_told(each.member_assignment),
            )
            for each in found.members
        ),
    )


def of_no_group(name: str, node: Node) -> Described:
    """What is not there."""
    return Described(
        name=name, state=DEAD, type="unknown", assignor=None, coordinator=_coordinator(node), members=()
    )


def _told(assignment: bytes) -> tuple[Assigned, ...]:
    try:
        told = decode_assignment(assignment)
    except ProtocolError:  # nothing is assigned yet, or in a language of the members' own
        return ()
    return _assigned((of.topic, index) for of in told.assigned_partitions for index in of.partitions)


def _assigned(places: Iterable[tuple[str, int]]) -> tuple[Assigned, ...]:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, index in sorted(places):
        by_topic[topic].append(index)
    return tuple(Assigned(topic=topic, partitions=tuple(indexes)) for topic, indexes in by_topic.items())


def _coordinator(node: Node) -> Coordinator:
    return Coordinator(id=node.id, host=node.host, port=node.port)


def _host(host: str) -> str:
    return host.removeprefix("/")  # as Java prints an address without a name
