"""Changes to topics and settings as no admin client would ask for them."""

import pytest

from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from headrace.protocol.schema.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.protocol.schema.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
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
