"""The parts of the gateway, each imported and given its routes when something in it is first asked for.

The request that has a gateway started waits for all that is imported before its answer: what it does not ask
for is left for later. A part lies below the first names of its paths.
"""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final

from fastapi import FastAPI
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


def _console(app: FastAPI) -> None:
    from headrace.http.console import routes  # noqa: PLC0415

    routes.install(app)


Install = Callable[[FastAPI], None]

PARTS: Final[Mapping[Install, frozenset[str]]] = {
    _metrics: frozenset({"api", "healthz", "metrics", "readyz"}),
    _admin: frozenset({"api"}),
    _gateway: frozenset({"brokers", "consumers", "topics", "v3"}),
    _registry: frozenset(
        {"compatibility", "config", "contexts", "mode", "schemas", "subjects", "v1"},
    ),
    _console: frozenset({"api", "ui"}),
}
"""What adds the routes of a part to an app, and the first names of their paths."""


class Parts:
    """An ASGI middleware: the routes that a request may want are there before one is chosen.

    Everybody waits while a part is imported. That is a tenth of a second or two, once.
    """

    def __init__(self, app: ASGIApp, into: FastAPI) -> None:
        self._app = app
        self._into = into
        self._missing = dict(PARTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._missing and scope["type"] == "http":
            self._complete(scope["path"].split("/", 2)[1:2])
        await self._app(scope, receive, send)

    def _complete(self, first: list[str]) -> None:
        for install in [part for part, names in self._missing.items() if not names.isdisjoint(first)]:
            with _MAKING:
                install(self._into)
            del self._missing[install]


def install_all(app: FastAPI) -> None:
    """Add every part to `app`, in their order."""
    with _MAKING:
        for install in PARTS:
            install(app)
