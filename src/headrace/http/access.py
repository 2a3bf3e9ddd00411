"""The gateway's log of requests: those that change something, and those that fail on our side."""

import logging
import time
from typing import Final
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

QUIET: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_PLAIN: Final = "/:@!$&'()*+,;="

logger = logging.getLogger("headrace.http.access")


class AccessLog:
    """An ASGI middleware: a line a request, its parts as fields for logs in JSON."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

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
            if scope["method"] not in QUIET or status >= 500:
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
    said = fields | {"path": _in_one_word(scope["path"])}
    logger.info("%(method)s %(path)s %(status)d in %(took_ms).1f ms", said, extra={"fields": fields})


def _in_one_word(path: str) -> str:
    """A path as it goes over the wire: one that has a line break in it does not write a line of its own."""
    return quote(path, safe=_PLAIN, errors="backslashreplace")
