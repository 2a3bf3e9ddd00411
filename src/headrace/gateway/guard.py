"""ASGI middleware that refuses requests from other sites' pages, and too large or too slow bodies."""

import asyncio
import re
from collections.abc import Collection
from ipaddress import ip_address
from socket import gethostname
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.gateway.problems import refusal

ALLOWED_ORIGIN: Final = "headrace.allowed-origin"
"""In the scope of a request: its Origin is the page of an allowed host, such as a proxy with TLS."""
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_SHOWN: Final = 100  # characters of a Host header in an error message
_HOST: Final = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+))(?::[0-9]*)?"
)


class Guard:
    """Refuses what must not reach a route.

    400: a Host header that does not follow RFC 3986, or more than one (RFC 9112, section 3.2).

    403: a request that changes something and comes from a page of another origin; otherwise any page that
    somebody opens could delete topics of a cluster on that machine. Also a Host that is not an address,
    localhost, the machine's name or one of `hosts`; otherwise a page whose name leads to our address could
    read topics (DNS rebinding). Pages of `hosts` are allowed to change something even if a proxy has replaced
    the Host header.

    413, 503, 408: a body of more than `max_request_bytes`, one that does not fit into `max_bodies_bytes`
    together with the bodies of other requests, and one that pauses for `read_timeout_s` before the response
    has started. A stream that is being answered may pause as long as the client likes.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_request_bytes: int,
        max_bodies_bytes: int,
        read_timeout_s: float = 30.0,
        hosts: Collection[str] = (),
    ) -> None:
        self._app = app
        self._max_request_bytes = max_request_bytes
        self._memory = _BodyMemory(max_bodies_bytes)
        self._read_timeout_s = read_timeout_s
        self._allowed = frozenset(map(str.lower, hosts))
        machine = gethostname().lower()
        self._local_names = self._allowed | {"localhost", machine, machine.partition(".")[0]}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        page = None if origin is None else parse_host(origin.partition("://")[2])
        scope[ALLOWED_ORIGIN] = origin is not None and page in self._allowed
        refused = self._refusal(scope, headers)
        if refused is not None:
            await refused(scope, receive, send)
            return
        body = _Body(receive, send, self._max_request_bytes, self._read_timeout_s, self._memory)
        try:
            await self._app(scope, body.receive, body.send)
        finally:
            body.release()

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) > 1:
            return refusal(400, f"there are {len(hosts)} Host headers: expected one")
        given = hosts[0] if hosts else ""  # HTTP/1.0 and health checks send no Host, or an empty one
        host = parse_host(given)
        if given and host is None:
            why = f"the Host header {given[:MAX_SHOWN]!r} is not a host with an optional port"
            return refusal(400, why)
        if host is not None and not _is_address(host) and host not in self._local_names:
            why = (
                f"{host[:MAX_SHOWN]!r} is not a name of this machine: if it is the name of a proxy, add "
                "it to http.hosts of the broker or to --allowed-host of the gateway"
            )
            return refusal(40301, why)
        origin = headers.get("origin")  # only browsers send it
        is_foreign = origin is not None and origin.partition("://")[2] != given
        if scope["method"] not in SAFE_METHODS and is_foreign and not scope[ALLOWED_ORIGIN]:
            why = "a page of another host may not change anything here: its Origin is not allowed"
            return refusal(40301, why)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length) > self._max_request_bytes:
            return refusal(413, _too_large(self._max_request_bytes))
        return None


def parse_host(text: str) -> str | None:
    """Return the host of `uri-host [":" port]` (RFC 3986) in lower case, without brackets and port.

    None is for a text that does not follow the grammar: `a:80@b` (user information), `[::1].b`, `[::1%25lo]`
    (a zone) and an empty host do not.
    """
    match = _HOST.fullmatch(text)
    if match is None:
        return None
    host = str(match["ipv6"] or match["name"]).lower()
    return None if match["ipv6"] is not None and not (":" in host and _is_address(host)) else host


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _too_large(limit: int) -> str:
    return f"the body has more than {limit:,} bytes"


class _BodyMemory:
    """The bytes of all request bodies that are in memory at a time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0

    def take(self, size: int) -> None:
        """Account for `size` more bytes; raise HTTPException (503) if they would exceed the limit."""
        if self._bytes + size > self._limit:
            why = f"requests in flight hold {self._bytes:,} of {self._limit:,} bytes: try again later"
            raise HTTPException(503, why)
        self._bytes += size

    def release(self, size: int) -> None:
        self._bytes -= size


class _Body:
    """One request's body as it arrives. Its exceptions are raised inside the app, which answers with them."""

    def __init__(
        self, receive: Receive, send: Send, limit: int, timeout_s: float, memory: _BodyMemory
    ) -> None:
        self._receive = receive
        self._send = send
        self._limit = self._left = limit
        self._timeout_s: float | None = timeout_s  # None once nothing more is expected before the response
        self._timed_out = False
        self._memory = memory
        self._held_bytes = 0

    async def receive(self) -> Message:
        try:
            async with asyncio.timeout(self._timeout_s):
                message = await self._receive()
        except TimeoutError:
            self._timed_out = True
            why = f"the body has paused for {self._timeout_s:g} s"
            raise HTTPException(408, why) from None
        if not message.get("more_body", False):
            self._timeout_s = None  # the next message is a disconnect, which may come at any time
        size = len(message.get("body", b""))
        self._left -= size
        if self._left < 0:
            raise HTTPException(413, _too_large(self._limit))
        self._memory.take(size)
        self._held_bytes += size
        return message

    async def send(self, message: Message) -> None:
        self._timeout_s = None
        if self._timed_out and message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        if message.get("more_body"):  # a streaming route has processed what it has received so far
            self.release()
        await self._send(message)

    def release(self) -> None:
        self._memory.release(self._held_bytes)
        self._held_bytes = 0
