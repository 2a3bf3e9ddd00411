"""The range assignor: each member gets consecutive partitions of each topic.

Partitions 0-6 of a topic among three members: 0-2, 3-4, 5-6. Topics with the same partition count and
subscribers are divided alike (co-partitioned), so a member can join their records.

The assignor is not sticky, but the order of members is stable: static members come first, by instance id,
which survives a restart; the others follow by member id.
"""

from collections.abc import Mapping

from headrace.coordinators.group.assignors.common import Assignment, AssignorMember


def assign_range(
    members: Mapping[str, AssignorMember], partitions: Mapping[bytes, int]
) -> dict[str, Assignment]:
    """Divide each topic among its subscribers; the first ones get one more if there is a remainder."""
    assigned: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in sorted(members)}
    for topic, subscribers in _subscribers(members).items():
        share, extra = divmod(partitions[topic], len(subscribers))
        start = 0
        for index, member_id in enumerate(subscribers[: partitions[topic]]):
            end = start + share + (index < extra)
            assigned[member_id][topic] = frozenset(range(start, end))
            start = end
    return {**assigned}


def _subscribers(members: Mapping[str, AssignorMember]) -> dict[bytes, list[str]]:
    subscribers: dict[bytes, list[str]] = {}
    for member_id in sorted(members, key=lambda member_id: _rank(member_id, members[member_id])):
        for topic in members[member_id].topics:
            subscribers.setdefault(topic, []).append(member_id)
    return subscribers


def _rank(member_id: str, member: AssignorMember) -> tuple[bool, str, str]:
    return member.instance_id is None, member.instance_id or "", member_id
