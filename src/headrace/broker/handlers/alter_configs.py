"""AlterConfigs (key 33), v0-v2.

Behaviour: replaces all configs of a topic, a broker, a group or a client metrics subscription: those not in
           the request get their default again. A broker also keeps configs that it does not know, as in
           Kafka.
Versions:  v2 flexible.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from headrace.broker.dispatch import Context, handles
from headrace.broker.requirements import config_action, on_configs
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


class Resource(Protocol):
    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


class Altered(NamedTuple):
    """What became of one resource, in the fields of both APIs' responses."""

    error_code: ErrorCode
    error_message: str | None
    resource_type: int
    resource_name: str


AnyResource = TypeVar("AnyResource", bound=Resource)


async def alter_each(
    resources: Sequence[AnyResource], alter: Callable[[AnyResource], Awaitable[None]], context: Context
) -> list[Altered]:
    """Alter each resource on its own; one that appears twice in the request is refused."""
    times = Counter((each.resource_type, each.resource_name) for each in resources)
    results, turns = [], Turns()
    for key, resource in {(each.resource_type, each.resource_name): each for each in resources}.items():
        code, why = ErrorCode.NONE, None
        try:
            if times[key] > 1:
                raise InvalidRequest("each resource must appear at most once")
            context.require(*config_action(Operation.ALTER_CONFIGS, *key))
            await alter(resource)
        except FAILURES as error:
            code, why = error_code(error), error_message(error)
        results.append(Altered(code, why, *key))
        await turns.next()
    return results


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
    results = await alter_each(request.resources, alter, context)
    return AlterConfigsResponse(
        responses=[AlterConfigsResourceResponse(**each._asdict()) for each in results]
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
