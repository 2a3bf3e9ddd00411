"""Bodies that stop coming: whoever sends half of one is not waited for without an end."""

import asyncio
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Patience:
    """An ASGI middleware: a request whose body pauses for `patience_s` before it is answered gets a 408.

    Not one that is being answered: such a stream lasts as long as its client likes.
    """

    def __init__(self, app: ASGIApp, patience_s: float) -> None:
        self._app = app
        self._patience_s = patience_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        else:
            request = _Request(receive, send, self._patience_s)
            await self._app(scope, request.receive, request.send)


class _Request:
    def __init__(self, receive: Receive, send: Send, patience_s: float) -> None:
        self._receive = receive
        self._send = send
        self._patience_s = patience_s
        self._is_waited_for = True
        self._is_given_up = False

    async def receive(self) -> Message:
        try:
            async with asyncio.timeout(self._patience_s if self._is_waited_for else None):
                message = await self._receive()
        except TimeoutError:
            self._is_given_up = True
            said = f"the body has not gone on for {self._patience_s:g} s"
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, said) from None  # in the app, which answers it
        if not message.get("more_body", False):
            self._is_waited_for = False  # what comes next is that the client goes
        return message

    async def send(self, message: Message) -> None:
        self._is_waited_for = False
        if self._is_given_up and message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await self._send(message)
