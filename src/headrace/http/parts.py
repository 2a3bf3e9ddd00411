"""The parts of the gateway, each imported and given its routes when something in it is first asked for.

The request that has a gateway started waits for all that is imported before its answer: what it does not ask
for is left for later.
"""

import re
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final

from fastapi import FastAPI
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
    """An ASGI middleware: the routes that a request may want are there before one is chosen.

    Everybody waits while a part is imported. That is a tenth of a second or two, once.
    """

    def __init__(self, app: ASGIApp, into: FastAPI) -> None:
        self._app = app
        self._into = into
        self._first = list(into.router.routes)
        self._added: dict[Install, list[BaseRoute]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and len(self._added) < len(PARTS):
            self._complete(scope["path"])
        await self._app(scope, receive, send)

    def _complete(self, path: str) -> None:
        for install, paths in PARTS.items():
            if install not in self._added and paths.match(path):
                self._install(install)

    def _install(self, install: Install) -> None:
        routes = self._into.router.routes
        there = len(routes)
        with _MAKING:
            install(self._into)
        self._added[install] = routes[there:]
        # In their order, whichever was asked for first: of two that fit, the first is taken.
        routes[:] = [*self._first, *(route for part in PARTS for route in self._added.get(part, ()))]


def install_all(app: FastAPI) -> None:
    """Add every part to `app`, in their order."""
    with _MAKING:
        for install in PARTS:
            install(app)
