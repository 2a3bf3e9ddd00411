"""Which function answers which request: one table, filled by `@handles`, read by dispatch and ApiVersions."""

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import update_wrapper
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple, TypeVar

from headrace.broker.quotas.throttling import RequestUsage
from headrace.broker.requests.requirements import Required, Requirement
from headrace.broker.results import Result
from headrace.broker.services import BrokerServices
from headrace.broker.slices import Steps
from headrace.protocol.api import response_class
from headrace.protocol.between_brokers.broker_metrics import BROKER_METRICS
from headrace.protocol.between_brokers.seed_replica import SEED_REPLICA
from headrace.protocol.between_brokers.step_down import STEP_DOWN
from headrace.protocol.between_brokers.update_metadata import UPDATE_METADATA
from headrace.protocol.compiled.structs import default_of
from headrace.protocol.message import Message
from headrace.protocol.schema.index import APIS, LATEST_VERSION_UNSTABLE, ApiKey
from headrace.security import authorization
from headrace.security.listeners import Listener
from headrace.security.principals import ANONYMOUS, Principal
from headrace.security.sasl.session import SaslSession


class HangUp(Exception):
    """No response can express the error, so the connection is closed."""

    level = logging.WARNING


class CoordinatorMoved(HangUp):
    """The client is to connect to the new coordinator; this happens in normal operation."""

    level = logging.INFO


Function = TypeVar("Function", bound=Callable[..., Any])


def accepts_brokers(listener: Listener, authorizer: authorization.Authorizer) -> bool:
    """Return whether a listener accepts what only brokers send.

    Without an authorizer only the inter-broker listener tells brokers from clients. With one, any listener
    will do, as in Kafka: what brokers send requires CLUSTER_ACTION. So the inter-broker listener can be
    changed on one broker after the other.
    """
    return listener.is_inter_broker or authorizer is not authorization.ALLOW_ALL


class Context(NamedTuple):
    """What a handler knows besides the request itself."""

    broker: BrokerServices
    listener: Listener
    client_id: str | None
    version: int
    address: str = ""  # of the client
    principal: Principal = ANONYMOUS
    sasl: SaslSession | None = None  # of a connection to a listener with SASL
    authorizer: authorization.Authorizer = (
        authorization.ALLOW_ALL
    )  # the broker's; its own requests to itself need no authorization
    usage: RequestUsage | None = None  # what the request uses of quotas; None if there are none

    @property
    def accepts_brokers(self) -> bool:
        return accepts_brokers(self.listener, self.authorizer)

    def may(self, permission: authorization.Permission, name: str = authorization.CLUSTER_NAME) -> bool:
        """Return whether the principal has `permission` on the resource `name`."""
        return self.authorizer.allows(self.principal, self.address, *permission, name)

    def require(self, permission: authorization.Permission, name: str = authorization.CLUSTER_NAME) -> None:
        """Raise AuthorizationFailed if the principal lacks `permission` on the resource `name`."""
        if self.authorizer is not authorization.ALLOW_ALL and not self.may(permission, name):
            raise self.denied(permission, name)

    def denied(self, permission: authorization.Permission, name: str) -> authorization.AuthorizationFailed:
        """Return the error of a principal that lacks `permission`, after writing it to the audit log."""
        self.broker.audit.denied(self.principal, self.address, authorization.Action(*permission, name))
        return authorization.authorization_failed(permission)

    def authorized_operations(
        self, resource: authorization.ResourceType, name: str, *, requested: bool = True
    ) -> int:
        """Return the bit set of operations that the principal may perform on a resource, if requested."""
        if not requested:
            return authorization.NOT_REQUESTED
        return self.authorizer.authorized_operations(self.principal, self.address, resource, name)


class BrokerKey(IntEnum):
    """APIs that only brokers use among themselves, and gateways. ApiVersions does not list them."""

    UPDATE_METADATA = UPDATE_METADATA
    ENVELOPE = 58  # Kafka's
    BROKER_METRICS = BROKER_METRICS
    STEP_DOWN = STEP_DOWN
    SEED_REPLICA = SEED_REPLICA


