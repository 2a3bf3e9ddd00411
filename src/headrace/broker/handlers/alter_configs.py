"""AlterConfigs (key 33), v0-v2.

Behaviour: replaces all configs of a topic, a broker, a group or a client metrics subscription: those not in
           the request get their default again. A broker also keeps configs that it does not know, as in
           Kafka.
Versions:  v2 flexible.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import config_action, on_configs
from headrace.broker.slices import Turns
from headrace.broker.translate import FAILURES, error_code, error_message
from headrace.protocol.errors import ErrorCode
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.protocol.schema.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation


class Resource(Protocol):
    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


AnyResource = TypeVar("AnyResource", bound=Resource)
Altered = TypeVar("Altered")


async def alter_each(
    resources: Sequence[AnyResource],
    alter: Callable[[AnyResource], Awaitable[None]],
    context: Context,
    response_of: Callable[..., Altered],
) -> list[Altered]:
    """Alter each resource on its own; one that appears twice in the request is refused."""
    times: Counter[tuple[int, str]] = Counter()
    results, turns = {}, Turns()
    for each in resources:
        times[each.resource_type, each.resource_name] += 1
        await turns.next()
    for resource in resources:
        await turns.next()
        key = resource.resource_type, resource.resource_name
        if key in results:
            continue
        code, why = ErrorCode.NONE, None
        try:
            if times[key] > 1:
                raise InvalidRequest("each resource must appear at most once")
            context.require(*config_action(Operation.ALTER_CONFIGS, *key))
            await alter(resource)
        except FAILURES as error:
            code, why = error_code(error), error_message(error)
        results[key] = response_of(
            error_code=code, error_message=why, resource_type=key[0], resource_name=key[1]
        )
    return list(results.values())


@handles(ApiKey.ALTER_CONFIGS, range(3), requires=on_configs(Operation.ALTER_CONFIGS))
async def alter_configs(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    broker = context.broker

    async def alter(resource: AlterConfigsResource) -> None:
        await broker.config_admin.replace(
            resource.resource_type,
            resource.resource_name,
            _values(resource),
            validate_only=request.validate_only,
        )

    await broker.session.reconnected()
    return AlterConfigsResponse(
        responses=await alter_each(request.resources, alter, context, AlterConfigsResourceResponse)
    )


def _values(resource: AlterConfigsResource) -> dict[str, str]:
    values = {}
    for config in resource.configs:
        if config.value is None:
            raise InvalidRequest(f"{config.name[:100]} has no value")
        values[config.name] = config.value
    if len(values) != len(resource.configs):
        raise InvalidRequest("a config is named twice")
    return values
