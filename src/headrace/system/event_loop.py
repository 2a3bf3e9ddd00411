"""The event loop of servers: uvloop's if it is installed, otherwise asyncio's."""

import asyncio
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the loop factory for `asyncio.Runner`."""
    try:
        import uvloop  # noqa: PLC0415  not on every platform
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
