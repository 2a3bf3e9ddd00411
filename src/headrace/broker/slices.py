"""Long work in slices: the event loop serves others in between.

Work that grows with what a client sends is a generator that yields every few elements. Who runs it goes on
until a slice of time is used up. Most requests are done within their first slice, at once and without a task.
"""

import asyncio
import gc
import inspect
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from types import GeneratorType
from typing import Any, Final, Generic, TypeVar

SLICE_S: Final = 0.004
"""How long one piece of work may hold the event loop."""

STEP: Final = 16
"""Elements between two steps, where each may take some microseconds."""

S = TypeVar("S")
T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that yields where others may have their turn, and returns its result."""


class Sliced(Generic[T]):
    """Work that is under way: `run` goes on with it for a slice."""

    __slots__ = ("_steps", "result")

    result: T

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps

    def run(self) -> bool:
        """Go on for a slice. Returns whether the work is done; then there is a `result`."""
        clock = time.perf_counter
        until = clock() + SLICE_S
        step = self._steps.__next__
        try:
            step()
            while clock() < until:
                step()
        except StopIteration as stop:
            self.result = stop.value
            return True
        return False

    async def finish(self) -> T:
        """Go on to the end; others have their turn after each slice."""
        while not self.run():  # noqa: ASYNC110  there is nothing to wait for
            await asyncio.sleep(0)
        return self.result


def each(function: Callable[[S], T], items: Iterable[S]) -> Steps[list[T]]:
    """What `function` makes of each of `items`, a step for every few of them."""
    results = []
    for number, item in enumerate(items):
        if not number % STEP:
            yield
        results.append(function(item))
    return results


async def in_slices(steps: Steps[T]) -> T:
    """The result of `steps`; others have their turn after each slice."""
    return await Sliced(steps).finish()


def at_once(steps: Steps[T]) -> T:
    """The result of `steps`, without a pause: for work that is known to be short."""
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        result: T = stop.value
        return result


@contextmanager
def without_collections() -> Iterator[None]:
    """Have no garbage collected while a large message is in memory: each pass looks at all of its objects.

    Messages have no cycles, so they go without one. For one at a time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


async def completed(result: Any) -> Any:
    """The reply that a handler's result leads to: itself, or what its steps return, or what it awaits."""
    if isinstance(result, GeneratorType):
        result = await in_slices(result)
    return await result if inspect.isawaitable(result) else result


class Turns:
    """For loops that await: what they await may be done at once, and then nobody else has had a turn."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + SLICE_S

    async def next(self) -> None:
        """Let others have their turn if the slice is used up."""
        if time.perf_counter() >= self._until:
            await asyncio.sleep(0)
            self._until = time.perf_counter() + SLICE_S
