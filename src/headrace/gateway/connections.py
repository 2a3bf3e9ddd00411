"""The gateway's connections: how many there may be, and how large and slow the head of a request."""

import asyncio
import logging
import math
import resource
import ssl
from http import HTTPStatus
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.current import PRINCIPAL
from headrace.gateway.problems import retry_after
from headrace.security.principal_mapping import NoMatchingRule, PrincipalMapper
from headrace.security.principals import Principal

MAX_HEADER_LINES: Final = 100  # of a request, trailers included
MAX_HEADER_BYTES: Final = 64 * 1024  # of all header lines together
MAX_TARGET_BYTES: Final = 64 * 1024  # of the request line; `from=` of a search names every partition
MAX_PIPELINED: Final = 32  # requests that wait for the response to an earlier one
RESERVED_FILES: Final = 200  # for connections to brokers and other open files
WARN_EVERY_S: Final = 60.0

_TOO_LARGE: Final = (
    f"the request has more than {MAX_HEADER_LINES} header lines or {MAX_HEADER_BYTES} bytes in them"
)

logger = logging.getLogger(__name__)


class Config(uvicorn.Config):
    """uvicorn's configuration with the limits that uvicorn does not have."""

    def __init__(
        self, app: ASGIApp, settings: GatewaySettings, tls: ssl.SSLContext | None = None, **options: Any
    ) -> None:
        super().__init__(
            app,
            http=HttpConnection,
            ws="none",
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),  # uvicorn's default trusts the loopback
            ssl_context_factory=None if tls is None else lambda _config, _default: tls,
            **options,
        )
        self.principals = PrincipalMapper(settings.principal_mapping_rules)
        self.head_timeout_s = settings.read_timeout_s
        # RESERVED_FILES files can be opened besides the connections, or half of a low limit.
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = 2**31 if limit == resource.RLIM_INFINITY else max(limit // 2, limit - RESERVED_FILES)
        self.max_connections = min(settings.max_connections, most)
        self.idle: dict[HttpConnection, None] = {}  # connections without a request, the longest idle first
        self._warned_s = -math.inf

    def make_room(self, now_s: float) -> bool:
        """Close the connection that is idle for longest; return False if every connection has a request.

        That all connections are open is logged at most once every WARN_EVERY_S seconds.
        """
        if now_s - self._warned_s >= WARN_EVERY_S:
            self._warned_s = now_s
            logger.warning(
                "all %d connections are open (max_connections): a new one closes the one that is idle for "
                "longest, and gets 503 if none is idle",
                self.max_connections,
            )
        oldest = next(iter(self.idle), None)
        if oldest is None:
            return False
        del self.idle[oldest]
        oldest.transport.abort()  # `close` would wait for the client to end TLS
        return True


class HttpConnection(HttpToolsProtocol):
    """A connection that is closed if the head of its next request is too large or does not arrive in time.

    uvicorn's `timeout_keep_alive` ends with the first byte of a request, and its limit for the size of a head
    is only for h11.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        assert isinstance(config, Config), config
        self._limits = config
        self._head_timer: asyncio.TimerHandle | None = None
        self._refusal: tuple[HTTPStatus, str] | None = None
        self._header_lines = self._header_bytes = 0
        self._unparsed_bytes = 0  # received since the parser's last callback
        self._progress = False
        self._principal: Principal | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        is_full = len(self.connections) >= self._limits.max_connections
        if is_full and not self._limits.make_room(self.loop.time()):
            self.transport = transport
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "all connections are in use: try again later")
            return
        super().connection_made(transport)
        secured = transport.get_extra_info("ssl_object")
        certificate = None if secured is None else secured.getpeercert(binary_form=True)
        if certificate is not None:
            try:
                self._principal = self._limits.principals.principal(certificate)
            except (NoMatchingRule, ValueError) as error:
                logger.warning("a certificate has no principal: %s", error)
        self._limits.idle[self] = None
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.idle.pop(self, None)
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._progress = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        self._unparsed_bytes = 0 if self._progress else self._unparsed_bytes + len(data)
        if self._unparsed_bytes > MAX_HEADER_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _TOO_LARGE)
        elif self.cycle is None or self.cycle.response_complete:
            self._start_head_timer()

    def on_message_begin(self) -> None:
        self._header_lines = self._header_bytes = 0
        super().on_message_begin()
        self.scope["state"][PRINCIPAL] = self._principal

    def on_url(self, url: bytes) -> None:
        self._progress = True
        super().on_url(url)
        if len(self.url) > MAX_TARGET_BYTES:
            why = f"the request line has more than {MAX_TARGET_BYTES} bytes"
            self._fail(HTTPStatus.REQUEST_URI_TOO_LONG, why)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._progress = True
        self._header_lines += 1
        self._header_bytes += len(name) + len(value)
        if self._header_lines > MAX_HEADER_LINES or self._header_bytes > MAX_HEADER_BYTES:
            self._fail(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _TOO_LARGE)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._progress = True
        if len(self.pipeline) >= MAX_PIPELINED:
            why = f"more than {MAX_PIPELINED} requests wait for the response to an earlier one"
            self._fail(HTTPStatus.TOO_MANY_REQUESTS, why)
        self._limits.idle.pop(self, None)
        self._stop_head_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._progress = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._progress = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last and not self.transport.is_closing():
            self._limits.idle[self] = None

    def _fail(self, status: HTTPStatus, why: str) -> None:
        """Stop the parser by an exception, upon which uvicorn calls `send_400_response`."""
        self._refusal = status, why
        raise ValueError(why)

    def send_400_response(self, msg: str) -> None:
        self._refuse(*(self._refusal or (HTTPStatus.BAD_REQUEST, msg)))

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """Respond without the app, unless the response to an earlier request is due, and close."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle or not (self.pipeline or self.cycle.response_started):
            body = b'{"error_code":%d,"message":"%b"}' % (status, why.encode())
            retry = b"".join(b"%b: %b\r\n" % (k.encode(), v.encode()) for k, v in retry_after(status).items())
            self.transport.write(
                b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
                b"%bconnection: close\r\n\r\n%b" % (status, status.phrase.encode(), len(body), retry, body)
            )
        self.transport.close()

    def _start_head_timer(self) -> None:
        """Limit the time for the whole head of the next request, however many bytes arrive meanwhile."""
        if self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self._limits.head_timeout_s, self.transport.close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
