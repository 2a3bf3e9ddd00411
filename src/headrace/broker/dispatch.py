"""Which function answers which request: one table, filled by `@handles`, read by dispatch and ApiVersions."""

from collections.abc import Awaitable, Callable, Sequence
from enum import IntEnum
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple, TypeVar

from headrace.broker.requirements import Requirement
from headrace.broker.services import BrokerServices
from headrace.broker.slices import Steps
from headrace.protocol.broker_metrics import BROKER_METRICS
from headrace.protocol.fields import Buffer
from headrace.protocol.message import Message
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.step_down import STEP_DOWN
from headrace.protocol.update_metadata import UPDATE_METADATA
from headrace.security.authorization import ALLOW_ALL, NOT_REQUESTED, ResourceType
from headrace.security.listeners import Listener
from headrace.security.principals import ANONYMOUS, Principal
from headrace.security.sasl.session import SaslSession


class HangUp(Exception):
    """No response can express the error, so the connection is closed."""


class Encoded(NamedTuple):
    """The body of a response that is encoded already, in the version of the request."""

    body: list[Buffer]


FREED_TOGETHER = 1000


def encoded_list(message: Message, items: list[Any], version: int) -> Steps[Encoded]:
    """Encode a response, and empty the list of its `items` in steps, for a response with very many items.

    Otherwise all of them are freed in one step, which takes 40 ms with 100,000 items.
    """
    body = yield from message.encode_in_slices(version)
    while items:
        del items[-FREED_TOGETHER:]
        yield
    return Encoded(body)


Reply = Message | Encoded | None
"""What a handler answers; None is no response at all, which only Produce with acks=0 gives."""

Function = TypeVar("Function", bound=Callable[..., Any])


class Context(NamedTuple):
    """What a handler knows besides the request itself."""

    broker: BrokerServices
    listener: Listener
    client_id: str | None
    version: int
    address: str = ""  # of the client
    principal: Principal = ANONYMOUS
    sasl: SaslSession | None = None  # of a connection to a listener with SASL

    def authorized_operations(self, resource: ResourceType, name: str, *, requested: bool = True) -> int:
        """Return the bit set of operations that the principal may perform on a resource, if requested."""
        if not requested:
            return NOT_REQUESTED
        authorizer = self.broker.authorizer
        return authorizer.authorized_operations(self.principal, self.address, resource, name)


class BrokerKey(IntEnum):
    """APIs that only brokers use among themselves, and gateways. ApiVersions does not list them."""

    UPDATE_METADATA = UPDATE_METADATA
    ENVELOPE = 58  # Kafka's
    BROKER_METRICS = BROKER_METRICS
    STEP_DOWN = STEP_DOWN


class Handler(NamedTuple):
    key: ApiKey | BrokerKey
    versions: range
    function: Callable[[Any, Context], Reply | Awaitable[Reply] | Steps[Any]]
    requires: Sequence[Requirement]
    on_controller: bool = False  # a broker that is not the controller forwards the request
    inter_broker: bool = False  # accepted on the inter-broker listener only
    when_ready: bool = True  # the request waits until the broker has received the cluster's metadata


HANDLERS: dict[int, Handler] = {}


def handles(
    key: ApiKey | BrokerKey,
    versions: range,
    *,
    requires: Requirement | Sequence[Requirement],
    on_controller: bool = False,
    inter_broker: bool = False,
    when_ready: bool = True,
) -> Callable[[Function], Function]:
    """Enter a function into the table: it answers `key` in `versions`.

    `requires` is what the principal must be allowed; an empty sequence lets everybody in.

    A plain function answers at once. If its work grows with the request it is a generator that yields every
    few elements (`slices`), and returns the response. What it returns may be awaitable instead: then later
    requests of the connection are handled meanwhile, and the responses still go out in order.
    """
    requirements = (requires,) if isinstance(requires, Requirement) else tuple(requires)

    def enter(function: Function) -> Function:
        assert key not in HANDLERS, f"{key.name} has two handlers"
        HANDLERS[key] = Handler(
            key, versions, function, requirements, on_controller, inter_broker, when_ready
        )
        return function

    return enter


def can_answer(handler: Handler, broker: BrokerServices) -> bool:
    """Return whether the broker can answer such a request now, without the controller."""
    return broker.ready.is_set() and (not handler.on_controller or broker.is_controller)


def call(handler: Handler, request: Any, context: Context) -> Any:
    """Authorize a request and return what its handler returns. Every request goes through here."""
    if context.broker.authorizer is not ALLOW_ALL:
        _authorize(handler, request, context)
    return handler.function(request, context)


def _authorize(handler: Handler, request: Any, context: Context) -> None:
    """Raise HangUp if the principal lacks a permission that the handler requires."""
    image, authorizer = context.broker.image, context.broker.authorizer
    actions = [action for each in handler.requires for action in each.actions(request, image)]
    for action in authorizer.denied(context.principal, context.address, actions):
        raise HangUp(f"{context.principal} from {context.address} lacks {action}")


def load_handlers() -> None:
    """Import every handler there is."""
    package = import_module("headrace.broker.handlers")
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
