"""The threads in which requests wait for the registry: its own, so that others' do not run out.

Whoever asks the registry waits for its lock, and that may be for a cluster that does not answer. A plain
`def` runs in one of forty threads that all routes share; forty who wait would be all of them.
"""

from collections.abc import Callable, Coroutine
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, Final, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

THREADS: Final = 40

P = ParamSpec("P")
Answer = TypeVar("Answer")

_limiter: RunVar[CapacityLimiter] = RunVar("registry threads")  # an event loop has one


async def in_registry_thread(what: Callable[[], Answer]) -> Answer:
    """What comes of it, in a thread that only those share who ask the registry."""
    return await to_thread.run_sync(what, limiter=registry_threads())


def registry_threads() -> CapacityLimiter:
    """How many there are, and who waits for one."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = CapacityLimiter(THREADS)
        _limiter.set(limiter)
        return limiter


def in_its_threads(endpoint: Callable[P, Any]) -> Callable[P, Coroutine[Any, Any, Any]]:
    """The same, but that FastAPI does not choose the thread."""
    if iscoroutinefunction(endpoint):
        return endpoint

    @wraps(endpoint)
    async def asked(*args: P.args, **kwargs: P.kwargs) -> Any:
        return await in_registry_thread(partial(endpoint, *args, **kwargs))

    return asked
