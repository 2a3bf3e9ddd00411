"""A world with a clock of its own: what happens next is the next event, and chance is a seed.

Everything in it runs on event loops that read this clock, one for each process. A step is one callback of
one process; between two steps nothing changes. So a run is the same every time, and takes as long as its
callbacks do.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from heapq import heappop, heappush
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulation.process import Process

_START_S = 1000.0  # a clock that begins at 0 would hide what is due at once


class Violation(AssertionError):
    """Something that must never be."""


class Crash(Violation):
    """A program has fallen over: an exception that nobody expected."""


class Event:
    """A callback to come; what asyncio calls a handle."""

    __slots__ = ("_args", "_callback", "_context", "is_cancelled", "process", "when_s")

    def __init__(
        self,
        process: "Process",
        when_s: float,
        callback: Callable[..., Any],
        args: Any,
        context: Context | None = None,
    ) -> None:
        self.process = process
        self.when_s = when_s
        self._callback = callback
        self._args = args
        self._context = copy_context() if context is None else context
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.when_s

    def happen(self) -> None:
        self._context.run(self._callback, *self._args)


class World:
    """The clock, the events to come, and chance."""

    def __init__(self, seed: int, *, traced: bool = False) -> None:
        self.now = _START_S
        self.random = Random(seed)
        self.is_traced = traced
        self.steps = 0
        self.trace: list[str] = []
        # What dead processes were about to do. Were it freed, Python would let it clean up after itself.
        self.graveyard: list[object] = []
        self.processes: dict[object, object] = {}  # by identity
        self.stagings: dict[object, object] = {}  # directories of seeds, by path
        self._number = 0
        self._ready: deque[Event] = deque()
        self._queue: list[tuple[float, int, Event]] = []

    def put(self, event: Event) -> None:
        """Have `event` happen at its time, after all that were put there before."""
        if event.when_s <= self.now:
            self._ready.append(event)
        else:
            self._number += 1
            heappush(self._queue, (event.when_s, self._number, event))

    def run_for(self, duration_s: float) -> None:
        """Let happen what happens in that time."""
        until = self.now + duration_s
        while True:
            while self._ready:
                self._step(self._ready.popleft())
            if not self._queue or self._queue[0][0] > until:
                self.now = until
                return
            self.now, _, event = heappop(self._queue)
            self._step(event)

    def _step(self, event: Event) -> None:
        process = event.process
        if event.is_cancelled or not process.is_alive:
            self.graveyard.append(event)
            return
        if process.is_paused:
            process.stalled.append(event)
            return
        self.steps += 1
        asyncio._set_running_loop(process.loop)
        try:
            event.happen()
        finally:
            asyncio._set_running_loop(None)
        process.after_step()

    def say(self, who: str, what: str, *values: object) -> None:
        """Add a line to the trace; the text is only made when somebody will read it."""
        if self.is_traced:
            self.trace.append(f"{self.now - _START_S:9.4f} {who:>4} {what % values if values else what}")
