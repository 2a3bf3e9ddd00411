"""Which function answers which request: one table, filled by `@handles`, read by dispatch and ApiVersions."""

from collections.abc import Awaitable, Callable
from enum import IntEnum
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from headrace.broker.slices import Steps
from headrace.protocol.broker_metrics import BROKER_METRICS
from headrace.protocol.fields import Buffer
from headrace.protocol.message import Message
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.step_down import STEP_DOWN
from headrace.protocol.update_metadata import UPDATE_METADATA

if TYPE_CHECKING:
    from headrace.broker.server import Broker


class HangUp(Exception):
    """There is no reply that could say what went wrong; closing the connection is the only one left."""


class Encoded(NamedTuple):
    """A reply's body that is bytes already, in the version that was asked for."""

    body: list[Buffer]


Reply = Message | Encoded | None
"""What a handler answers; None is no answer at all, which only Produce with acks=0 gives."""

Function = TypeVar("Function", bound=Callable[..., Any])


class Context(NamedTuple):
    """What a handler may know besides the request itself."""

    broker: "Broker"
    listener: str
    client_id: str | None
    version: int
    address: str = ""  # of the client


class BrokerKey(IntEnum):
    """APIs that brokers use among themselves, and gateways; no client is told of them."""

    UPDATE_METADATA = UPDATE_METADATA
    BROKER_METRICS = BROKER_METRICS
    STEP_DOWN = STEP_DOWN


class Handler(NamedTuple):
    key: ApiKey | BrokerKey
    versions: range
    function: Callable[[Any, Context], Reply | Awaitable[Reply] | Steps[Any]]
    on_controller: bool = False  # any broker takes the request, and has the controller answer it
    when_ready: bool = True  # it can wait until the broker knows its cluster


HANDLERS: dict[int, Handler] = {}


def handles(
    key: ApiKey | BrokerKey, versions: range, *, on_controller: bool = False, when_ready: bool = True
) -> Callable[[Function], Function]:
    """Enter a function into the table: it answers `key` in `versions`.

    A plain function answers at once. If its work grows with the request it is a generator that yields every
    few elements (`slices`), and returns the reply. What it returns may be awaitable instead: then later
    requests of the connection are handled meanwhile, and the replies still go out in order.
    """

    def enter(function: Function) -> Function:
        assert key not in HANDLERS, f"{key.name} has two handlers"
        HANDLERS[key] = Handler(key, versions, function, on_controller, when_ready)
        return function

    return enter


def load_handlers() -> None:
    """Import every handler there is."""
    package = import_module("headrace.broker.handlers")
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
