"""Findings about nodes, the machines that several brokers share. Pure."""

from collections.abc import Iterator, Mapping

from headrace.client.cluster.status import ClusterStatus
from headrace.client.doctor.diagnosis import Area, Finding, some
from headrace.protocol.locations import Locations, nodes


def examine_nodes(area: Area, status: ClusterStatus, replicas: Mapping[str, int]) -> Iterator[Finding]:
    """Yield all findings; `replicas` has the replication factor of each topic."""
    locations = status.locations
    brokers = nodes(locations)
    problems = [
        *_sharing(area, status),
        *_replication_factors(area, len(brokers), replicas),
        *_ids(area, brokers),
        *_racks(area, locations, brokers),
    ]
    yield from problems
    if not problems:
        named = some(f"{node} ({_ids_of(ids)})" for node, ids in brokers.items() if isinstance(node, str))
        yield area.ok("nodes", f"Replicas of a partition are on different nodes. {named}.")


def _sharing(area: Area, status: ClusterStatus) -> Iterator[Finding]:
    if status.sharing_node:
        yield area.warning(
            "nodes",
            f"{some(each.topic_partition for each in status.sharing_node)}: replicas are on the same node, "
            "although another node has none: they fail together.",
            "headrace cluster reassign --topic NAME --partition NUMBER --to BROKER,...",
        )


def _replication_factors(area: Area, count: int, replicas: Mapping[str, int]) -> Iterator[Finding]:
    many = [name for name, each in sorted(replicas.items()) if each > count]
    if many:
        yield area.warning(
            "nodes",
            f"{some(many)} has more replicas than there are nodes ({count}): replicas that share a node fail "
            "together.",
            "Add a node, or have fewer replicas (`headrace cluster reassign`).",
        )


def _ids(area: Area, brokers: Mapping[str | int, list[int]]) -> Iterator[Finding]:
    """Yield a finding if the ids of two nodes are mixed, so that one of them cannot get another broker."""
    owners = {broker_id: node for node, ids in brokers.items() for broker_id in ids}
    for node, ids in brokers.items():
        between = [each for each in range(ids[0], ids[-1]) if owners.get(each, node) != node]
        if between:
            yield area.warning(
                "nodes",
                f"Broker {some(between)} is not on node {node}, whose brokers are {_ids_of(ids)}: the ids of "
                "nodes overlap.",
                "Give nodes values of broker.id with gaps, such as 100, 200, 300.",
            )


def _racks(area: Area, locations: Locations, brokers: Mapping[str | int, list[int]]) -> Iterator[Finding]:
    for node, ids in brokers.items():
        racks = {locations[each].rack for each in ids}
        if len(racks) > 1:
            yield area.warning(
                "nodes",
                f"The brokers of node {node} are in different racks: {some(sorted(map(str, racks)))}.",
                "Give them the same broker.rack: a machine is in one rack.",
            )


def _ids_of(ids: list[int]) -> str:
    is_row = ids == list(range(ids[0], ids[-1] + 1))
    return f"{ids[0]} to {ids[-1]}" if is_row and len(ids) > 1 else ", ".join(map(str, ids))
