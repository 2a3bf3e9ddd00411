"""Groups that tests begin with, brought about by requests alone."""

from typing import Any

from headrace.coordinators.group.classic import ClassicGroup, ClassicState
from headrace.coordinators.group.consumer import ConsumerGroup
from headrace.coordinators.group.offsets import Committed
from headrace.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    decode_assignment,
    encode_assignment,
)
from headrace.protocol.schema.consumer_protocol_assignment import TopicPartition
from support.groups import GroupDesk, Waiter, beat_request, commit_request, join_request, sync_request


def desk(**limits: Any) -> GroupDesk:
    """A desk whose groups do not wait for more members, and where there is a topic of three partitions."""
    return GroupDesk(**{"initial_rebalance_delay_ms": 0} | limits).set_topics(orders=3)


def classic(desk: GroupDesk, group_id: str = "g") -> ClassicGroup:
    group = desk.coordinator.groups[group_id]
    assert isinstance(group, ClassicGroup)
    return group


def consumers(desk: GroupDesk, group_id: str = "g") -> ConsumerGroup:
    group = desk.coordinator.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def completing_group(desk: GroupDesk, count: int = 1, **some: Any) -> list[str]:
    """Members that have all joined in one generation; the first leads."""
    first = desk.join(join_request(**some)).answer.member_id
    if count == 1:
        return [first]
    others = [desk.join(join_request(**some)) for _ in range(count - 1)]
    desk.join(join_request(first, **some))
    return [first, *(waiter.answer.member_id for waiter in others)]


def sync_all(
    desk: GroupDesk, member_ids: list[str], assignments: dict[str, bytes] | None = None
) -> list[Waiter]:
    """Everybody syncs, the leader last, each for what is its own name if nothing else is said."""
    generation = classic(desk).generation
    if assignments is None:
        assignments = {member_id: member_id.encode() for member_id in member_ids}
    leader = classic(desk).leader
    followers = [member_id for member_id in member_ids if member_id != leader]
    waiters = [desk.sync(sync_request(member_id, generation)) for member_id in followers]
    return [*waiters, desk.sync(sync_request(leader or "", generation, assignments))]


def stable_group(desk: GroupDesk, count: int = 1, **some: Any) -> list[str]:
    """A stable group; every member's assignment is its own name."""
    member_ids = completing_group(desk, count, **some)
    sync_all(desk, member_ids)
    assert classic(desk).state is ClassicState.STABLE
    return member_ids


def settle_consumers(desk: GroupDesk, *member_ids: str) -> dict[str, set[int]]:
    """Everybody heartbeats and gives up what it is told to, until nothing changes; what each then reads."""
    for _ in range(2 * len(member_ids) + 2):
        for member_id in member_ids:
            member = consumers(desk).members[member_id]
            desk.beat(beat_request(member_id, member.epoch, owned=member.assigned))
    group = consumers(desk)
    assert group.state_name == "Stable"
    return {member_id: numbers(desk, group.members[member_id].assigned) for member_id in member_ids}


def numbers(desk: GroupDesk, assignment: Any, topic: str = "orders") -> set[int]:
    return set(assignment.get(desk.topic_id(topic), ()))


def assigning(*partitions: int) -> bytes:
    """An assignment of these partitions of `orders`."""
    each = [TopicPartition(topic="orders", partitions=list(partitions))]
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=each), 1)


def classic_group(at: GroupDesk, *shares: tuple[int, ...], **some: Any) -> list[str]:
    """A stable classic group of consumers, one for each share."""
    member_ids = completing_group(at, len(shares), **some)
    assignments = {member_id: assigning(*share) for member_id, share in zip(member_ids, shares, strict=True)}
    generation = classic(at).generation
    for member_id in [*member_ids[1:], member_ids[0]]:
        at.sync(sync_request(member_id, generation, assignments if member_id == member_ids[0] else {}))
    return member_ids


def places(assignment: bytes) -> set[int]:
    """The partitions in an assignment of the classic protocol."""
    return {n for each in decode_assignment(assignment).assigned_partitions for n in each.partitions}


def commit_now(
    at: GroupDesk, *offsets: tuple[str, int, int], by: tuple[str, int] = ("", -1), **some: Any
) -> None:
    """Commit now; `some` is what else an offset may have."""
    committed = [
        (topic, number, Committed(offset, -1, "", at.now_ms)._replace(**some))
        for topic, number, offset in offsets
    ]
    at.commit(commit_request([], *by)._replace(offsets=committed))


def kept(at: GroupDesk) -> set[tuple[str, int]]:
    """The places of which offsets are known."""
    return set(at.coordinator.offsets.of("g"))
