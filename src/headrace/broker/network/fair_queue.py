"""Fair queueing: connections share the event loop by time, and one that uses little of it does not wait.

One iteration of an event loop would otherwise handle everything that has arrived on every connection, and a
small request would wait for megabytes of other clients. As in fair queueing of networks (fq_codel), time is
counted in rounds. A connection that has used less than a quantum in the current round is handled as soon as
its bytes arrive. One that has used more waits in a queue, and is not read from meanwhile; a round ends when
everybody who was in the queue at its beginning has had a turn. An iteration of the loop gives turns until a
quantum is used up.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

QUANTUM_S: Final = 0.0005
"""The time of a connection in a round, and of all waiting connections in an iteration of the event loop.

A turn may take longer by one request, and by a slice of a long one.
"""


class Waiting(Protocol):
    """A connection, as seen from here."""

    turn_round: int  # in which `turn_used_s` was counted
    turn_used_s: float

    def take_turn(self) -> bool:
        """Handle what has arrived, for a quantum, and read from the socket again; False if it is closed."""
        ...


class FairQueue:
    """The connections of one event loop. `call_soon` runs a function in its next iteration."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._queue: deque[tuple[int, Waiting]] = deque()  # with the round in which each has joined
        self._round = 0
        self._used_s = 0.0  # since the last iteration that gave turns
        self._is_planned = False  # the next iteration gives turns

    def has_turn(self, connection: Waiting) -> bool:
        """Return whether a connection may work now: nobody waits, or it has used little in this round."""
        return (
            not self._is_planned or connection.turn_round != self._round or connection.turn_used_s < QUANTUM_S
        )

    def charge(self, connection: Waiting, used_s: float) -> None:
        """Count time that a connection has used."""
        if connection.turn_round == self._round:
            connection.turn_used_s += used_s
        else:
            connection.turn_round, connection.turn_used_s = self._round, used_s
        self._used_s += used_s
        if self._used_s > QUANTUM_S and not self._is_planned:
            self._plan()

    def wait(self, connection: Waiting) -> None:
        """Call the connection's `take_turn` when it is its turn. It must not wait already."""
        self._queue.append((self._round, connection))
        if not self._is_planned:
            self._plan()

    def _plan(self) -> None:
        self._is_planned = True
        self._call_soon(self._give_turns)

    def _give_turns(self) -> None:
        """Give turns for a quantum. A connection that only reads on will use its time in this iteration."""
        self._used_s = 0.0
        if not self._queue:
            self._round += 1
            self._is_planned = False
            return
        while self._queue and self._used_s < QUANTUM_S:
            joined, connection = self._queue.popleft()
            if joined == self._round:
                self._round += 1
            used_s = self._used_s
            connection.turn_used_s = 0.0
            if connection.take_turn() and self._used_s == used_s:
                self._used_s += QUANTUM_S
        self._plan()
