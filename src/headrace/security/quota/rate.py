"""The rate of a value over the last seconds, as Kafka measures it: in samples of one window each.

Controller mutations have a token bucket instead (KIP-599): a burst is allowed, and paid for afterwards.
"""

import math
from collections import deque
from typing import Final, NamedTuple

MOST_THROTTLE_MS: Final = 2**31 - 1  # throttle_time_ms is an int32


class Window(NamedTuple):
    """How rates are measured: `samples` (quota.window.num) of `size_ms` (quota.window.size.seconds)."""

    samples: int
    size_ms: int

    @property
    def total_ms(self) -> int:
        return self.samples * self.size_ms

    @property
    def full_s(self) -> float:
        """The seconds of all complete samples; the last sample is in progress."""
        return (self.samples - 1) * self.size_ms / 1000


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class SampledRate:
    """The sum of recorded values per second. Samples without a value in the last `total_ms` are dropped."""

    __slots__ = ("_samples", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._samples: deque[_Sample] = deque()

    def record(self, value: float, now_ms: int) -> None:
        """Add a value, which may be negative to take an earlier one back."""
        samples = self._samples
        if not samples or now_ms - samples[-1].start_ms >= self._window.size_ms:
            samples.append(_Sample(now_ms))
            if len(samples) > self._window.samples + 1:
                samples.popleft()
        samples[-1].value += value
        samples[-1].last_ms = now_ms

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return the wait until the rate is `limit` if nothing more is recorded; 0 if it is not higher.

        With an observed rate O over a window of W ms, O * W / (W + wait) = limit.
        """
        samples, window = self._samples, self._window
        while samples and now_ms - samples[0].last_ms >= window.total_ms:
            samples.popleft()
        elapsed = now_ms - samples[0].start_ms if samples else 0
        # At least all complete samples count: the first value after a pause would be a very high rate.
        missing = max(0, window.samples - 1 - elapsed // window.size_ms)
        window_ms = max(elapsed + missing * window.size_ms, 1)
        rate = sum(sample.value for sample in self._samples) / (window_ms / 1000)
        if rate <= limit:
            return 0
        return min(math.floor((rate - limit) / limit * window_ms + 0.5), MOST_THROTTLE_MS)

    def is_idle(self, now_ms: int) -> bool:
        """Return whether nothing was recorded for so long that a new rate would be equal to this one."""
        return not self._samples or now_ms - self._samples[-1].last_ms >= self._window.total_ms


class TokenBucket:
    """Tokens that refill at the rate of the quota, up to what all samples of the window would add up to."""

    __slots__ = ("_last_ms", "_limit", "_tokens", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._tokens = math.inf  # a new bucket is full, whatever the limit
        self._last_ms = 0
        self._limit = 0.0

    def record(self, tokens: float, limit: float, now_ms: int) -> None:
        """Take tokens; there may be less than none afterwards."""
        self._refill(limit, now_ms)
        self._tokens -= tokens

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return how long to wait until the bucket has no debt; 0 if it has none."""
        self._refill(limit, now_ms)
        return min(max(0, math.floor(-self._tokens / limit * 1000 + 0.5)), MOST_THROTTLE_MS)

    def is_idle(self, now_ms: int) -> bool:
        """Return whether the bucket is full, so that a new one would be equal to it."""
        if self._limit:
            self._refill(self._limit, now_ms)
        return self._tokens >= self._burst(self._limit)

    def _refill(self, limit: float, now_ms: int) -> None:
        added = limit * (now_ms - self._last_ms) / 1000
        self._tokens = min(self._burst(limit), self._tokens + added)
        self._last_ms = now_ms
        self._limit = limit

    def _burst(self, limit: float) -> float:
        return limit * self._window.total_ms / 1000
