"""Slowing background work down to a rate, so that it leaves disk and processor to the clients."""

import time
from collections.abc import Callable

_CREDIT_SECONDS = 0.1  # how much of the time that the work itself takes counts as slept already


class Throttle:
    """Lets `spend` through at `bytes_per_second` on average, by sleeping in the calling thread."""

    def __init__(
        self,
        bytes_per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._paid_until = clock()

    def spend(self, size: int) -> None:
        """Account for `size` bytes of work; sleep once it is ahead of its rate by a few milliseconds.

        A sleep of nothing still lets other threads of the interpreter run.
        """
        now = self._clock()
        self._paid_until = max(self._paid_until, now - _CREDIT_SECONDS) + size / self._rate
        ahead = self._paid_until - now
        self._sleep(ahead if ahead > 0.005 else 0)
