"""Alerts of failed TLS handshakes, which tell clients why they are refused.

OpenSSL writes an alert to the buffer of outgoing bytes: "certificate expired", for example. asyncio and
uvloop close the connection of a failed handshake without sending that buffer, and the client would only know
that the connection was closed. An AlertingObject sends it.
"""

import contextlib
import socket
import ssl
from contextvars import ContextVar
from typing import Final

connection_of_handshake: Final[ContextVar[socket.socket | None]] = ContextVar(
    "connection_of_handshake", default=None
)
"""The connection of the task that performs a handshake, for the object that its context makes."""


class AlertingObject(ssl.SSLObject):
    """TLS of one connection, which sends the alert if the handshake fails."""

    _connection: socket.socket | None = None
    _outgoing: ssl.MemoryBIO | None = None

    def alert_by(self, outgoing: ssl.MemoryBIO) -> None:
        """Remember the buffer of outgoing bytes, and the connection of the current task."""
        self._outgoing, self._connection = outgoing, connection_of_handshake.get()

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self._connection is not None and self._outgoing is not None and self._outgoing.pending:
                with contextlib.suppress(OSError):  # the client is gone, or does not read: it gets no reason
                    self._connection.send(self._outgoing.read())
            raise
        self._connection = self._outgoing = None
