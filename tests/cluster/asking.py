"""Questions that a test asks brokers itself, in the protocol's own words: no client's memory in between."""

from collections.abc import Sequence
from typing import Any, Final

from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.schema.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from wire.raw import RawClient

OFFSET_FETCH: Final = 8


class NoAnswer(Exception):
    """Nobody could say just now; who asks again later may hear more."""


def group_coordinator(bootstraps: Sequence[str], group: str) -> tuple[int, str]:
    """The id and the address of the group's coordinator, as the first broker that answers says."""
    answer = _find_coordinator(bootstraps, 0, group)
    return answer.node_id, f"{answer.host}:{answer.port}"


def coordinator_of(bootstraps: Sequence[str], key_type: int, key: str) -> int:
    """The id of the broker that coordinates a group (0) or a transactional id (1)."""
    node_id: int = _find_coordinator(bootstraps, key_type, key).node_id
    return node_id


def _find_coordinator(bootstraps: Sequence[str], key_type: int, key: str) -> Any:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    for bootstrap in bootstraps:
        try:
            with RawClient(bootstrap) as client:
                (answer,) = client.ask(request, 4).coordinators
        except OSError:
            continue
        if answer.error_code == 0:
            return answer
    raise NoAnswer(f"no broker names the coordinator of {key}")


def offsets_of(group: str) -> OffsetFetchRequest:
    """Everything that the group has committed, with offsets that may not be stable yet."""
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])


def commit_offset(bootstraps: Sequence[str], group: str, topic: str, offset: int) -> bool:
    """Commit an offset of partition 0 for a group without members; False if nobody takes it just now."""
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=None
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    try:
        _, coordinator = group_coordinator(bootstraps, group)
        with RawClient(coordinator) as client:
            answer = client.ask(request, 8).topics[0].partitions[0]
    except (OSError, NoAnswer):
        return False
    return not answer.error_code


def committed_offsets(bootstraps: Sequence[str], group: str, topic: str) -> dict[int, int]:
    """What the group has committed, by partition."""
    _, coordinator = group_coordinator(bootstraps, group)
    try:
        with RawClient(coordinator) as client:
            (answer,) = client.ask(offsets_of(group), OFFSET_FETCH).groups
    except OSError as error:
        raise NoAnswer(f"the coordinator of {group} is gone: {error}") from error
    partitions = [each for found in answer.topics if found.name == topic for each in found.partitions]
    if answer.error_code or any(each.error_code for each in partitions):
        raise NoAnswer(f"the coordinator of {group} says {answer.error_code}")
    return {each.partition_index: each.committed_offset for each in partitions}
