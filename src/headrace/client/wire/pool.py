"""Connections that threads share: a connection belongs to one thread while it is used, and is kept after."""

from collections.abc import Callable
from threading import Lock
from typing import Final, TypeVar
from weakref import finalize

from headrace.client.wire.connection import Address, Connection

MAX_KEPT: Final = 4  # idle connections to one broker

Answer = TypeVar("Answer")
Exchange = Callable[[Connection], Answer]
"""One request or several to a broker, and what their responses come to."""


class ConnectionPool:
    """Connections by address, for any number of threads."""

    def __init__(self, connect: Callable[[Address], Connection]) -> None:
        self._connect = connect
        self._lock = Lock()
        self._closed = False
        self._idle: dict[Address, list[Connection]] = {}
        finalize(self, _close, self._idle)  # for owners that are never closed

    def run(self, address: Address, exchange: Exchange[Answer], timeout_s: float) -> Answer:
        """Return what the exchange with the broker returns; NoAnswer if the broker does not answer."""
        connection = self.lease(address, timeout_s)
        try:
            answer = exchange(connection)
        except BaseException:
            connection.close()
            raise
        self.release(connection)
        return answer

    def lease(self, address: Address, timeout_s: float) -> Connection:
        """Return an idle connection, or a new one, which is the caller's until it is released or closed."""
        while True:
            with self._lock:
                idle = self._idle.get(address)
                connection = idle.pop() if idle else None
            if connection is None:
                connection = self._connect(address)
            elif connection.is_stale:  # the broker has closed it meanwhile
                connection.close()
                continue
            connection.timeout_s = timeout_s
            return connection

    def release(self, connection: Connection) -> None:
        """Keep a connection for the next caller. It is open, and no request is in flight."""
        with self._lock:
            idle = self._idle.setdefault(connection.address, [])
            if len(idle) < MAX_KEPT and not self._closed:
                idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the idle connections, and keep none any more."""
        with self._lock:
            self._closed = True
            _close(self._idle)


def _close(idle: dict[Address, list[Connection]]) -> None:
    for connections in idle.values():
        for connection in connections:
            connection.close()
    idle.clear()
