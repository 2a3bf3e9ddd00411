"""A connection from this broker to another one: requests out, responses back, in order."""

import asyncio
import logging
from collections import deque
from itertools import count
from typing import Any, cast

from headrace.controller.channel import PeerGone
from headrace.protocol.api import response_class
from headrace.protocol.buffer_pool import BufferPool
from headrace.protocol.errors import ProtocolError
from headrace.protocol.frame import FrameBuffer, encode_frame
from headrace.protocol.headers import decode_response_header, encode_request_header
from headrace.protocol.message import Message
from headrace.protocol.schema.request_header import RequestHeader
from headrace.security.listeners import Endpoint, SecurityProtocol

MAX_RESPONSE_BYTES = 256 * 1024 * 1024
CONNECT_TIMEOUT_S = 3.0

logger = logging.getLogger(__name__)


class _Asked:
    __slots__ = ("correlation_id", "future", "key", "version")

    def __init__(self, key: int, version: int, correlation_id: int, future: "asyncio.Future[Any]") -> None:
        self.key, self.version, self.correlation_id, self.future = key, version, correlation_id, future


class Peer(asyncio.BufferedProtocol):
    """One connection. Several requests may be under way; answers come in the order of the questions."""

    def __init__(self, client_id: str, pool: BufferPool | None = None) -> None:
        self._client_id = client_id
        self._frames = FrameBuffer(MAX_RESPONSE_BYTES, pool)
        self._asked: deque[_Asked] = deque()
        self._ids = count(1)
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[None] = self._loop.create_future()

    @classmethod
    async def connect(cls, endpoint: Endpoint, client_id: str, pool: BufferPool | None = None) -> "Peer":
        """Return a connection to the broker at `endpoint`, or raise PeerGone."""
        if endpoint.security_protocol is not SecurityProtocol.PLAINTEXT:
            raise PeerGone(f"{endpoint}: {endpoint.security_protocol.name} is not supported yet")
        loop = asyncio.get_running_loop()
        try:
            # Not `wait_for`: in Python 3.11 it may lose the cancellation of whoever waits.
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, peer = await loop.create_connection(
                    lambda: cls(client_id, pool), endpoint.host, endpoint.port
                )
        except (OSError, TimeoutError) as error:
            raise PeerGone(f"{endpoint} cannot be reached: {error or 'no answer'}") from error
        return peer

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    async def closed(self) -> None:
        """Return when the connection has ended."""
        await asyncio.shield(self._gone)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def ask(self, request: Message, version: int, *, timeout_s: float | None = None) -> Any:
        """The response to `request`; PeerGone if the connection ends before it comes, or in `timeout_s`."""
        if self._transport is None:
            raise PeerGone("the connection has ended")
        key = request.__api_key__
        assert key is not None, request
        correlation_id = next(self._ids)
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=self._client_id,
        )
        future: asyncio.Future[Any] = self._loop.create_future()
        self._asked.append(_Asked(key, version, correlation_id, future))
        self._transport.writelines(encode_frame(encode_request_header(header), request.encode(version)))
        if timeout_s is None:
            return await future
        timer = self._loop.call_later(timeout_s, self._give_up, future, timeout_s)
        try:
            return await future
        finally:
            timer.cancel()

    def _give_up(self, future: "asyncio.Future[Any]", timeout_s: float) -> None:
        if not future.done():
            future.set_exception(PeerGone(f"no answer within {timeout_s} s"))
            self.close()  # answers come in order: one that is late would be taken for the next

    # -- what the event loop calls -------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._frames.release()
        if not self._gone.done():
            self._gone.set_result(None)
        for asked in self._asked:
            if not asked.future.done():
                asked.future.set_exception(PeerGone(f"the connection has ended: {exc or 'closed'}"))
        self._asked.clear()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._frames.received(nbytes):
                self._answer(frame)
            self._frames.settle()
        except (ProtocolError, IndexError) as error:
            logger.warning("closing a connection to another broker: %s", error)
            self.close()

    def _answer(self, frame: memoryview) -> None:
        asked = self._asked.popleft()
        correlation_id, body = decode_response_header(asked.key, asked.version, frame)
        if correlation_id != asked.correlation_id:
            raise ProtocolError(f"response {correlation_id} to request {asked.correlation_id}")
        response = response_class(asked.key).decode(body, asked.version)
        if not asked.future.done():
            asked.future.set_result(response)
