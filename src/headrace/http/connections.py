"""The gateway's connections: how many there may be, and how large and slow the head of a request."""

import asyncio
import logging
import math
import resource
from http import HTTPStatus
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from headrace.http.settings import GatewaySettings
from headrace.http.unanswered import Unanswered

MAX_HEADER_LINES: Final = 100  # of a request, trailers included
MAX_HEADER_BYTES: Final = 64 * 1024  # of all of them together
MAX_TARGET_BYTES: Final = 64 * 1024  # of the request line; `from=` of a search names every partition
MAX_PIPELINED: Final = 32  # requests that are sent before the one ahead of them is answered
RETRY_AFTER_S: Final = 1
RESERVED_FILES: Final = 200  # for connections to brokers, and whatever else is open for a moment
WARN_EVERY_S: Final = 60.0

logger = logging.getLogger(__name__)


class Config(uvicorn.Config):
    """Uvicorn's, with the limits of our connections and what they have in common."""

    def __init__(self, app: ASGIApp, settings: GatewaySettings, **given: Any) -> None:
        super().__init__(app, http=Connection, ws="none", **given)
        self.patience_s = settings.patience_s
        self.most = min(settings.max_connections, _room())
        self.unanswered = Unanswered[Connection]()
        self._warned = -math.inf

    def make_room(self) -> bool:
        """Close the oldest connection that waits for the rest of a request; False if there is none."""
        while (oldest := self.unanswered.evict()) is not None:
            if oldest.give_way():
                return True
        return False

    def warn_that_it_is_full(self, now: float) -> None:
        """Log a warning, at most once every WARN_EVERY_S seconds."""
        if now - self._warned >= WARN_EVERY_S:
            self._warned = now
            logger.warning(
                "all %d connections are in use (max_connections): closing the oldest that has not sent a "
                "whole request, or refusing new ones with 503 where all have",
                self.most,
            )


class Connection(HttpToolsProtocol):
    """A connection that is closed if the next request does not come, or comes too slowly.

    It is *unanswered* while it has not sent a whole request, head and body. When there are too many
    connections, an unanswered one makes room for a new one.
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
        self._waiting: asyncio.TimerHandle | None = None
        self._refusal: tuple[HTTPStatus, str] | None = None
        self._header_lines = self._header_bytes = 0
        self._unparsed_bytes = 0  # received since the parser last had something to tell
        self._progress = False

    # -- how many there are --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= self._limits.most:
            self._limits.warn_that_it_is_full(self.loop.time())
            if not self._limits.make_room():
                self.transport = transport
                self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "all connections are in use: try again later")
                return
        super().connection_made(transport)
        self._limits.unanswered.add(self, self._peer)
        self._wait_for_a_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        self._limits.unanswered.discard(self, self._peer)
        super().connection_lost(exc)

    def give_way(self) -> bool:
        """Close; False if its answer is under way, as that of a stream is before the request has ended."""
        if self.cycle is not None and not self.cycle.response_complete and self.cycle.response_started:
            return False
        self.connections.discard(self)
        if self._has_a_part():
            self._refuse(
                HTTPStatus.SERVICE_UNAVAILABLE, "the request was not complete when others needed room"
            )
        else:
            self.transport.close()
        return True

    def _has_a_part(self) -> bool:
        """Whether it has sent a part of a request that is not answered."""
        if self.cycle is None or self.cycle.response_complete:
            return self._waiting is not None and self.headers is not None
        return True

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    # -- what is received ----------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._progress = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        self._unparsed_bytes = 0 if self._progress else self._unparsed_bytes + len(data)
        if self._unparsed_bytes > MAX_HEADER_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _TOO_LARGE)
        elif self.cycle is None or self.cycle.response_complete:
            self._wait_for_a_request()  # a part of one, which ends uvicorn's own waiting

    def on_message_begin(self) -> None:
        self._header_lines = self._header_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._progress = True
        super().on_url(url)
        self._check(len(self.url) <= MAX_TARGET_BYTES, HTTPStatus.REQUEST_URI_TOO_LONG, _TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._progress = True
        self._header_lines += 1
        self._header_bytes += len(name) + len(value)
        within = self._header_lines <= MAX_HEADER_LINES and self._header_bytes <= MAX_HEADER_BYTES
        self._check(within, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _TOO_LARGE)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._progress = True
        self._check(len(self.pipeline) < MAX_PIPELINED, HTTPStatus.TOO_MANY_REQUESTS, _TOO_MANY)
        self._wait_no_more()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._progress = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._progress = True
        if not self.cycle.response_complete:
            self._limits.unanswered.discard(self, self._peer)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        is_next_complete = not self.cycle.response_complete and not self.cycle.more_body
        if not self.pipeline and not is_next_complete and not self.transport.is_closing():
            self._limits.unanswered.add(self, self._peer)

    # -- what is refused -----------------------------------------------------------------------

    def _check(self, holds: bool, status: HTTPStatus, why: str) -> None:
        """Stop the parser if a limit is exceeded: uvicorn then calls `send_400_response`."""
        if not holds:
            self._refusal = status, why
            raise ValueError(why)

    def send_400_response(self, msg: str) -> None:
        self._refuse(*(self._refusal or (HTTPStatus.BAD_REQUEST, msg)))

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """Answer without the app, unless the answer to an earlier request is due, and close."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle or not (self.pipeline or self.cycle.response_started):
            body = b'{"error_code":%d,"message":"%b"}' % (status, why.encode())
            retry = b"retry-after: %d\r\n" % RETRY_AFTER_S if status in _PASSING else b""
            self.transport.write(
                b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
                b"%bconnection: close\r\n\r\n%b" % (status, status.phrase.encode(), len(body), retry, body)
            )
        self.transport.close()

    def _wait_for_a_request(self) -> None:
        """Start the clock for all of the next head: sending a byte now and then does not restart it."""
        if self._waiting is None and not self.transport.is_closing():
            self._waiting = self.loop.call_later(self._limits.patience_s, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


_PASSING: Final = frozenset({HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS})
_TOO_LARGE: Final = (
    f"the request has more than {MAX_HEADER_LINES} header lines or {MAX_HEADER_BYTES} bytes in them"
)
_TOO_LONG: Final = f"the request line has more than {MAX_TARGET_BYTES} bytes"
_TOO_MANY: Final = f"more than {MAX_PIPELINED} requests were sent before the one ahead of them was answered"


def _room() -> int:
    """As many as leave us some files of those that we may open."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return 2**31
    return max(limit // 2, limit - RESERVED_FILES)
