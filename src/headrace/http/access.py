"""The gateway's log of requests: those that change something, and those that fail on our side."""

import logging
import time
from collections.abc import Collection
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

QUIET: Final = frozenset({"GET", "HEAD", "OPTIONS"})

logger = logging.getLogger("headrace.http.access")


class AccessLog:
    """An ASGI middleware: a line a request, its parts as fields for logs in JSON."""

    def __init__(self, app: ASGIApp, quiet: Collection[str] = QUIET) -> None:
        self._app = app
        self._quiet = quiet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            if scope["method"] not in self._quiet or status >= 500:
                _log(scope, status, time.perf_counter() - began)


def _log(scope: Scope, status: int, took_s: float) -> None:
    client = scope.get("client")
    fields = {
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "took_ms": round(took_s * 1000, 1),
        "client": client[0] if client else None,
    }
    logger.info("%(method)s %(path)s %(status)d in %(took_ms).1f ms", fields, extra={"fields": fields})
