"""Which brokers get the replicas of a new topic. Pure; racks come with clusters."""

from collections.abc import Mapping, Sequence

from headrace.broker.errors import InvalidPartitions, InvalidReplicaAssignment, InvalidReplicationFactor

MAX_PARTITIONS = 10_000  # of one topic: more in one request is a mistake


def spread(
    partitions: int, replicas: int, brokers: Sequence[int], *, start: int
) -> dict[int, tuple[int, ...]]:
    """Replicas round robin from broker number `start` on, the first of each partition its leader.

    Three partitions of two replicas on brokers 1, 2, 3 from the first: 0: (1, 2), 1: (2, 3), 2: (3, 1).
    """
    check_partitions(partitions)
    if not 1 <= replicas <= len(brokers):
        raise InvalidReplicationFactor(f"replication factor {replicas} with {len(brokers)} brokers alive")
    return {
        partition: tuple(brokers[(start + partition + replica) % len(brokers)] for replica in range(replicas))
        for partition in range(partitions)
    }


def check_partitions(count: int) -> None:
    if not 1 <= count <= MAX_PARTITIONS:
        raise InvalidPartitions(f"a topic has 1 to {MAX_PARTITIONS} partitions, not {count}")


def check_assignment(
    assignment: Mapping[int, Sequence[int]], brokers: Sequence[int], *, first: int = 0
) -> None:
    """Refuse a manual assignment that leaves out a partition, repeats a broker or names an unknown one."""
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
