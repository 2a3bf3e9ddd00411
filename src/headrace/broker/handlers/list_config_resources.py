"""ListConfigResources (key 74), v0-v1.

Behaviour: the names of topics, of brokers, and of the groups that have configs. An unknown type is answered
           with UNSUPPORTED_VERSION.
Versions:  v0 client metrics subscriptions only, so that there are none; v1 any types, none meaning all.
Not yet:   broker loggers and client metrics subscriptions, which are left out.
"""

from collections.abc import Iterable

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import list_config_resources as api
from headrace.protocol.schema.index import ApiKey
from headrace.replication.controller.config_admin import ResourceType
from headrace.security.authorization import Operation

_FIRST_WITH_TYPES = 1
_BROKER_LOGGER, _CLIENT_METRICS = 8, 16  # types that Kafka has and we do not


@handles(ApiKey.LIST_CONFIG_RESOURCES, range(2), requires=on_cluster(Operation.DESCRIBE_CONFIGS))
def list_config_resources(
    request: api.ListConfigResourcesRequest, context: Context
) -> api.ListConfigResourcesResponse:
    image = context.broker.image
    names: dict[ResourceType, Iterable[str]] = {
        ResourceType.TOPIC: image.topics,
        ResourceType.BROKER: map(str, image.brokers),
        ResourceType.GROUP: image.group_configs,
    }
    wanted = set(request.resource_types) - {_BROKER_LOGGER, _CLIENT_METRICS}
    if context.version >= _FIRST_WITH_TYPES and not request.resource_types:
        wanted = set(ResourceType)
    if not wanted <= set(ResourceType):
        return api.ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=())
    return api.ListConfigResourcesResponse(
        config_resources=[
            api.ConfigResource(resource_name=name, resource_type=type_)
            for type_ in sorted(wanted)
            for name in names[ResourceType(type_)]
        ]
    )
