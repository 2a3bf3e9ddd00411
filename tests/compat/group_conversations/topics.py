"""Topics for conversations: made, known to the whole broker, deleted."""

import time
from collections.abc import Callable
from functools import partial
from typing import Final

from compat.group_conversations.probe import can_be_assigned
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import ZERO_UUID
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schema.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.schema.describe_groups import DescribeGroupsRequest
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from wire.raw import RawClient

DEADLINE_S: Final = 20
SHARED: Final = {"one": 1, "two": 2, "three": 3}
"""The topics that most conversations are about, each called after the number of its partitions."""


def prepare(bootstrap: str) -> dict[str, bytes]:
    """Make the shared topics and return their ids, when the coordinator of groups knows them."""
    with RawClient(bootstrap) as client:
        _until("groups have a coordinator", lambda: _coordinates(client))
        ids = {name: make_topic(client, name, partitions) for name, partitions in SHARED.items()}
        for name in SHARED:
            _until(f"{name} can be assigned", partial(can_be_assigned, client, name))
        return ids


def make_topic(client: RawClient, name: str, partitions: int) -> bytes:
    """Make a topic, if there is none of the name, and return its id when clients are told of it."""
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )
    client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    _until(f"{name} is there", lambda: id_of_topic(client, name) is not None)
    topic_id = id_of_topic(client, name)
    assert topic_id is not None
    return topic_id


def id_of_topic(client: RawClient, name: str) -> bytes | None:
    """The id of a topic, once there is one and its partitions have leaders."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = client.ask(request, 12).topics
    ready = topic.error_code == 0 and all(partition.error_code == 0 for partition in topic.partitions)
    topic_id: bytes = topic.topic_id
    return topic_id if ready else None


def delete_topic(client: RawClient, name: str) -> None:
    """Delete a topic, and return when clients are not told of it any more."""
    state = DeleteTopicState(name=name, topic_id=ZERO_UUID)
    (answer,) = client.ask(DeleteTopicsRequest(topics=[state], timeout_ms=10_000), 6).responses
    assert answer.error_code == 0, answer
    _until(f"{name} is gone", lambda: id_of_topic(client, name) is None)


def _coordinates(client: RawClient) -> bool:
    """Whether the broker answers for groups: being asked makes it prepare for that."""
    (found,) = client.ask(FindCoordinatorRequest(coordinator_keys=["any"]), 4).coordinators
    (group,) = client.ask(DescribeGroupsRequest(groups=["any"]), 5).groups
    return bool(found.error_code == group.error_code == ErrorCode.NONE)


def _until(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not after {DEADLINE_S} s: {what}"
        time.sleep(0.01)
