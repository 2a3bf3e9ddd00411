"""Assigns the replicas of new partitions to brokers. Pure."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, zip_longest

from headrace.controller.errors import InvalidPartitions, InvalidReplicaAssignment, InvalidReplicationFactor

MAX_PARTITIONS = 10_000  # of one topic: more of them in one request are taken for a mistake

Racks = Mapping[int, str | None]
"""The live brokers, each with its rack."""


def spread(partitions: int, replicas: int, brokers: Racks, *, start: int) -> dict[int, tuple[int, ...]]:
    """Return the replicas of each partition, its leader first; leaders, followers and racks take turns.

    Three partitions with two replicas on brokers 1, 2, 3, starting with the first: 0: (1, 2), 1: (2, 3),
    2: (3, 1). In the next round the followers shift by one, so that no two brokers share all their
    partitions. Every rack gets one replica of a partition before any rack gets a second.
    """
    check_partitions(partitions)
    if not 1 <= replicas <= len(brokers):
        raise InvalidReplicationFactor(f"replication factor {replicas} with {len(brokers)} brokers alive")
    order = _alternate(brokers)
    return {
        partition: _replicas(replicas, order, brokers, first=start + partition, shift=partition // len(order))
        for partition in range(partitions)
    }


def _alternate(brokers: Racks) -> list[int]:
    """Return the brokers in an order in which neighbours are in different racks where possible."""
    by_rack: dict[str | None, list[int]] = {}
    for broker_id in sorted(brokers):
        by_rack.setdefault(brokers[broker_id], []).append(broker_id)
    if len(by_rack) == 1:
        return sorted(brokers)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack, key=lambda rack: rack or "")))
    return [broker_id for broker_id in chain.from_iterable(rounds) if broker_id is not None]


def _replicas(count: int, order: list[int], racks: Racks, *, first: int, shift: int) -> tuple[int, ...]:
    size = len(order)
    leader = order[first % size]
    others = [order[(first + 1 + (shift + each) % (size - 1)) % size] for each in range(size - 1)]
    chosen = [leader]
    used = {racks[leader]}
    for broker_id in others:  # racks without a replica come first
        if len(chosen) < count and racks[broker_id] not in used:
            chosen.append(broker_id)
            used.add(racks[broker_id])
    chosen += [each for each in others if each not in chosen][: count - len(chosen)]
    return tuple(chosen)


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
