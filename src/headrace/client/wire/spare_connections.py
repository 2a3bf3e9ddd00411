"""Connections that threads share: each is one thread's while it asks, and kept for whoever asks next."""

from collections.abc import Callable
from threading import Lock
from typing import Final, TypeVar
from weakref import finalize

from headrace.client.wire.connection import Address, Connection, NoAnswer

SPARE: Final = 4  # connections that are kept for each broker

Answer = TypeVar("Answer")
Talk = Callable[[Connection], Answer]
"""One request or several to a broker, and what their answers come to."""


class SpareConnections:
    """For any number of threads."""

    def __init__(self, connect: Callable[[Address], Connection]) -> None:
        self._connect = connect
        self._lock = Lock()
        self._closed = False
        self._spare: dict[Address, list[Connection]] = {}
        finalize(self, _close, self._spare)  # for those who do not say when they are done

    def ask(self, address: Address, talk: Talk[Answer]) -> Answer:
        """What the broker answers; NoAnswer if it does not. It may be asked twice, so ask what may be.

        A connection that was kept may be to a broker that has been restarted since: that shows at once, and
        then a new one has the last word. Who is silent is not asked again.
        """
        kept = self._kept(address)
        if kept is not None:
            try:
                return self._talk(kept, talk)
            except NoAnswer as error:
                if isinstance(error.__cause__, TimeoutError):
                    raise
                self._drop(address)  # the others are as old
        return self._talk(self._connect(address), talk)

    def close(self) -> None:
        """Keep none any more."""
        with self._lock:
            self._closed = True
            _close(self._spare)

    def _talk(self, connection: Connection, talk: Talk[Answer]) -> Answer:
        try:
            answer = talk(connection)
        except BaseException:
            connection.close()
            raise
        with self._lock:
            spare = self._spare.setdefault(connection.address, [])
            if len(spare) < SPARE and not self._closed:
                spare.append(connection)
                return answer
        connection.close()
        return answer

    def _kept(self, address: Address) -> Connection | None:
        with self._lock:
            spare = self._spare.get(address)
            return spare.pop() if spare else None

    def _drop(self, address: Address) -> None:
        with self._lock:
            dropped = self._spare.pop(address, [])
        for connection in dropped:
            connection.close()


def _close(spare: dict[Address, list[Connection]]) -> None:
    for connections in spare.values():
        for connection in connections:
            connection.close()
    spare.clear()
