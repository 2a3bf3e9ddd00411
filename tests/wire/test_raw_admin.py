"""Changes to topics and settings as no admin client would ask for them."""

import pytest

from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.schema.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.protocol.schema.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from wire.raw import RawClient
from wire.requests import create_topic, fresh_name

BROKER = 4
SET = 0


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


@pytest.mark.parametrize("resource", ["", "1"])
def test_broker_settings_that_cannot_be_together_are_refused(raw: RawClient, resource: str) -> None:
    nothing = AlterableConfig(name="log.cleanup.policy", config_operation=SET, value="")
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=BROKER, resource_name=resource, configs=[nothing])],
        validate_only=False,
    )

    answer = raw.ask(request, version=1)

    assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_CONFIG]
    assert "delete, compact or both" in answer.responses[0].error_message
    described = raw.ask(
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=BROKER, resource_name="1", configuration_keys=["log.cleanup.policy"]
                )
            ],
        ),
        version=4,
    )
    assert [entry.value for entry in described.results[0].configs] == ["delete"]


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
