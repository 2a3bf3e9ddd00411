"""Long computations in slices of time, between which the event loop serves other requests.

A computation whose length depends on a request is a generator that yields every few elements. It runs until
its slice is used up. Most requests complete within their first slice, without a task.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Any, Final, Generic, TypeVar

SLICE_S: Final = 0.002
"""How long one computation may hold the event loop."""

STEP: Final = 16
"""The number of elements between two yields, where an element takes some microseconds."""

FREED_TOGETHER: Final = 500
"""Structs of a message that are freed in one step; 100,000 of them take up to 40 ms."""

K = TypeVar("K")
S = TypeVar("S")
T = TypeVar("T")
Steps = Generator[None, None, T]
"""A computation that yields where it may be interrupted, and returns its result."""


class Sliced(Generic[T]):
    """A computation in progress; `run` continues it for a slice."""

    __slots__ = ("_steps", "result")

    result: T

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps

    def run(self) -> bool:
        """Continue for one slice; return whether the computation is complete and `result` is set."""
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
        """Run to the end, yielding to the event loop after each slice."""
        while not self.run():  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(0)
        result = self.result
        del self.result  # a large response is freed in steps, before this computation is
        return result


def each(function: Callable[[S], T], items: Iterable[S], step: int = STEP) -> Steps[list[T]]:
    """Return `function(item)` for all items, yielding first and after every `step` items.

    It also yields if there are no items: a request may have very many empty lists.
    """
    yield
    results = []
    for number, item in enumerate(items, start=1):
        results.append(function(item))
        if not number % step:
            yield
    return results


def keyed(key: Callable[[S], K], items: Iterable[S]) -> Steps[dict[K, S]]:
    """Return the last item of each key, in the order of the first ones, with yields as in `each`."""
    last = {}
    for number, item in enumerate(items):
        if not number % STEP:
            yield
        last[key(item)] = item
    return last


def grouped(key: Callable[[S], K], items: Iterable[S]) -> Steps[dict[K, list[S]]]:
    """Return the items of each key, with yields as in `each`."""
    groups: dict[K, list[S]] = {}
    for number, item in enumerate(items):
        if not number % STEP:
            yield
        groups.setdefault(key(item), []).append(item)
    return groups


async def in_slices(steps: Steps[T]) -> T:
    """Return the result of `steps`, yielding to the event loop after each slice."""
    return await Sliced(steps).finish()


def at_once(steps: Steps[T]) -> T:
    """Return the result of `steps` without interruption, for a computation that is known to be short."""
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        result: T = stop.value
        return result


def free(structs: list[Any]) -> Steps[None]:
    """Empty a list in steps."""
    while structs:
        del structs[-FREED_TOGETHER:]
        yield


def free_later(structs: list[Any], loop: asyncio.AbstractEventLoop) -> None:
    """Empty a list, one step in each iteration of the event loop."""
    del structs[-FREED_TOGETHER:]
    if structs:
        loop.call_soon(free_later, structs, loop)


class Turns:
    """Slices for loops that await; awaitables that complete at once would never yield to the event loop."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + SLICE_S

    async def next(self) -> None:
        """Yield to the event loop if the slice is used up."""
        if time.perf_counter() >= self._until:
            await asyncio.sleep(0)
            self._until = time.perf_counter() + SLICE_S


async def one_by_one(function: Callable[[S], Awaitable[T]], items: Iterable[S]) -> list[T]:
    """Return `await function(item)` for all items; others have their turns in between."""
    results, turns = [], Turns()
    for item in items:
        results.append(await function(item))
        await turns.next()
    return results
