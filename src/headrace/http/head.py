"""HEAD: what GET answers, without its body."""

from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NOT_FOR: Final = "/consumers/"  # there a GET takes records, which HEAD would lose


class Head:
    """An ASGI middleware. Routes know GET only; one that streams is ended at its first piece."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"].startswith(NOT_FOR):
            await self._app(scope, receive, send)
            return
        over = False

        async def sending(message: Message) -> None:
            nonlocal over
            if message["type"] == "http.response.start":
                await send(message)
                return
            if not over:
                over = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            if message.get("more_body"):
                raise _Enough

        try:
            await self._app({**scope, "method": "GET"}, receive, sending)
        except (_Enough, ClientDisconnect):
            if not over:  # it was the client that went
                raise


class _Enough(OSError):
    """What a server raises where nobody listens any more."""
