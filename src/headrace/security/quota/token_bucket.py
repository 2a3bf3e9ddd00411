"""The token bucket of controller mutations (KIP-599): a burst is allowed, and paid for afterwards."""

import math

from headrace.security.quota.rate import MOST_THROTTLE_MS, Window


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
