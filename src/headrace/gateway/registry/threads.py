"""Threads for requests that wait for the registry, apart from the threads of other routes.

A request of the registry waits for its lock, perhaps while a cluster does not answer. FastAPI runs every
plain `def` in one of forty threads; forty requests that wait for the registry would block all other routes.
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

_limiter: RunVar[CapacityLimiter] = RunVar("registry threads")  # one for each event loop


async def in_registry_thread(call: Callable[[], Answer]) -> Answer:
    """Return the result of `call` in one of the registry's threads."""
    return await to_thread.run_sync(call, limiter=registry_threads())


def registry_threads() -> CapacityLimiter:
    """Return the limiter of the registry's threads in this event loop."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = CapacityLimiter(THREADS)
        _limiter.set(limiter)
        return limiter


def run_in_registry_thread(endpoint: Callable[P, Any]) -> Callable[P, Coroutine[Any, Any, Any]]:
    """Return a route's function as a coroutine that runs in one of the registry's threads."""
    if iscoroutinefunction(endpoint):
        return endpoint

    @wraps(endpoint)
    async def run(*args: P.args, **kwargs: P.kwargs) -> Any:
        return await in_registry_thread(partial(endpoint, *args, **kwargs))

    return run
