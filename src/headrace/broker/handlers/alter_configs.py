"""AlterConfigs (key 33), v0-v2.

Behaviour: replaces all settings of a topic or broker: what is not named goes back to its default.
Versions:  v2 flexible.
"""

from headrace.broker.dispatch import Context, handles
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from headrace.protocol.schema.index import ApiKey


@handles(ApiKey.ALTER_CONFIGS, range(3))
async def alter_configs(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    await context.broker.session.reconnected()
    return AlterConfigsResponse(
        responses=[await _alter(resource, request.validate_only, context) for resource in request.resources]
    )


async def _alter(
    resource: AlterConfigsResource, validate_only: bool, context: Context
) -> AlterConfigsResourceResponse:
    values = {config.name: config.value for config in resource.configs if config.value is not None}
    code, why = ErrorCode.NONE, None
    try:
        await context.broker.config_admin.replace(
            resource.resource_type, resource.resource_name, values, validate_only=validate_only
        )
    except FAILURES as error:
        code, why = error_code(error), str(error)
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=why,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
