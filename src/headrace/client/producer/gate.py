"""A gate that lets a flush complete while other threads send.

librdkafka says how many records wait, not which, and partitions overtake one another. Those that were sent
before a flush are surely gone when none waits at all, which may never be seen if others keep sending. So
a flush shuts this gate as soon as no more wait than were sent since it began, and whoever sends is told what
a full buffer would tell: wait.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, get_ident
from typing import Any, NoReturn

from headrace.client.errors import Closed

Produce = Callable[..., Any]


class Gate:
    """Swaps the function that a producer sends by, so that an open gate costs nothing."""

    def __init__(self, produce: Produce, put: Callable[[Produce], None]) -> None:
        """`produce` is librdkafka's; `put` has the producer send by another function from now on."""
        self._produce, self._put = produce, put
        self._inside: list[int] = []  # threads that flush; what they are told of may have them send again
        self._opened = Event()
        self._opened.set()
        self._ended = False
        self._lock = Lock()
        put(produce)

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Close the gate for all other threads."""
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
        """Close the gate for ever; returns False if it was so already."""
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
            raise BufferError("a flush comes to its end")
        self._produce(*record)


def _closed(*_record: object) -> NoReturn:
    raise Closed("producer")
