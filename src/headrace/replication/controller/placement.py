"""Assigns the replicas of new partitions to brokers. Pure."""

from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from itertools import chain, zip_longest

from headrace.protocol.kafka_errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
)
from headrace.protocol.locations import Location, Locations, node_of, nodes

MAX_PARTITIONS = 10_000  # of one topic: more of them in one request are taken for a mistake
_RACK_STEPS = 2  # of choosing replicas: new nodes in new racks, then new racks


Placed = dict[int, tuple[int, ...]]
"""The replicas of each partition, its leader first."""


def spread(
    partitions: int, replicas: int, brokers: Locations, *, start: int
) -> Generator[None, None, Placed]:
    """Return the replicas of each partition on the live brokers; yield before each partition.

    Three partitions with two replicas on brokers 1, 2, 3, starting with the first: 0: (1, 2), 1: (2, 3),
    2: (3, 1). In the next round the followers shift by one, so that no two brokers share all their
    partitions. Every rack gets one replica of a partition before any rack gets a second, and after that
    every node before any node gets a second.
    """
    check_partitions(partitions)
    if not 1 <= replicas <= len(brokers):
        raise InvalidReplicationFactor(f"replication factor {replicas} with {len(brokers)} brokers alive")
    by_rack: dict[str | None, dict[int, Location]] = {}
    for broker_id in sorted(brokers):
        by_rack.setdefault(brokers[broker_id].rack, {})[broker_id] = brokers[broker_id]
    # Neighbours in this order are in different racks and nodes where possible.
    in_order = sorted(by_rack, key=lambda rack: rack or "")
    order = _in_turns([_in_turns(list(nodes(by_rack[rack]).values())) for rack in in_order])
    size = len(order)
    placed = {}
    for partition in range(partitions):
        yield
        first, shift = start + partition, partition // size
        others = [order[(first + 1 + (shift + step) % (size - 1)) % size] for step in range(size - 1)]
        placed[partition] = _filled((order[first % size],), replicas, others, brokers, len(by_rack))
    return placed


def _in_turns(lists: Sequence[Sequence[int]]) -> list[int]:
    """Return the first element of each list, then the second of each, and so on."""
    return [each for each in chain.from_iterable(zip_longest(*lists)) if each is not None]


def _filled(
    chosen: Sequence[int], count: int, others: Sequence[int], brokers: Locations, racks: int
) -> tuple[int, ...]:
    """Return `chosen` with as many of the brokers `others` as make `count`, the preferred ones first.

    Preferred are new nodes in new racks, then new racks (there are `racks` of them), then nodes with fewer
    than one, two and more replicas.
    """
    filled = list(chosen)
    used_racks = {brokers[each].rack for each in filled if each in brokers}
    on_node = Counter(node_of(each, brokers) for each in filled)
    for step in range(count + _RACK_STEPS):
        for other in others:
            if len(filled) == count or (step < _RACK_STEPS and len(used_racks) == racks):
                break
            rack, node = brokers[other].rack, node_of(other, brokers)
            if step < _RACK_STEPS:
                is_preferred = rack not in used_racks and (step > 0 or not on_node[node])
            else:
                is_preferred = on_node[node] <= step - _RACK_STEPS
            if is_preferred and other not in filled:
                filled.append(other)
                used_racks.add(rack)
                on_node[node] += 1
    return tuple(filled)


def extended(
    replicas: Sequence[int],
    count: int,
    brokers: Locations,
    *,
    candidates: Collection[int],
    loads: Mapping[int, int],
) -> tuple[int, ...]:
    """Return the replicas of a partition with more of the candidates, up to `count`.

    Racks and nodes without a replica are preferred as in `spread`, then candidates with small loads.
    """
    order = sorted(candidates, key=lambda each: (loads.get(each, 0), each))
    racks = len({location.rack for location in brokers.values()})
    return _filled(replicas, count, order, brokers, racks)


def check_partitions(count: int) -> None:
    if not 1 <= count <= MAX_PARTITIONS:
        raise InvalidPartitions(
            f"a topic has 1 to {MAX_PARTITIONS} partitions, not {count} (INVALID_PARTITIONS)"
        )


def check_assignment(
    assignment: Mapping[int, Sequence[int]], brokers: Collection[int], *, first: int = 0
) -> None:
    """Raise InvalidReplicaAssignment if a partition is missing, or a broker is repeated or not registered."""
    if sorted(assignment) != list(range(first, first + len(assignment))):
        raise InvalidReplicaAssignment(
            f"partitions must be numbered {first}, {first + 1}, …: got {sorted(assignment)}"
        )
    check_partitions(len(assignment))
    sizes = {len(replicas) for replicas in assignment.values()}
    if len(sizes) != 1 or 0 in sizes:
        raise InvalidReplicaAssignment("every partition needs the same number of replicas, at least one")
    for partition, replicas in assignment.items():
        if len(set(replicas)) != len(replicas):
            raise InvalidReplicaAssignment(f"partition {partition} names a broker twice: {list(replicas)}")
        unknown = set(replicas) - set(brokers)
        if unknown:
            raise InvalidReplicaAssignment(f"partition {partition} names unknown brokers: {sorted(unknown)}")
