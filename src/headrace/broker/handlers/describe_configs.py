"""DescribeConfigs (key 32), v1-v4.

Behaviour: every config of a topic, of this broker, of all brokers (an empty name) or of a group, with its
           value, its source and its synonyms. Unknown names in the request are left out, and passwords are
           not shown. A broker also reports its process id, as `headrace.pid`. One request describes at most
           500 groups, which need not exist.
Versions:  v1 synonyms; v3 types and documentation; v4 flexible.
Not yet:   broker loggers.
"""

from collections.abc import Iterable

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import config_action, on_configs
from headrace.broker.settings import describe
from headrace.broker.slices import STEP, Steps, keyed
from headrace.broker.translate import error_fields
from headrace.protocol.errors import KafkaError
from headrace.protocol.kafka_errors import InvalidRequest, UnknownTopicOrPartition
from headrace.protocol.schema import describe_configs as api
from headrace.protocol.schema.index import ApiKey
from headrace.replication.controller.config_admin import ResourceType
from headrace.security.authorization import Operation
from headrace.storage.topics import check_topic_name

MAX_GROUPS = 500  # of one request, which need not exist: each costs some kilobytes


@handles(ApiKey.DESCRIBE_CONFIGS, range(1, 5), requires=on_configs(Operation.DESCRIBE_CONFIGS))
def describe_configs(
    request: api.DescribeConfigsRequest, context: Context
) -> Steps[api.DescribeConfigsResponse]:
    resources = yield from keyed(
        lambda resource: (resource.resource_type, resource.resource_name), request.resources
    )
    groups, results = 0, []
    for number, ((type_, _name), resource) in enumerate(resources.items()):
        if not number % STEP:
            yield
        groups += type_ == ResourceType.GROUP
        results.append(_describe(resource, request, context, refused=groups > MAX_GROUPS))
    return api.DescribeConfigsResponse(results=results)


def _describe(
    resource: api.DescribeConfigsResource,
    request: api.DescribeConfigsRequest,
    context: Context,
    *,
    refused: bool,
) -> api.DescribeConfigsResult:
    try:
        context.require(
            *config_action(Operation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
        )
        if refused:
            raise InvalidRequest(f"one request describes at most {MAX_GROUPS} groups")
        found = _settings(resource, context)
    except KafkaError as error:
        return api.DescribeConfigsResult(
            **error_fields(error),
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=(),
        )
    wanted = None if resource.configuration_keys is None else set(resource.configuration_keys)
    return api.DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_entry(entry, request) for entry in found if not wanted or entry.name in wanted],
    )


def _settings(resource: api.DescribeConfigsResource, context: Context) -> Iterable[describe.DescribedSetting]:
    broker, name = context.broker, resource.resource_name
    config, image = broker.config, broker.image
    match resource.resource_type:
        case ResourceType.TOPIC:
            check_topic_name(name)
            if name not in image.topics:
                raise UnknownTopicOrPartition(f"topic {name!r} does not exist (UNKNOWN_TOPIC_OR_PARTITION)")
            return describe.describe_topic(config, image.topic_configs.get(name, {}))
        case ResourceType.BROKER:
            if name not in {"", str(broker.broker_id)}:
                raise InvalidRequest(f"this is broker {broker.broker_id}, not {name[:100]!r}")
            return describe.describe_broker(config) if name else describe.describe_all_brokers(config)
        case ResourceType.GROUP if not name:
            raise InvalidRequest("the name of the resource is empty")
        case ResourceType.GROUP:
            return describe.describe_group(config, image.group_configs.get(name, {}))
        case other:
            raise InvalidRequest(f"resources of type {other} have no configs here (INVALID_REQUEST)")


def _entry(
    described: describe.DescribedSetting, request: api.DescribeConfigsRequest
) -> api.DescribeConfigsResourceResult:
    synonyms = [
        api.DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
        for synonym in described.synonyms
    ]
    return api.DescribeConfigsResourceResult(
        name=described.name,
        value=described.value,
        read_only=described.read_only,
        config_source=described.source,
        is_sensitive=described.setting.is_sensitive,
        synonyms=synonyms if request.include_synonyms else (),
        config_type=described.setting.kind.value,
        documentation=described.setting.doc if request.include_documentation else None,
    )