class Handler(NamedTuple):
    key: ApiKey | BrokerKey
    versions: range
    function: Callable[[Any, Context], Result]
    requires: Sequence[Required]
    on_controller: bool = False  # a broker that is not the controller forwards the request
    inter_broker: bool = False  # only brokers send it (`Context.accepts_brokers`)
    when_ready: bool = True  # the request waits until the broker has received the cluster's metadata


HANDLERS: dict[int, Handler] = {}


def handles(
    key: ApiKey | BrokerKey,
    versions: range,
    *,
    requires: Required | Sequence[Required],
    on_controller: bool = False,
    inter_broker: bool = False,
    when_ready: bool = True,
) -> Callable[[Function], Function]:
    """Enter a function into the table: it answers `key` in `versions`.

    `requires` is what the principal must be allowed (`requirements`); an empty sequence lets everybody in.

    A plain function returns the response. If its work grows with the request it is a generator that yields
    every few elements (`slices`), and returns the response. A coroutine function waits for something before.
    A function that decides from request to request declares that it returns a `Result`, or `Steps[Result]`.
    """
    requirements = (
        (requires,) if isinstance(requires, Requirement | authorization.Permission) else tuple(requires)
    )

    def enter(function: Function) -> Function:
        assert key not in HANDLERS, f"{key.name} has two handlers"
        HANDLERS[key] = Handler(
            key, versions, with_result(function), requirements, on_controller, inter_broker, when_ready
        )
        return function

    return enter


def with_result(function: Callable[..., Any]) -> Callable[[Any, Context], Result]:
    """Return a handler's function with a `Result`, whatever kind of function it is declared to be."""
    returns = inspect.signature(function).return_annotation
    adapted: Callable[[Any, Context], Result]
    if returns is Result:
        return function
    if returns == Steps[Result]:
        adapted = lambda request, context: Result(steps=function(request, context))  # noqa: E731
    elif inspect.isgeneratorfunction(function):

        def steps(request: Any, context: Context) -> Steps[Result]:
            return Result((yield from function(request, context)))

        adapted = lambda request, context: Result(steps=steps(request, context))  # noqa: E731
    elif inspect.iscoroutinefunction(function):
        adapted = lambda request, context: Result(later=function(request, context))  # noqa: E731
    else:
        adapted = lambda request, context: Result(function(request, context))  # noqa: E731
    return update_wrapper(adapted, function)


def enabled(handlers: Mapping[int, Handler], *, unstable: bool) -> Mapping[int, Handler]:
    """Return the handlers without the versions that Kafka calls unstable, unless these are enabled."""
    if unstable:
        return handlers
    changed: dict[int, Handler] = {
        key: handlers[key]._replace(versions=handlers[key].versions[:-1])
        for key in LATEST_VERSION_UNSTABLE & handlers.keys()
        if handlers[key].versions.stop == APIS[key].versions.stop
    }
    return {**handlers, **changed}


def can_answer(handler: Handler, broker: BrokerServices) -> bool:
    """Return whether the broker can answer such a request now, without the controller."""
    return broker.ready.is_set() and (not handler.on_controller or broker.is_controller)


def call(handler: Handler, request: Any, context: Context) -> Result:
    """Authorize a request and return what its handler returns. Every request goes through here."""
    if context.authorizer is not authorization.ALLOW_ALL:
        try:
            for required in handler.requires:
                if isinstance(required, Requirement) and (name := required.name(request)) is not None:
                    context.require(required.permission, name)
        except authorization.AuthorizationFailed as error:
            return Result(_refusal(handler, error))
    return handler.function(request, context)


def _refusal(handler: Handler, error: authorization.AuthorizationFailed) -> Message:
    """Return the response to a request that is refused as a whole: every such API has one error code."""
    cls = response_class(handler.key)
    values = {declared.name: default_of(declared, cls) for declared in cls.__fields__}
    values["error_code"] = error.code
    if "error_message" in values:
        values["error_message"] = str(error)
    return cls(**values)


def load_handlers() -> None:
    """Import every handler there is."""
    package = import_module("headrace.broker.handlers")
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
