"""DescribeConfigs (key 32), v1-v4.

Behaviour: every setting of a topic or of this broker, with its value, where it was set and what else would
           count. Names that are asked for and unknown are left out. A broker also tells its process,
           as `headrace.pid`.
Versions:  v1 synonyms; v3 types and documentation; v4 flexible.
Not yet:   broker loggers, client metrics, groups.
"""

from collections.abc import Iterable

from headrace.broker.describe import Described, describe_all_brokers, describe_broker, describe_topic
from headrace.broker.dispatch import Context, handles
from headrace.broker.errors import InvalidRequest, UnknownTopicOrPartition
from headrace.protocol.errors import KafkaError
from headrace.protocol.schema.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from headrace.protocol.schema.index import ApiKey

TOPIC, BROKER = 2, 4  # types of resources


@handles(ApiKey.DESCRIBE_CONFIGS, range(1, 5))
def describe_configs(request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResponse:
    resources = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
    return DescribeConfigsResponse(
        results=[_describe(resource, request, context) for resource in resources.values()]
    )


def _describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: Context
) -> DescribeConfigsResult:
    try:
        found = _settings(resource, context)
    except KafkaError as error:
        return DescribeConfigsResult(
            error_code=error.code,
            error_message=str(error),
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=(),
        )
    wanted = resource.configuration_keys
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_entry(entry, request) for entry in found if not wanted or entry.name in wanted],
    )


def _settings(resource: DescribeConfigsResource, context: Context) -> Iterable[Described]:
    broker = context.broker
    if resource.resource_type == TOPIC:
        if resource.resource_name not in broker.image.topics:
            raise UnknownTopicOrPartition(f"there is no topic {resource.resource_name!r}")
        return describe_topic(broker.config, broker.image.topic_configs.get(resource.resource_name, {}))
    if resource.resource_type == BROKER:
        if resource.resource_name not in {"", str(broker.broker_id)}:
            raise InvalidRequest(f"this is broker {broker.broker_id}, not {resource.resource_name!r}")
        return (
            describe_broker(broker.config) if resource.resource_name else describe_all_brokers(broker.config)
        )
    raise InvalidRequest(f"resources of type {resource.resource_type} have no settings here")


def _entry(described: Described, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
        for synonym in described.synonyms
    ]
    return DescribeConfigsResourceResult(
        name=described.name,
        value=described.value,
        read_only=described.read_only,
        config_source=described.source,
        is_sensitive=False,
        synonyms=synonyms if request.include_synonyms else (),
        config_type=described.setting.kind.value,
        documentation=described.setting.doc if request.include_documentation else None,
    )
