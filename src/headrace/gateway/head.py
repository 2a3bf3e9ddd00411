"""ASGI middleware that answers HEAD like GET, without the body."""

from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

EXCLUDED: Final = "/consumers/"  # a GET there consumes records, which HEAD would lose


class Head:
    """Turns HEAD into GET, since routes only have GET, and ends a streaming response at its first chunk."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"].startswith(EXCLUDED):
            await self._app(scope, receive, send)
            return
        ended = False

        async def send_without_body(message: Message) -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                await send(message)
                return
            if not ended:
                ended = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            if message.get("more_body"):
                raise _EndOfResponse

        try:
            await self._app({**scope, "method": "GET"}, receive, send_without_body)
        except (_EndOfResponse, ClientDisconnect):
            if not ended:  # the client has disconnected
                raise


class _EndOfResponse(OSError):
    """Ends a streaming response, as the OSError of a closed connection would."""
