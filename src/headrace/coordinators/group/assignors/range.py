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
    subscribers_of: dict[bytes, list[str]] = {}
    for member_id, member in sorted(
        members.items(), key=lambda item: (item[1].instance_id is None, item[1].instance_id or "", item[0])
    ):
        for topic in member.topics:
            subscribers_of.setdefault(topic, []).append(member_id)
    for topic, subscribers in subscribers_of.items():
        share, extra = divmod(partitions[topic], len(subscribers))
        start = 0
        for index, member_id in enumerate(subscribers[: partitions[topic]]):
            end = start + share + (index < extra)
            assigned[member_id][topic] = frozenset(range(start, end))
            start = end
    return {**assigned}
