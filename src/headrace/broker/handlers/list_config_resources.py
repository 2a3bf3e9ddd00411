"""ListConfigResources (key 74), v0-v1.

Behaviour: the names of topics, of brokers, and of the groups that have configs. An unknown type is answered
           with UNSUPPORTED_VERSION.
Versions:  v0 client metrics subscriptions only, so that there are none; v1 any types, none meaning all.
Not yet:   broker loggers and client metrics subscriptions, which are left out.
"""

from collections.abc import Iterable

from headrace.broker.image import ClusterImage
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import list_config_resources as schema
from headrace.protocol.schema.index import ApiKey
from headrace.replication.controller.config_admin import ResourceType
from headrace.security.authorization import Operation

_FIRST_WITH_TYPES = 1
_BROKER_LOGGER, _CLIENT_METRICS = 8, 16  # types that Kafka has and we do not


@handles(ApiKey.LIST_CONFIG_RESOURCES, range(2), requires=on_cluster(Operation.DESCRIBE_CONFIGS))
def list_config_resources(
    request: schema.ListConfigResourcesRequest, context: Context
) -> schema.ListConfigResourcesResponse:
    wanted = set(request.resource_types) - {_BROKER_LOGGER, _CLIENT_METRICS}
    if context.version >= _FIRST_WITH_TYPES and not request.resource_types:
        wanted = set(ResourceType)
    if not wanted <= set(ResourceType):
        return schema.ListConfigResourcesResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=()
        )
    return schema.ListConfigResourcesResponse(
        config_resources=[
            schema.ConfigResource(resource_name=name, resource_type=type_)
            for type_ in sorted(wanted)
            for name in _names(ResourceType(type_), context.broker.image)
        ]
    )


def _names(type_: ResourceType, image: ClusterImage) -> Iterable[str]:
    match type_:
        case ResourceType.TOPIC:
            return image.topics
        case ResourceType.BROKER:
            return [str(broker_id) for broker_id in image.brokers]
        case ResourceType.GROUP:
            return image.group_configs
