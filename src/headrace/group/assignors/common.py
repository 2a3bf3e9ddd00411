"""What an assignor is given and gives back, and where the sticky ones begin: with what can stay as it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

Assignment: TypeAlias = Mapping[bytes, frozenset[int]]  # topic id -> partitions; no topic without any


class AssignorMember(NamedTuple):
    topics: frozenset[bytes]  # ids of the topics that it subscribes to and that exist
    owned: Assignment  # its target assignment so far
    instance_id: str | None = None
    rack: str | None = None


# Members by id and partition counts by topic id, to an assignment for every member.
Assignor: TypeAlias = Callable[[Mapping[str, AssignorMember], Mapping[bytes, int]], dict[str, Assignment]]


def subscribed_topics(members: Sequence[AssignorMember]) -> list[bytes]:
    """The topics that anybody subscribes to, in the order of their ids."""
    subscriptions = {member.topics for member in members}  # mostly few: a group runs one program
    return sorted(frozenset[bytes]().union(*subscriptions))


def keep(
    members: Sequence[AssignorMember], partitions: Mapping[bytes, int]
) -> tuple[list[dict[bytes, frozenset[int]]], dict[bytes, set[int]]]:
    """What each member may keep of what it owns, and what then is nobody's.

    It may keep partitions that exist, of topics that it subscribes to. Should two members own the same
    one, the earlier keeps it.
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
