"""IncrementalAlterConfigs (key 44), v0-v1.

Behaviour: set, delete, append and subtract, for topics, groups, client metrics subscriptions, for this broker
           and for all brokers (an empty name). All changes to one resource are made, or none. A config that
           is deleted need not be set, nor known. A broker also keeps configs that it does not know, as in
           Kafka.
Versions:  v1 flexible.
"""

from headrace.broker.handlers.alter_configs import alter_each
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_configs
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.protocol.schema.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from headrace.protocol.schema.index import ApiKey
from headrace.replication.controller.config_admin import Change, ConfigOperation
from headrace.security.authorization import Operation


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, range(2), requires=on_configs(Operation.ALTER_CONFIGS))
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    broker = context.broker

    async def alter(resource: AlterConfigsResource) -> None:
        await broker.config_admin.change(
            resource.resource_type,
            resource.resource_name,
            _changes(resource),
            validate_only=request.validate_only,
        )

    await broker.session.reconnected()
    return IncrementalAlterConfigsResponse(
        responses=await alter_each(request.resources, alter, context, AlterConfigsResourceResponse)
    )


def _changes(resource: AlterConfigsResource) -> list[Change]:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise InvalidRequest("a config is named twice")
    try:
        return [
            Change(entry.name, ConfigOperation(entry.config_operation), entry.value)
            for entry in resource.configs
        ]
    except ValueError as error:
        raise InvalidRequest(str(error)) from error
