"""AlterConfigs (key 33), v0-v2.

Behaviour: replaces all settings of a topic, a broker, a group or a client metrics subscription: what is not
           named goes back to its default. A broker also keeps settings that it does not know, as Kafka does.
Versions:  v2 flexible.
"""

from collections import Counter

from headrace.broker.dispatch import Context, handles
from headrace.broker.requirements import config_requirements
from headrace.broker.slices import Turns
from headrace.broker.translate import FAILURES, error_code, error_message
from headrace.controller.errors import InvalidRequest
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation


@handles(ApiKey.ALTER_CONFIGS, range(3), requires=config_requirements(Operation.ALTER_CONFIGS))
async def alter_configs(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    await context.broker.session.reconnected()
    times = Counter((each.resource_type, each.resource_name) for each in request.resources)
    responses, turns = [], Turns()
    for resource in {(each.resource_type, each.resource_name): each for each in request.resources}.values():
        is_alone = times[resource.resource_type, resource.resource_name] == 1
        responses.append(await _alter(resource, request.validate_only, context, is_alone=is_alone))
        await turns.next()
    return AlterConfigsResponse(responses=responses)


async def _alter(
    resource: AlterConfigsResource, validate_only: bool, context: Context, *, is_alone: bool
) -> AlterConfigsResourceResponse:
    code, why = ErrorCode.NONE, None
    try:
        if not is_alone:
            raise InvalidRequest("each resource must appear at most once")
        values = _values(resource)
        await context.broker.config_admin.replace(
            resource.resource_type, resource.resource_name, values, validate_only=validate_only
        )
    except FAILURES as error:
        code, why = error_code(error), error_message(error)
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
