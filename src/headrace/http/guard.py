"""What is turned away before any route sees it: pages of other hosts, and bodies without an end."""

from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.http.problems import refusal

_CHANGES_NOTHING = frozenset({"GET", "HEAD", "OPTIONS"})


class Guard:
    """An ASGI middleware.

    A browser sends a page's origin along with whatever changes something. It has to be this gateway's own:
    otherwise any page that somebody looks at could delete topics of the cluster on their machine.
    """

    def __init__(self, app: ASGIApp, max_request_bytes: int) -> None:
        self._app = app
        self._limit = max_request_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _first(scope["headers"])
        if scope["method"] not in _CHANGES_NOTHING and _is_foreign(headers):
            message = "this request comes from a page of another host, which may not change anything here"
            await refusal(HTTPStatus.FORBIDDEN, 40301, message)(scope, receive, send)
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._limit:
            await self._too_large(scope, receive, send)
            return
        body = _Bounded(receive, self._limit)
        try:
            await self._app(scope, body.receive, send)
        except _TooLarge:
            await self._too_large(scope, receive, send)

    async def _too_large(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = f"the body is larger than the {self._limit:,} bytes that are taken"
        await refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, 41301, message)(scope, receive, send)


class _TooLarge(Exception):
    pass


class _Bounded:
    """A body that was sent in chunks: nobody has said how long it is."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._left = limit

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise _TooLarge
        return message


def _first(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        found.setdefault(name, value)
    return found


def _is_foreign(headers: dict[bytes, bytes]) -> bool:
    origin = headers.get(b"origin")
    if origin is None:
        return False  # not a browser
    return urlsplit(origin.decode("latin-1")).netloc.encode("latin-1") != headers.get(b"host")
