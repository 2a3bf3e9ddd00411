"""Offsets as a request has them, written shortly: {"orders": {0: 5, 1: (7, "text")}}."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from headrace.protocol.message import ZERO_UUID
from headrace.protocol.schema.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from headrace.protocol.schema.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

NO_TOPICS_ID: Final = bytes(range(16))
"""An id that no topic has."""

Positions = Mapping[str, Mapping[int, int | tuple[int, str | None]]]
Wanted = Mapping[str, Iterable[int]] | None


def topics_to_commit(positions: Positions, topic_ids: Mapping[str, bytes]) -> list[OffsetCommitRequestTopic]:
    return [
        OffsetCommitRequestTopic(
            name=topic,
            topic_id=_id_of(topic, topic_ids),
            partitions=[_partition(index, position) for index, position in partitions.items()],
        )
        for topic, partitions in positions.items()
    ]


def _partition(index: int, position: int | tuple[int, str | None]) -> OffsetCommitRequestPartition:
    offset, metadata = position if isinstance(position, tuple) else (position, "")
    return OffsetCommitRequestPartition(
        partition_index=index, committed_offset=offset, committed_metadata=metadata
    )


def offsets_of_one_group(group: str, wanted: Wanted, *, require_stable: bool) -> OffsetFetchRequest:
    """How it is asked until v7; None means all topics."""
    topics = None
    if wanted is not None:
        topics = [
            OffsetFetchRequestTopic(name=name, partition_indexes=list(which))
            for name, which in wanted.items()
        ]
    return OffsetFetchRequest(group_id=group, topics=topics, require_stable=require_stable)


def wanted_of_group(
    group: str, wanted: Wanted, topic_ids: Mapping[str, bytes], **member: Any
) -> OffsetFetchRequestGroup:
    """One group of a request from v8 on; None means all topics."""
    topics = None
    if wanted is not None:
        topics = [
            OffsetFetchRequestTopics(
                name=name, topic_id=_id_of(name, topic_ids), partition_indexes=list(which)
            )
            for name, which in wanted.items()
        ]
    return OffsetFetchRequestGroup(group_id=group, topics=topics, **member)


def _id_of(topic: str, topic_ids: Mapping[str, bytes]) -> bytes:
    """The id of a topic; none for a topic without a name, and one that nobody has for an unknown topic."""
    return topic_ids.get(topic, NO_TOPICS_ID) if topic else ZERO_UUID
