"""All connections of a broker: how many there may be, and how much memory they may hold."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from headrace.broker.network.descriptors import room_for_connections
from headrace.broker.quotas.client_quotas import ClientQuotas
from headrace.broker.quotas.connection_rates import ConnectionRates
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.frame import CHUNK_BYTES
from headrace.security.listeners import Listener

_QUIET_S: Final = 1.0  # after which a connection gives its receive buffer back
_LOGGED_EVERY_S: Final = 1.0  # refused connections: a flood of them must not fill the log
AUTHENTICATION_S: Final = 30.0  # for all messages of SASL: a client that drips them is not idle
HELD_SHARE: Final = 4  # throttled clients may hold a quarter of queued.max.request.bytes
REPLIES_BYTES: Final = 256 * 1024 * 1024  # of unsent responses, over all connections, before Fetches get less

logger = logging.getLogger(__name__)


class ClientConnection(Protocol):
    """A connection as seen from here."""

    listener: Listener
    address: str
    client_id: str | None
    last_active: float
    authenticating_since: float | None  # None: the client has authenticated, or need not
    buffered: int  # bytes of its receive buffer
    held: int  # bytes of a request that waits until its client is no longer throttled
    unsent: int  # bytes of unsent responses that are accounted for

    @property
    def unsent_now(self) -> int: ...

    def rest(self) -> None: ...

    def mute(self, duration_ms: int) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class Connections:
    """The connections of a broker, and their memory. `open_logs` returns how many logs there are."""

    def __init__(self, config: BrokerConfig, open_logs: Callable[[], int], quotas: ClientQuotas) -> None:
        self._open_logs = open_logs
        self._rates = ConnectionRates(config, quotas)
        self._connections: set[ClientConnection] = set()
        self._per_address: Counter[str] = Counter()
        self._per_listener: Counter[str] = Counter()
        self._logged_s, self._unlogged = float("-inf"), 0  # refused connections
        self.use_config(config)
        self._buffered = 0  # bytes of all receive buffers
        self._unsent = 0  # bytes of all unsent responses
        self._held = 0  # bytes of all requests that wait until their clients are no longer throttled

    def __len__(self) -> int:
        return len(self._connections)

    def all(self) -> tuple[ClientConnection, ...]:
        return tuple(self._connections)

    def use_config(self, config: BrokerConfig) -> None:
        """Apply changed broker settings to the next connections."""
        self._config = config
        self._connections_by_address = config.connections_by_address
        self._by_listener = {
            each.name: config.of_listener(each.name, "max.connections") for each in config.listeners
        }
        self._rates.use_config(config)

    def admit(self, connection: ClientConnection) -> bool:
        """Add a connection, unless there are too many; it is muted if connections are created too fast."""
        why = self._why_refused(connection)
        if why is None:
            now_ms = int(time.monotonic() * 1000)
            delay_ms = self._rates.delay_ms(connection.listener, connection.address, now_ms)
            if delay_ms is not None:
                self._connections.add(connection)
                self._per_address[connection.address] += 1
                self._per_listener[connection.listener.name] += 1
                if delay_ms:
                    connection.mute(delay_ms)
                return True
            why = "connections are created too fast (max.connection.creation.rate, or a quota of the address)"
        self._log_refusal(connection.address, why)
        return False

    def _why_refused(self, connection: ClientConnection) -> str | None:
        """Return which limit on the number of connections is reached, or None."""
        address, listener = connection.address, connection.listener
        limit = self._connections_by_address.get(address, self._config.integer("max.connections.per.ip"))
        is_protected = listener.is_inter_broker and len(self._by_listener) > 1  # as in Kafka
        if len(self._connections) >= self._config.integer("max.connections") and not is_protected:
            return "max.connections is reached"
        of_listener = self._by_listener.get(listener.name)
        if isinstance(of_listener, int) and self._per_listener[listener.name] >= of_listener:
            return f"max.connections of listener {listener.name} is reached"
        if len(self._connections) >= room_for_connections(self._open_logs()):
            return "the limit of open files is too low for more connections"
        if self._per_address[address] >= limit:
            return "max.connections.per.ip is reached"
        return None

    def _log_refusal(self, address: str, why: str) -> None:
        """Log a refused connection, and how many others were refused since the last one that was logged."""
        now_s = time.monotonic()
        if now_s - self._logged_s < _LOGGED_EVERY_S:
            self._unlogged += 1
            return
        others = f" ({self._unlogged} others were refused before)" if self._unlogged else ""
        logger.warning("refusing a connection from %s: %s%s", address, why, others)
        self._logged_s, self._unlogged = now_s, 0

    def forget(self, connection: ClientConnection) -> None:
        """Remove a connection that has ended."""
        if connection in self._connections:
            self._connections.remove(connection)
            self._per_listener[connection.listener.name] -= 1
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

    def hold(self, connection: ClientConnection, size: int) -> None:
        """Record the size of a request that waits; abort the connection if all of them are too large."""
        self._held += size - connection.held
        connection.held = size
        if size and self._held > self._config.integer("queued.max.request.bytes") // HELD_SHARE:
            self._log_refusal(connection.address, "requests of throttled clients hold too much memory")
            connection.abort()

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
        """Close connections that were idle for connections.max.idle.ms, or take long to authenticate."""
        now = asyncio.get_running_loop().time()
        limit = now - self._config.integer("connections.max.idle.ms") / 1000
        for connection in self.all():
            began = connection.authenticating_since
            if connection.last_active < limit:
                connection.close()
            elif began is not None and began < now - AUTHENTICATION_S:
                self._log_refusal(connection.address, f"no authentication within {AUTHENTICATION_S:g} s")
                connection.abort()

    def close_all(self) -> None:
        for connection in self.all():
            connection.close()
