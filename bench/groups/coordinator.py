"""Questions to a group coordinator that the loads have in common."""

from typing import Final

from compare.wire import ask
from groups.membership import Topic
from headrace.client.errors import raise_for
from headrace.client.wire.connection import Address
from headrace.client.wire.requests import coordinators_request, offset_commit_request
from headrace.client.wire.retry import Backoff, retry
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema import offset_commit, offset_fetch

TIMEOUT_S: Final = 30


def find(address: Address, group: str = "bench") -> None:
    """Return once the group has a coordinator: the first request creates the offsets topic."""

    def look() -> None:
        (found,) = ask(address, coordinators_request([group])).coordinators
        raise_for(found.error_code, found.error_message, "FindCoordinator")

    retry(look, Backoff(TIMEOUT_S))


def commit_request(
    group: str, topic: Topic, partitions: int, *, offset: int = 1
) -> offset_commit.OffsetCommitRequest:
    """A commit of the first so many partitions, by nobody in particular: fine while the group is empty."""
    offsets = {TopicPartition(topic.name, number): offset for number in range(partitions)}
    return offset_commit_request(group, offsets, {topic.name: topic.id})


def fetch_request(group: str, topic: Topic, partitions: int) -> offset_fetch.OffsetFetchRequest:
    named = offset_fetch.OffsetFetchRequestTopics(topic_id=topic.id, partition_indexes=range(partitions))
    asked = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=[named])
    return offset_fetch.OffsetFetchRequest(groups=[asked], require_stable=True)
