"""A TLS server on an event loop that a burst of handshakes does not hold up.

A server's part of a handshake is a signature, up to a few milliseconds in which the event loop serves nobody.
asyncio begins it whenever a client's first message arrives, so 200 clients that connect together would hold
up all others for the sum of their handshakes. This server looks at what has arrived without reading it, and
starts a few handshakes in each iteration of the loop. A connection without a complete first message costs
a socket, for a limited time.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from headrace.system.acceptor import Acceptor
from headrace.system.line_limit import LineLimit
from headrace.system.tls_alerts import connection_of_handshake

HANDSHAKE_TIMEOUT_S: Final = 10.0  # from the connection to the first message, and from there to the end
PER_ITERATION: Final = 2  # handshakes that are started in one iteration of the event loop
MAX_STARTED: Final = 256  # handshakes whose next message the client may send at any time
MAX_WAITING: Final = 1000  # connections whose first message is incomplete; if there are more, the oldest ends
_PARTIAL_S: Final = 0.05  # until the next look at an incomplete message: the kernel would report it for ever
_HEADER_BYTES: Final = 5  # of a TLS record: its type, version and length
_HANDSHAKE: Final = 22  # the type of the record with a ClientHello

logger = logging.getLogger(__name__)


def first_message_is_complete(peeked: bytes) -> bool:
    """Return whether `peeked`, the first bytes of a connection, has a whole TLS record.

    Bytes that are no TLS count as complete: OpenSSL refuses them at once.
    """
    if not peeked or peeked[0] != _HANDSHAKE:
        return True
    if len(peeked) < _HEADER_BYTES:
        return False
    return len(peeked) >= _HEADER_BYTES + int.from_bytes(peeked[3:5], "big")


class TlsServer(Acceptor):
    """Serves connections with TLS; `make_protocol` is called once a handshake begins."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        make_protocol: Callable[[], asyncio.BaseProtocol],
        context: ssl.SSLContext,
    ) -> None:
        super().__init__(sockets)
        self._make_protocol = make_protocol
        self._context = context
        self._waiting: dict[socket.socket, asyncio.TimerHandle] = {}  # oldest first, with their deadlines
        self._partial: dict[socket.socket, asyncio.TimerHandle] = {}  # those whose bytes are looked at later
        self._ready: deque[socket.socket] = deque()
        self._started: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Handle | None = None
        self._log_limit = LineLimit()
        self.failures = 0

    def close(self) -> None:
        """Close the listening sockets, and all connections without a complete handshake."""
        super().close()
        for connection in list(self._waiting):
            self._drop(connection)
        for connection in self._ready:
            connection.close()
        self._ready.clear()
        for task in self._started:
            task.cancel()

    def _accepted(self, connection: socket.socket) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._drop(next(iter(self._waiting)))
        self._waiting[connection] = self._loop.call_later(HANDSHAKE_TIMEOUT_S, self._drop, connection)
        self._loop.add_reader(connection, self._arrived, connection)

    def _arrived(self, connection: socket.socket) -> None:
        """Look at the bytes that have arrived, without reading them."""
        try:
            peeked = connection.recv(_HEADER_BYTES, socket.MSG_PEEK)
            if len(peeked) == _HEADER_BYTES:
                whole = _HEADER_BYTES + int.from_bytes(peeked[3:5], "big")
                peeked = connection.recv(whole, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            peeked = b""
        if not peeked:
            self._drop(connection)
        elif first_message_is_complete(peeked):
            self._forget(connection)
            self._ready.append(connection)
            self._plan_turn()
        else:
            self._loop.remove_reader(connection)
            self._partial[connection] = self._loop.call_later(_PARTIAL_S, self._look_again, connection)

    def _look_again(self, connection: socket.socket) -> None:
        del self._partial[connection]
        self._loop.add_reader(connection, self._arrived, connection)

    def _forget(self, connection: socket.socket) -> None:
        self._waiting.pop(connection).cancel()
        later = self._partial.pop(connection, None)
        if later is not None:
            later.cancel()
        self._loop.remove_reader(connection)

    def _drop(self, connection: socket.socket) -> None:
        self._forget(connection)
        connection.close()
        self.failures += 1

    def _plan_turn(self) -> None:
        if self._turn is None and self._ready and len(self._started) < MAX_STARTED:
            self._turn = self._loop.call_soon(self._start_some)

    def _start_some(self) -> None:
        self._turn = None
        for _ in range(min(PER_ITERATION, len(self._ready), MAX_STARTED - len(self._started))):
            task = self._loop.create_task(self._handshake(self._ready.popleft()))
            self._started.add(task)
            task.add_done_callback(self._ended)
        self._plan_turn()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._started.discard(task)
        self._plan_turn()

    async def _handshake(self, connection: socket.socket) -> None:
        connection_of_handshake.set(connection)  # in the context of this task alone
        client = _address(connection)
        try:
            await self._loop.connect_accepted_socket(
                self._make_protocol, connection, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S
            )
            _acknowledge(connection)
        except OSError as error:  # of TLS as well: its errors are OSErrors
            self.failures += 1
            if self._log_limit.has_room():
                logger.info("the TLS handshake with %s has failed: %s", client, reason(error))
            connection.close()


def _acknowledge(connection: socket.socket) -> None:
    """Acknowledge the client's last message of the handshake at once.

    A client without TCP_NODELAY would wait for that with its first request, 40 ms.
    """
    if hasattr(socket, "TCP_QUICKACK"):  # Linux
        with contextlib.suppress(OSError):  # not TCP, or closed already
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def reason(error: OSError) -> str:
    """Return why a handshake has failed, in OpenSSL's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return str(error) or "the client has closed the connection"


def _address(connection: socket.socket) -> str:
    try:
        host, port, *_ = connection.getpeername()
    except (OSError, ValueError):  # the client is gone, or a UNIX socket
        return "an unknown client"
    return f"{host}:{port}"
