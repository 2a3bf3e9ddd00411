"""What the leader of a classic group does: an eager and a cooperative assignment, made to be understood."""

from collections import Counter
from collections.abc import Iterable, Mapping

from headrace.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    encode_assignment,
)
from headrace.protocol.schema.consumer_protocol_assignment import TopicPartition

Place = tuple[str, int]  # topic and partition


def assign(
    members: Mapping[str, ConsumerProtocolSubscription], topics: Mapping[str, int], *, cooperative: bool
) -> dict[str, bytes]:
    """Every partition to whoever reads least; cooperatively, what somebody has to give up to nobody yet."""
    had = _owners(members) if cooperative else {}
    loads = Counter(dict.fromkeys(members, 0))
    given: dict[str, set[Place]] = {member_id: set() for member_id in members}
    places = [(topic, number) for topic in sorted(topics) for number in range(topics[topic])]
    for place in places:
        readers = sorted(member_id for member_id, each in members.items() if place[0] in each.topics)
        if not readers:
            continue
        chosen = min(readers, key=lambda member_id: loads[member_id])
        if had.get(place) in readers and loads[had[place]] <= loads[chosen]:
            chosen = had[place]
        loads[chosen] += 1
        if had.get(place, chosen) == chosen:
            given[chosen].add(place)
    return {member_id: encode_places(places) for member_id, places in given.items()}


def _owners(members: Mapping[str, ConsumerProtocolSubscription]) -> dict[Place, str]:
    """Who says that it owns what; of two who do, the one from the later generation does."""
    owners: dict[Place, tuple[int, str]] = {}
    for member_id, each in members.items():
        for owned in each.owned_partitions:
            for number in owned.partitions:
                place = (owned.topic, number)
                owners[place] = max(owners.get(place, (-1, "")), (each.generation_id, member_id))
    return {place: member_id for place, (_, member_id) in owners.items()}


def by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(places):
        found.setdefault(topic, []).append(number)
    return found


def encode_places(places: Iterable[Place]) -> bytes:
    partitions = [TopicPartition(topic=name, partitions=each) for name, each in by_topic(places).items()]
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=partitions, user_data=None), 1)


def decode_places(assignment: bytes) -> set[Place]:
    if not assignment:
        return set()
    return {
        (each.topic, number)
        for each in decode_assignment(assignment).assigned_partitions
        for number in each.partitions
    }
