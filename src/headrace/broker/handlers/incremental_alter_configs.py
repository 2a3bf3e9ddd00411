"""IncrementalAlterConfigs (key 44), v0-v1.

Behaviour: set, delete, append and subtract, for topics, groups, for this broker and for all brokers (an
           empty name). All changes to one resource are made, or none. A config that is deleted need not be
           set, nor known. A broker also keeps configs that it does not know, as in Kafka.
Versions:  v1 flexible.
"""

from headrace.broker.handlers.alter_configs import alter_each
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_configs
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.protocol.schema import incremental_alter_configs as api
from headrace.protocol.schema.index import ApiKey
from headrace.replication.controller.config_admin import Change, ConfigOperation
from headrace.security.authorization import Operation


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, range(2), requires=on_configs(Operation.ALTER_CONFIGS))
async def incremental_alter_configs(
    request: api.IncrementalAlterConfigsRequest, context: Context
) -> api.IncrementalAlterConfigsResponse:
    async def alter(resource: api.AlterConfigsResource) -> None:
        if len({config.name for config in resource.configs}) != len(resource.configs):
            raise InvalidRequest("a config is named twice")
        try:
            changes = [
                Change(config.name, ConfigOperation(config.config_operation), config.value)
                for config in resource.configs
            ]
        except ValueError as error:
            raise InvalidRequest(str(error)) from error
        await context.broker.config_admin.change(
            resource.resource_type, resource.resource_name, changes, validate_only=request.validate_only
        )

    await context.broker.session.reconnected()
    return api.IncrementalAlterConfigsResponse(
        responses=await alter_each(request.resources, alter, context, api.AlterConfigsResourceResponse)
    )
