"""Changes to topics as no admin client would ask for them."""

import pytest

from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from wire.raw import RawClient
from wire.requests import create_topic, fresh_name


@pytest.mark.parametrize("name", ["", ".", "..", "a\0b", "a/b", "/", "{topic}/partitions", "nowhere"])
def test_partitions_for_what_is_not_a_topic_are_refused(raw: RawClient, name: str) -> None:
    topic = fresh_name("grown")
    create_topic(raw, topic)
    name = name.format(topic=topic)
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=3, assignments=None)],
        timeout_ms=1000,
        validate_only=False,
    )

    answer = raw.ask(request, version=3)

    assert [(each.name, each.error_code) for each in answer.results] == [
        (name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    ]


def grow(raw: RawClient, *topics: CreatePartitionsTopic) -> list[tuple[str, ErrorCode]]:
    request = CreatePartitionsRequest(topics=topics, timeout_ms=5000, validate_only=False)
    return [(each.name, ErrorCode(each.error_code)) for each in raw.ask(request, version=3).results]


def partitions_of(raw: RawClient, topic: str) -> int:
    answer = raw.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), version=12)
    return len(answer.topics[0].partitions)


def test_a_topic_that_is_listed_twice_does_not_grow(raw: RawClient) -> None:
    twice, once = fresh_name("twice"), fresh_name("once")
    for name in (twice, once):
        create_topic(raw, name)

    answer = grow(
        raw,
        CreatePartitionsTopic(name=twice, count=2, assignments=None),
        CreatePartitionsTopic(name=once, count=2, assignments=None),
        CreatePartitionsTopic(name=twice, count=3, assignments=None),
    )

    assert answer == [(twice, ErrorCode.INVALID_REQUEST), (once, ErrorCode.NONE)]
    assert (partitions_of(raw, twice), partitions_of(raw, once)) == (1, 2)


@pytest.mark.parametrize("assignments", [0, 1, 3])
def test_as_many_assignments_as_new_partitions_are_needed(raw: RawClient, assignments: int) -> None:
    topic = fresh_name("grown")
    create_topic(raw, topic)
    given = [CreatePartitionsAssignment(broker_ids=[1])] * assignments

    answer = grow(raw, CreatePartitionsTopic(name=topic, count=3, assignments=given))

    assert answer == [(topic, ErrorCode.INVALID_REPLICA_ASSIGNMENT)]
    assert partitions_of(raw, topic) == 1
