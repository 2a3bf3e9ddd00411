"""What the routes of a gateway share, `app.state`: each thing is made when a route first asks for it."""

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any, Final

from fastapi import FastAPI
from starlette.datastructures import State

from headrace.http.reach import Reach
from headrace.http.settings import GatewaySettings
from headrace.http.tracing import provider


def _hub(app: FastAPI) -> Any:
    from headrace.http.gateway.hub import Hub  # noqa: PLC0415  as the others: when it is asked for

    return Hub(app, app.state.reach)


def _registry(app: FastAPI) -> Any:
    from headrace.http.registry.registry import Registry  # noqa: PLC0415

    return Registry(app.state.reach)


def _presence(app: FastAPI) -> Any:
    from headrace.http.admin.presence import Presence  # noqa: PLC0415

    return Presence(app.state.reach)


def _console(app: FastAPI) -> Any:
    from headrace.http.console.state import Console  # noqa: PLC0415

    return Console(app.state.reach)


def _counters(app: FastAPI) -> Any:
    from headrace.http.metrics.counters import Counters  # noqa: PLC0415

    made = Counters(app.state.reach)
    app.state.reach.at_close(made.close)
    return made


def _lags(app: FastAPI) -> Any:
    from headrace.http.metrics.lags import Lags  # noqa: PLC0415

    return Lags(app.state.reach, app.state.counters)


def _rates(app: FastAPI) -> Any:
    from headrace.http.metrics.rates import Rates  # noqa: PLC0415

    made = Rates(app.state.counters)
    app.state.reach.at_close(made.close)  # before the counters, which are older
    return made


_MAKERS: Final[Mapping[str, Callable[[FastAPI], Any]]] = {
    "hub": _hub,
    "registry": _registry,
    "presence": _presence,
    "console": _console,
    "counters": _counters,
    "lags": _lags,
    "rates": _rates,
}


class Shared(State):
    """`app.state.hub` is the hub, the same for everybody; routes ask from several threads."""

    _app: FastAPI
    _making: RLock

    def __init__(self, app: FastAPI, settings: GatewaySettings) -> None:
        super().__init__({"reach": Reach(settings), "traces": provider()})
        object.__setattr__(self, "_app", app)  # our own `setattr` is for what is shared
        object.__setattr__(self, "_making", RLock())

    def __getattr__(self, name: str) -> Any:
        """Called for what is no attribute of the class, which is everything that is shared."""
        with self._making:
            if name in _MAKERS and name not in self._state:
                setattr(self, name, _MAKERS[name](self._app))
            return super().__getattr__(name)

    def has(self, name: str) -> bool:
        """Whether this has been made."""
        return name in self._state
