"""A gate that lets a flush complete while other threads send.

librdkafka reports how many records wait, not which, and partitions overtake one another. So the records of
before a flush are surely delivered only when no record waits, which may never happen while other threads
send. A flush therefore shuts this gate as soon as no more records wait than were sent since it began. Then
sending raises BufferError, as for a full buffer, and callers wait.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, get_ident
from typing import Any, NoReturn

from headrace.client.errors import Closed

Produce = Callable[..., Any]


class Gate:
    """Swaps the function that a producer calls for a record, so that an open gate costs nothing."""

    def __init__(self, produce: Produce, put: Callable[[Produce], None]) -> None:
        """`produce` is librdkafka's function; `put` replaces the function that the producer calls."""
        self._produce, self._put = produce, put
        self._inside: list[int] = []  # threads that flush, whose callbacks may send
        self._opened = Event()
        self._opened.set()
        self._ended = False
        self._lock = Lock()
        put(produce)

    def use(self, produce: Produce) -> None:
        """Replace the function behind the gate, at once if the gate is open."""
        with self._lock:
            self._produce = produce
            if self._opened.is_set():
                self._swap(produce)

    @contextmanager
    def shut(self) -> Iterator[None]:
        with self._lock:
            self._inside.append(get_ident())
            self._opened.clear()
            self._swap(self._refuse)
        try:
            yield
        finally:
            with self._lock:
                self._inside.remove(get_ident())
                if not self._inside:
                    self._swap(self._produce)
                    self._opened.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the gate is open; returns False if it is not closed."""
        if self._opened.is_set():
            return False
        self._opened.wait(timeout_s)
        return True

    def end(self) -> bool:
        """Close the gate for good; return False if it was closed for good already."""
        with self._lock:
            new = not self._ended
            self._swap(_closed)
            self._ended = True
        return new

    def _swap(self, produce: Produce) -> None:
        if not self._ended:
            self._put(produce)

    def _refuse(self, *record: Any) -> None:
        if get_ident() not in self._inside:
            raise BufferError("a flush waits for the last records")
        self._produce(*record)


def _closed(*_record: object) -> NoReturn:
    raise Closed("producer")
