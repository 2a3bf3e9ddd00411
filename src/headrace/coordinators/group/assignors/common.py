"""Input and output types of the assignors, and the first step of the uniform one."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

Assignment: TypeAlias = Mapping[bytes, frozenset[int]]  # topic id -> partitions, never empty


class AssignorMember(NamedTuple):
    topics: frozenset[bytes]  # ids of the existing topics that the member subscribes to
    owned: Assignment  # the member's previous target assignment
    instance_id: str | None = None
    rack: str | None = None


# (members by id, partition counts by topic id) -> assignments by member id
Assignor: TypeAlias = Callable[[Mapping[str, AssignorMember], Mapping[bytes, int]], dict[str, Assignment]]


def subscribed_topics(members: Sequence[AssignorMember]) -> list[bytes]:
    subscriptions = {member.topics for member in members}  # usually few different ones
    return sorted(frozenset[bytes]().union(*subscriptions))


def retain_owned(
    members: Sequence[AssignorMember], partitions: Mapping[bytes, int]
) -> tuple[list[dict[bytes, frozenset[int]]], dict[bytes, set[int]]]:
    """Return the owned partitions that each member may keep, and the partitions without an owner by topic.

    A member may keep existing partitions of topics that it subscribes to. If two members own the same
    partition, the first keeps it.
    """
    free = {topic: set(range(partitions[topic])) for topic in subscribed_topics(members)}
    kept = []
    for member in members:
        mine = {}
        for topic, owned in member.owned.items():
            if topic in member.topics and (stays := owned & free[topic]):
                mine[topic] = stays
                free[topic] -= stays
        kept.append(mine)
    return kept, free
