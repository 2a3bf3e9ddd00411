"""Makes a ZooKeeper session depend on the event loop's progress.

kazoo pings from its own thread, so a process whose event loop is stuck would keep its session for ever.
Here the loop stores a timestamp several times per session timeout. While the last one is too old, kazoo's
thread neither pings nor reconnects, and the session expires as if the process had died.
"""

import asyncio
import contextlib
import time
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped

_PARTS = 10  # of a time limit
_TICKS = 12  # per session timeout
_READ_TIMEOUT_SHARE = 2 / 3  # kazoo's read timeout as a share of the granted session timeout
_STUCK_SHARE = 1 / 3  # of a session timeout without a tick; kazoo pings about as often


async def happens_within(event: asyncio.Event, seconds: float) -> bool:
    """Return whether `event` is set within `seconds` in which the process runs.

    A time in which it was stopped (SIGSTOP) counts as one of ten parts: others may have answered meanwhile.
    """
    for _ in range(_PARTS):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds / _PARTS):
                return await event.wait()
    return False


class LoopProgress:
    """The last time at which the running event loop is known to have made progress."""

    def __init__(self, session_timeout_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.session_timeout_s = (
            session_timeout_s  # the requested one, then the one that ZooKeeper has granted
        )
        self._timer: asyncio.TimerHandle | None = None
        self._tick()

    def _tick(self) -> None:
        self._seen_s = time.monotonic()
        self._timer = self._loop.call_later(self.session_timeout_s / _TICKS, self._tick)

    @property
    def is_stuck(self) -> bool:
        """Return whether the loop has not run for too long; any thread may call it."""
        return time.monotonic() - self._seen_s > self.session_timeout_s * _STUCK_SHARE

    def stop(self) -> None:
        """Cancel the timer: the session is being closed."""
        if self._timer is not None:
            self._timer.cancel()


def ping_only_with_progress(client: KazooClient, progress: LoopProgress) -> None:
    """Let kazoo's thread neither ping nor connect while the event loop is stuck; note the granted timeout.

    kazoo has no hook for this, so its connection's own methods are wrapped; a release that renames them fails
    here at once.
    """
    connection = client._connection  # noqa: SLF001
    send_ping, connect = connection._send_ping, connection._connect  # noqa: SLF001

    def send_ping_if_running(*args: Any) -> None:
        if not progress.is_stuck:
            send_ping(*args)

    def connect_if_running(*args: Any) -> Any:
        if progress.is_stuck:  # a new connection would renew the session too
            raise ConnectionDropped("the event loop is stuck")
        read_timeout_ms, connect_timeout_ms = connect(*args)
        progress.session_timeout_s = read_timeout_ms / _READ_TIMEOUT_SHARE / 1000
        return read_timeout_ms, connect_timeout_ms

    connection._send_ping = send_ping_if_running  # noqa: SLF001
    connection._connect = connect_if_running  # noqa: SLF001
