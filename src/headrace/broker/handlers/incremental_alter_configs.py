"""IncrementalAlterConfigs (key 44), v0-v1.

Behaviour: set, delete, append and subtract, for topics, groups, client metrics subscriptions, for this broker
           and for all brokers (an empty name). All changes to one resource are made, or none. What is deleted
           need not be set, nor known. A broker also keeps settings that it does not know, as Kafka does.
Versions:  v1 flexible.
"""

from collections import Counter

from headrace.broker.config_admin import Change
from headrace.broker.config_admin import Operation as ConfigOperation
from headrace.broker.dispatch import Context, handles
from headrace.broker.requirements import config_requirements
from headrace.broker.slices import Turns
from headrace.broker.translate import FAILURES, error_code, error_message
from headrace.controller.errors import InvalidRequest
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, range(2), requires=config_requirements(Operation.ALTER_CONFIGS))
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    await context.broker.session.reconnected()
    times = Counter((each.resource_type, each.resource_name) for each in request.resources)
    responses, turns = [], Turns()
    for resource in {(each.resource_type, each.resource_name): each for each in request.resources}.values():
        is_alone = times[resource.resource_type, resource.resource_name] == 1
        responses.append(await _alter(resource, request.validate_only, context, is_alone=is_alone))
        await turns.next()
    return IncrementalAlterConfigsResponse(responses=responses)


async def _alter(
    resource: AlterConfigsResource, validate_only: bool, context: Context, *, is_alone: bool
) -> AlterConfigsResourceResponse:
    code, why = ErrorCode.NONE, None
    try:
        if not is_alone:
            raise InvalidRequest("each resource must appear at most once")
        await context.broker.config_admin.change(
            resource.resource_type, resource.resource_name, _changes(resource), validate_only=validate_only
        )
    except FAILURES as error:
        code, why = error_code(error), error_message(error)
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=why,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _changes(resource: AlterConfigsResource) -> list[Change]:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise InvalidRequest("a setting is named twice")
    try:
        return [
            Change(entry.name, ConfigOperation(entry.config_operation), entry.value)
            for entry in resource.configs
        ]
    except ValueError as error:
        raise InvalidRequest(str(error)) from error
