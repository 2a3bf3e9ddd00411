"""AlterConfigs (key 33), v0-v2.

Behaviour: replaces all configs of a topic, a broker or a group: those not in the request get their default
           again. A broker also keeps configs that it does not know, as in Kafka.
Versions:  v2 flexible.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import config_action, on_configs
from headrace.broker.slices import Turns
from headrace.broker.translate import FAILURES, error_fields
from headrace.protocol.errors import ErrorCode
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.protocol.schema import alter_configs as api
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
    for resource in resources:
        times[resource.resource_type, resource.resource_name] += 1
        await turns.next()
    for resource in resources:
        await turns.next()
        key = resource.resource_type, resource.resource_name
        if key in results:
            continue
        outcome: dict[str, Any] = {"error_code": ErrorCode.NONE, "error_message": None}
        try:
            if times[key] > 1:
                raise InvalidRequest("each resource must appear at most once")
            context.require(*config_action(Operation.ALTER_CONFIGS, *key))
            await alter(resource)
        except FAILURES as error:
            outcome = error_fields(error)
        results[key] = response_of(**outcome, resource_type=key[0], resource_name=key[1])
    return list(results.values())


@handles(ApiKey.ALTER_CONFIGS, range(3), requires=on_configs(Operation.ALTER_CONFIGS))
async def alter_configs(request: api.AlterConfigsRequest, context: Context) -> api.AlterConfigsResponse:
    async def alter(resource: api.AlterConfigsResource) -> None:
        values = {}
        for config in resource.configs:
            if config.value is None:
                raise InvalidRequest(f"{config.name[:100]} has no value")
            values[config.name] = config.value
        if len(values) != len(resource.configs):
            raise InvalidRequest("a config is named twice")
        await context.broker.config_admin.replace(
            resource.resource_type, resource.resource_name, values, validate_only=request.validate_only
        )

    await context.broker.session.reconnected()
    return api.AlterConfigsResponse(
        responses=await alter_each(request.resources, alter, context, api.AlterConfigsResourceResponse)
    )
