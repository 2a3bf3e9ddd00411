"""How fast replicas that catch up may do so, so that clients do not notice: bytes per second. Pure."""

from collections.abc import Collection


class Rate:
    """Lets work go on as long as it is behind its rate; a second's worth may come at once."""

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        self._paid_until_s = 0.0

    def spend(self, size: int, now_s: float) -> None:
        self._paid_until_s = max(self._paid_until_s, now_s - 1) + size / self.bytes_per_second

    def is_exceeded(self, now_s: float) -> bool:
        return self._paid_until_s > now_s

    def until_s(self) -> float:
        """When there is room again."""
        return self._paid_until_s


def is_throttled(listed: Collection[str], partition: int, broker_id: int) -> bool:
    """Whether a topic's list of throttled replicas, "0:1,0:2" or "*", names this one."""
    return "*" in listed or f"{partition}:{broker_id}" in listed
