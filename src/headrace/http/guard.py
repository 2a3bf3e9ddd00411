"""What is turned away before any route sees it: pages of other hosts, and bodies without an end."""

from collections.abc import Collection, Iterable
from http import HTTPStatus
from ipaddress import ip_address
from socket import gethostname

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.http.authority import parse_authority
from headrace.http.problems import refusal

_TOO_LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
MOST_TOLD = 100  # characters of a host
_CHANGES_NOTHING = frozenset({"GET", "HEAD", "OPTIONS"})


class Guard:
    """An ASGI middleware.

    A browser sends a page's origin along with whatever changes something. It has to be this gateway's own:
    otherwise any page that somebody looks at could delete topics of the cluster on their machine. And a page
    whose name leads to the loopback, by whatever its owner has put into DNS, is not from here either, though
    its origin is the host that it asks for: on the loopback, that has to be an address, localhost, this
    machine's name, or one among `hosts`, compared as a whole. Browsers tell too little to ask this of them
    alone. Pages of `hosts` are our own wherever a proxy has put another name into the request. A Host header
    that does not follow the grammar of RFC 3986, or is there twice, gets a 400 (RFC 9112, 3.2).
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_request_bytes: int,
        max_bodies_bytes: int,
        hosts: Collection[str] = (),
    ) -> None:
        self._app = app
        self._limit = max_request_bytes
        self._held = Held(max_bodies_bytes)
        machine = gethostname().lower()
        self._allowed = frozenset(map(str.lower, hosts))
        self._hosts = self._allowed | {"localhost", machine, machine.partition(".")[0]}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _first(scope["headers"])
        if (why := _bad_host(scope)) is not None:
            await refusal(HTTPStatus.BAD_REQUEST, 400, why)(scope, receive, send)
            return
        why = self._why_not(scope, headers)
        if why is not None:
            await refusal(HTTPStatus.FORBIDDEN, 40301, why)(scope, receive, send)
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._limit:
            await self._too_large(scope, receive, send)
            return
        body = _Bounded(receive, send, self._limit, self._held)
        try:
            await self._app(scope, body.receive, body.send)
        finally:
            body.let_go()

    def _why_not(self, scope: Scope, headers: dict[bytes, bytes]) -> str | None:
        if self._is_rebound(scope, headers):
            host = str(_host_of(headers[b"host"]))[:MOST_TOLD]
            return (
                f"it is asked for as {host!r}, which is no name of this machine: if it is a proxy's, "
                "http.hosts of the broker or --allowed-host of the gateway has to say so"
            )
        if scope["method"] not in _CHANGES_NOTHING and self._is_foreign(headers):
            return "this request comes from a page of another host, which has no business here"
        return None

    def _is_foreign(self, headers: dict[bytes, bytes]) -> bool:
        origin = headers.get(b"origin")
        if origin is None:
            return False  # not a browser
        page = origin.partition(b"://")[2]
        return page != headers.get(b"host") and _host_of(page) not in self._allowed

    def _is_rebound(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        server = scope.get("server")
        if server is None or not _is_loopback(server[0]):
            return False
        asked = parse_authority(headers.get(b"host", b""))
        if asked is None:
            return False  # no browser: those say whom they ask
        return not (asked.is_address or asked.host in self._hosts)

    async def _too_large(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = refusal(_TOO_LARGE, _TOO_LARGE, _too_large(self._limit))
        await refused(scope, receive, send)


def _too_large(limit: int) -> str:
    return f"the body is larger than the {limit:,} bytes that are taken"


class Held:
    """The bytes of bodies that requests hold at a time, all of them together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0

    def take(self, size: int) -> None:
        """Hold so many more; HTTPException, with nothing taken, if these would be too many."""
        if self._bytes + size > self._limit:
            said = (
                f"requests that are under way hold {self._bytes:,} bytes of {self._limit:,}: try again later"
            )
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, said)  # inside the app, which answers it
        self._bytes += size

    def let_go(self, size: int) -> None:
        self._bytes -= size


class _Bounded:
    """A body as it comes, which need not say in advance how long it is."""

    def __init__(self, receive: Receive, send: Send, limit: int, held: Held) -> None:
        self._receive = receive
        self._send = send
        self._limit = self._left = limit
        self._held = held
        self._held_bytes = 0

    async def receive(self) -> Message:
        message = await self._receive()
        size = len(message.get("body", b""))
        self._left -= size
        if self._left < 0:
            raise HTTPException(_TOO_LARGE, _too_large(self._limit))  # inside the app, which answers it
        self._held.take(size)
        self._held_bytes += size
        return message

    async def send(self, message: Message) -> None:
        if message.get("more_body"):  # a stream is answered as it comes, and what is answered is not held
            self.let_go()
        await self._send(message)

    def let_go(self) -> None:
        self._held.let_go(self._held_bytes)
        self._held_bytes = 0


def _first(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        found.setdefault(name, value)
    return found


def _bad_host(scope: Scope) -> str | None:
    """What is wrong with the Host header; HTTP/1.0 and health checks send none, or an empty one."""
    given = [value for name, value in scope["headers"] if name == b"host"]
    if len(given) > 1:
        return f"there are {len(given)} Host headers: expected one"
    if any(given) and parse_authority(given[0]) is None:
        return (
            f"the Host header {given[0][:MOST_TOLD].decode('latin-1')!r} is not a host with an optional port"
        )
    return None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(authority: bytes) -> str | None:
    """`name` of `name:8080`, `::1` of `[::1]:8080`, and None if it is neither."""
    parsed = parse_authority(authority)
    return None if parsed is None else parsed.host
