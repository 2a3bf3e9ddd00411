"""AlterConfigs (key 33), v0-v2.

Behaviour: replaces all settings of a topic, a broker, a group or a client metrics subscription: what is not
           named goes back to its default. A broker also keeps settings that it does not know, as Kafka does.
Versions:  v2 flexible.
"""

import asyncio

from headrace.broker.dispatch import Context, handles
from headrace.broker.errors import InvalidRequest
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
    answers = []
    for resource in request.resources:
        answers.append(await _alter(resource, request.validate_only, context))
        await asyncio.sleep(0)  # a request may name very many
    return AlterConfigsResponse(responses=answers)


async def _alter(
    resource: AlterConfigsResource, validate_only: bool, context: Context
) -> AlterConfigsResourceResponse:
    code, why = ErrorCode.NONE, None
    try:
        values = _values(resource)
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


def _values(resource: AlterConfigsResource) -> dict[str, str]:
    values = {}
    for config in resource.configs:
        if config.value is None:
            raise InvalidRequest(f"{config.name[:100]} has no value")
        values[config.name] = config.value
    if len(values) != len(resource.configs):
        raise InvalidRequest("a setting is named twice")
    return values
