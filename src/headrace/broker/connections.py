"""All connections of a broker: how many there may be, and how much memory they may hold."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from headrace.broker.config import BrokerConfig
from headrace.broker.descriptors import room_for_connections
from headrace.protocol.frame import CHUNK_BYTES

_QUIET_S: Final = 1.0  # after which a connection gives its receive buffer back
REPLIES_BYTES: Final = 256 * 1024 * 1024  # of unsent responses, over all connections, before Fetches get less

logger = logging.getLogger(__name__)


class ClientConnection(Protocol):
    """A connection as seen from here."""

    address: str
    client_id: str | None
    last_active: float
    buffered: int  # bytes of its receive buffer
    unsent: int  # bytes of unsent responses that are accounted for

    @property
    def unsent_now(self) -> int: ...

    def rest(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class Connections:
    """The connections of a broker, and their memory. `open_logs` returns how many logs hold open files."""

    def __init__(self, config: BrokerConfig, open_logs: Callable[[], int]) -> None:
        self._config = config
        self._open_logs = open_logs
        self._connections: set[ClientConnection] = set()
        self._per_address: Counter[str] = Counter()
        self._connections_by_address = config.connections_by_address
        self._buffered = 0  # bytes of all receive buffers
        self._unsent = 0  # bytes of all unsent responses

    def __len__(self) -> int:
        return len(self._connections)

    def all(self) -> tuple[ClientConnection, ...]:
        return tuple(self._connections)

    def use_config(self, config: BrokerConfig) -> None:
        """Apply changed broker settings to the next connections."""
        self._config = config
        self._connections_by_address = config.connections_by_address

    def admit(self, connection: ClientConnection) -> bool:
        """Add a connection, unless there are too many."""
        address = connection.address
        limit = self._connections_by_address.get(address, self._config.integer("max.connections.per.ip"))
        if len(self._connections) >= self._config.integer("max.connections"):
            why = "max.connections is reached"
        elif len(self._connections) >= room_for_connections(self._open_logs()):
            why = "the limit of open files is too low for more connections"
        elif self._per_address[address] >= limit:
            why = "max.connections.per.ip is reached"
        else:
            self._connections.add(connection)
            self._per_address[address] += 1
            return True
        logger.warning("refusing a connection from %s: %s", address, why)
        return False

    def forget(self, connection: ClientConnection) -> None:
        """Remove a connection that has ended."""
        if connection in self._connections:
            self._connections.remove(connection)
            self._per_address[connection.address] -= 1
            if not self._per_address[connection.address]:
                del self._per_address[connection.address]
        self._buffered -= connection.buffered
        connection.buffered = 0
        self._unsent -= connection.unsent
        connection.unsent = 0

    def account(self, connection: ClientConnection, buffered: int) -> None:
        """Record the size of a receive buffer; abort the connection if all of them together are too large.

        Otherwise many connections with half a large request each could fill the memory.
        """
        grows = buffered > connection.buffered
        self._buffered += buffered - connection.buffered
        connection.buffered = buffered
        limit = self._config.integer("queued.max.request.bytes")
        if grows and buffered > CHUNK_BYTES and self._buffered > limit:
            logger.warning(
                "closing the connection of %s: queued.max.request.bytes is reached", connection.address
            )
            # Not at once: uvloop is about to read into that buffer, and crashes if its transport is gone.
            asyncio.get_running_loop().call_soon(connection.abort)

    def account_replies(self, connection: ClientConnection) -> None:
        """Record how many bytes of responses the client has not received yet."""
        unsent = connection.unsent_now
        self._unsent += unsent - connection.unsent
        connection.unsent = unsent

    @property
    def holds_too_many_replies(self) -> bool:
        """Whether clients that do not read hold so much memory that Fetches have to return less."""
        if self._unsent <= REPLIES_BYTES:
            return False
        for connection in self._connections:  # the kernel may have taken some of it since
            self.account_replies(connection)
        return self._unsent > REPLIES_BYTES

    def rest_quiet(self) -> None:
        """Have connections that received nothing for a second give their receive buffers back."""
        limit = asyncio.get_running_loop().time() - _QUIET_S
        for connection in self._connections:
            if connection.last_active < limit:
                connection.rest()

    def close_idle(self) -> None:
        """Close connections that were idle for connections.max.idle.ms."""
        limit = asyncio.get_running_loop().time() - self._config.integer("connections.max.idle.ms") / 1000
        for connection in self.all():
            if connection.last_active < limit:
                connection.close()

    def close_all(self) -> None:
        for connection in self.all():
            connection.close()
