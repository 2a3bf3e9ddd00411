"""The gateway's access log: requests that change something, and requests that fail with 5xx."""

import logging
import time
from typing import Final
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.gateway.current import USER, root_of
from headrace.gateway.guard import SAFE_METHODS

_UNQUOTED: Final = "/:@!$&'()*+,;="

logger = logging.getLogger("headrace.http.access")


class AccessLog:
    """ASGI middleware that logs one line for each request, with its parts as fields for JSON logs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s, status = time.perf_counter(), 500

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note_status)
        finally:
            if scope["method"] not in SAFE_METHODS or status >= 500:
                _log(scope, status, time.perf_counter() - started_s)


def _log(scope: Scope, status: int, took_s: float) -> None:
    client, path = scope.get("client"), root_of(scope) + scope["path"]
    fields = {
        "method": scope["method"],
        "path": path,
        "status": status,
        "took_ms": round(took_s * 1000, 1),
        "client": client[0] if client else None,
    }
    if scope.get(USER) is not None:
        fields["user"] = scope[USER]
    # A path with a line break in it must not start a line of its own.
    shown = fields | {"path": quote(path, safe=_UNQUOTED, errors="backslashreplace")}
    logger.info("%(method)s %(path)s %(status)d in %(took_ms).1f ms", shown, extra={"fields": fields})
