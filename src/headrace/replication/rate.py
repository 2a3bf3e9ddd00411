"""Replication throttling: bytes per second that replicas may use to catch up. Pure."""

from collections.abc import Collection


class Rate:
    """A limit of bytes per second; a burst of one second's bytes is allowed."""

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        self._paid_until_s = 0.0

    def spend(self, size: int, now_s: float) -> None:
        self._paid_until_s = max(self._paid_until_s, now_s - 1) + size / self.bytes_per_second

    def is_exceeded(self, now_s: float) -> bool:
        return self._paid_until_s > now_s

    def until_s(self) -> float:
        """Return the time from which on the rate is not exceeded."""
        return self._paid_until_s


def is_throttled(listed: Collection[str], partition: int, broker_id: int) -> bool:
    """Return whether a topic's list of throttled replicas, "0:1,0:2" or "*", names this replica."""
    return "*" in listed or f"{partition}:{broker_id}" in listed
