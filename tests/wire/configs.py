"""Settings over the wire: change, describe and list them, in one line each."""

from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from headrace.protocol.schema.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.protocol.schema.list_config_resources import ListConfigResourcesRequest
from wire.raw import RawClient

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE = 0, 1


def alter(
    client: RawClient, kind: int, name: str, *changes: tuple[str, int, str | None]
) -> tuple[ErrorCode, str]:
    """The answer to IncrementalAlterConfigs of one resource: code and message."""
    configs = [
        AlterableConfig(name=setting, config_operation=operation, value=value)
        for setting, operation, value in changes
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    (answer,) = client.ask(request, version=1).responses
    return ErrorCode(answer.error_code), answer.error_message or ""


def describe(client: RawClient, kind: int, name: str, *settings: str) -> list[DescribeConfigsResourceResult]:
    """Some settings of one resource, by name."""
    wanted = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=settings or None
    )
    (answer,) = client.ask(DescribeConfigsRequest(resources=[wanted]), version=4).results
    assert answer.error_code == ErrorCode.NONE, answer
    return sorted(answer.configs, key=lambda each: str(each.name))


def listed(client: RawClient, *types: int) -> list[tuple[int, str]]:
    answer = client.ask(ListConfigResourcesRequest(resource_types=types), version=1)
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]
