"""The event loop that servers run on: uvloop's where there is one, else Python's."""

import asyncio
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """For `asyncio.Runner`."""
    try:
        import uvloop  # noqa: PLC0415  not on every platform
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
