"""The parts of the gateway, each imported and given its routes when something in it is first asked for.

The request that has a gateway started waits for all that is imported before its answer: what it does not ask
for is left for later.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Final

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

_MAKING: Final = Lock()  # routes are made of functions that all gateways in a process have in common


def _metrics(app: FastAPI) -> None:
    from headrace.http.metrics import routes  # noqa: PLC0415  as the others: when it is asked for

    routes.install(app)


def _admin(app: FastAPI) -> None:
    from headrace.http.admin import routes  # noqa: PLC0415

    routes.install(app)


def _gateway(app: FastAPI) -> None:
    from headrace.http.gateway import routes  # noqa: PLC0415

    routes.install(app)


def _registry(app: FastAPI) -> None:
    from headrace.http.registry import routes  # noqa: PLC0415

    routes.install(app)


def _first_page(app: FastAPI) -> None:
    from headrace.http.console import first_page  # noqa: PLC0415

    first_page.install(app)


def _console(app: FastAPI) -> None:
    from headrace.http.console import routes  # noqa: PLC0415

    routes.install(app)


Install = Callable[[FastAPI], None]

_PATHS: Final[Mapping[Install, str]] = {
    _metrics: "/(healthz|readyz|metrics|api/v1/rates)",
    _admin: "/api/v1/(cluster|elect|reassignments|brokers|topics|groups)",
    _gateway: "/(brokers|consumers|topics|v3)",
    _registry: "/(compatibility|config|contexts|mode|schemas|subjects|v1)",
    _first_page: "/ui(/static)?",
    _console: "/(ui/(?!static/[^/]+/[^/]+$).+|api/v1/(groups|pipelines))",
}
PARTS: Final = {install: re.compile(f"{path}(/|$)") for install, path in _PATHS.items()}
"""What adds the routes of a part to an app, and what all its paths begin with; in the order of the routes."""


class Parts:
    """The parts that an app has, after the routes that it has had before."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._first = list(app.router.routes)
        self._added: dict[Install, list[BaseRoute]] = {}

    def complete(self, path: str) -> None:
        """Have all routes there that `path` may want."""
        for install, paths in PARTS.items():
            if install not in self._added and paths.match(path):
                with _MAKING:
                    self._install(install)

    def _install(self, install: Install) -> None:
        if install in self._added:  # by another thread, where an app is asked by several
            return
        routes = self._app.router.routes
        there = len(routes)
        install(self._app)
        _make(routes[there:])
        added = {**self._added, install: routes[there:]}
        # In their order, whichever was asked for first: of two that fit, the first is taken.
        routes[:] = [*self._first, *(route for part in PARTS for route in added.get(part, ()))]
        self._added = added


class Completed:
    """An ASGI middleware: the routes that a request may want are there before one is chosen.

    Everybody waits while a part is imported. That is a tenth of a second or two, once.
    """

    def __init__(self, app: ASGIApp, parts: Parts) -> None:
        self._app = app
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._parts.complete(scope["path"])
        await self._app(scope, receive, send)


def install_all(app: FastAPI) -> None:
    """Add every part to `app`, in their order."""
    with _MAKING:
        for install in PARTS:
            install(app)
        _make(app.router.routes)


def _make(routes: Sequence[BaseRoute]) -> None:
    """Have FastAPI make of routers now what it would at a first request, when others may be at it too."""
    for _ in iter_route_contexts(routes):
        pass
