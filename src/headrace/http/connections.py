"""The gateway's connections: how many there may be, and how long one may keep a request to itself."""

import asyncio
import logging
import math
import resource
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from headrace.http.settings import GatewaySettings

RESERVED_FILES: Final = 200  # for connections to brokers, and whatever else is open for a moment
TELL_S: Final = 60.0  # between two warnings that there are too many
_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

logger = logging.getLogger(__name__)


class Config(uvicorn.Config):
    """Uvicorn's, with the limits of our connections and what they have in common."""

    def __init__(self, app: ASGIApp, settings: GatewaySettings, **given: Any) -> None:
        super().__init__(app, http=Connection, **given)
        self.patience_s = settings.patience_s
        self.most = min(settings.max_connections, _room())
        self._told = -math.inf

    def tell_that_it_is_full(self, now: float) -> None:
        """Warn, now and then."""
        if now - self._told >= TELL_S:
            self._told = now
            logger.warning("refusing connections: there are %d, which is as many as there may be", self.most)


class Connection(HttpToolsProtocol):
    """One that is closed if the next request does not come, or comes too slowly."""

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

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= self._limits.most:
            self._limits.tell_that_it_is_full(self.loop.time())
            self.transport = transport
            transport.write(_FULL)
            transport.close()
            return
        super().connection_made(transport)
        self._wait_for_a_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait_for_a_request()  # a part of one, which ends uvicorn's own waiting

    def on_headers_complete(self) -> None:
        self._wait_no_more()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait_for_a_request(self) -> None:
        """For one altogether: those who send a letter now and then are not waited for any longer."""
        if self._waiting is None and not self.transport.is_closing():
            self._waiting = self.loop.call_later(self._limits.patience_s, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def _room() -> int:
    """As many as leave us some files of those that we may open."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return 2**31
    return max(limit // 2, limit - RESERVED_FILES)
