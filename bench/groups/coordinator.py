"""Questions to a group coordinator that the loads have in common."""

import time
from typing import Final

from compare.wire import Address, ask
from groups.membership import Topic
from headrace.protocol.api import ApiKey
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import offset_commit, offset_fetch
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

TIMEOUT_S: Final = 30


def find(address: Address, group: str = "bench") -> None:
    """Return once the group has a coordinator: the first to ask has the offsets topic made."""
    body = FindCoordinatorRequest(coordinator_keys=[group])
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        answer = ask(address, ApiKey.FIND_COORDINATOR, body)
        assert isinstance(answer, FindCoordinatorResponse)
        error = ErrorCode(answer.coordinators[0].error_code)
        if error is ErrorCode.NONE:
            return
        if not error.retriable or time.monotonic() > deadline:
            raise RuntimeError(f"FindCoordinator: {error.name} {answer.coordinators[0].error_message}")
        time.sleep(0.05)


def commit_request(
    group: str, topic: Topic, partitions: int, *, offset: int = 1
) -> offset_commit.OffsetCommitRequest:
    """A commit of the first so many partitions, by nobody in particular: fine while the group is empty."""
    parts = [
        offset_commit.OffsetCommitRequestPartition(
            partition_index=number, committed_offset=offset, committed_metadata=""
        )
        for number in range(partitions)
    ]
    topics = [offset_commit.OffsetCommitRequestTopic(topic_id=topic.id, partitions=parts)]
    return offset_commit.OffsetCommitRequest(group_id=group, member_id="", topics=topics)


def fetch_request(group: str, topic: Topic, partitions: int) -> offset_fetch.OffsetFetchRequest:
    named = offset_fetch.OffsetFetchRequestTopics(topic_id=topic.id, partition_indexes=range(partitions))
    asked = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=[named])
    return offset_fetch.OffsetFetchRequest(groups=[asked], require_stable=True)
