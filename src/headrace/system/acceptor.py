"""Accepts connections a few at a time, so that a burst of them does not hold up the event loop.

asyncio and uvloop accept all that wait: after a failover thousands of clients reconnect together, and clients
that are connected would wait until all of them have a connection.
"""

import asyncio
import contextlib
import logging
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

BACKLOG: Final = 1024
PER_ITERATION: Final = 8  # connections that are accepted in one iteration of the event loop
_RETRY_S: Final = 1.0  # after a failed accept, which means that there are too many open files

logger = logging.getLogger(__name__)


async def bind_all(host: str | None, port: int) -> list[socket.socket]:
    """Return sockets on all addresses of `host`, or of this machine; they do not listen yet."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    with contextlib.ExitStack() as on_error:
        sockets = []
        for family, kind, protocol, _name, address in dict.fromkeys(found):
            listening = on_error.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # IPv4 has its own socket
            try:
                listening.bind(address)
            except OSError as error:
                raise OSError(error.errno, f"cannot bind to {address}: {error.strerror}") from error
            sockets.append(listening)
        on_error.pop_all()
    return sockets


class Acceptor(ABC):
    """Accepts connections on bound sockets."""

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self.sockets = tuple(sockets)
        self._loop = asyncio.get_running_loop()

    async def start_serving(self) -> None:
        for listening in self.sockets:
            listening.setblocking(False)
            listening.listen(BACKLOG)
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Close the listening sockets, unless they are closed already."""
        for listening in self.sockets:
            if listening.fileno() >= 0:
                self._loop.remove_reader(listening)
                listening.close()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(PER_ITERATION):
            try:
                connection, _address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                logger.error("cannot accept a connection: %s", error)  # noqa: TRY400  the place is known
                self._loop.remove_reader(listening)
                self._loop.call_later(_RETRY_S, self._accept_again, listening)
                return
            connection.setblocking(False)
            with contextlib.suppress(OSError):  # not TCP
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted(connection)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            self._loop.add_reader(listening, self._accept, listening)

    @abstractmethod
    def _accepted(self, connection: socket.socket) -> None: ...


class PlainServer(Acceptor):
    """Serves connections without TLS; `make_protocol` is called for each."""

    def __init__(
        self, sockets: Sequence[socket.socket], make_protocol: Callable[[], asyncio.BaseProtocol]
    ) -> None:
        super().__init__(sockets)
        self._make_protocol = make_protocol
        self._connecting: set[asyncio.Task[None]] = set()

    def _accepted(self, connection: socket.socket) -> None:
        task = self._loop.create_task(self._connect(connection))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make_protocol, connection)
        except OSError as error:  # the client has closed the connection already
            logger.debug("a connection has ended before it began: %s", error)
            connection.close()
