"""Limits of failed authentications, by address and by user. Pure: the caller passes the time.

An address with too many failures is refused for a while. A user with too many failures, from any addresses,
is refused only at addresses that have failed themselves: nobody can lock a user out by failing in its name.
"""

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address
from typing import Final

WINDOW_S: Final = 60.0
BY_ADDRESS: Final = 20  # failures in WINDOW_S
BY_USER: Final = 30
REMEMBERED: Final = 10_000  # addresses, and users; the oldest are forgotten first


class _Failures:
    """Counts failures by key; a count decreases evenly, to nothing within WINDOW_S."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: OrderedDict[str, tuple[float, float]] = OrderedDict()  # count, and when it was so

    def count(self, key: str, now_s: float) -> float:
        count, at_s = self._counts.get(key, (0.0, now_s))
        return max(0.0, count - (now_s - at_s) * self._limit / WINDOW_S)

    def add(self, key: str, now_s: float) -> None:
        self._counts[key] = (self.count(key, now_s) + 1, now_s)
        self._counts.move_to_end(key)
        if len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)

    def wait_s(self, key: str, now_s: float) -> float:
        """Return for how long the key has to wait; 0 if it has not reached the limit."""
        excess = self.count(key, now_s) + 1 - self._limit
        return max(0.0, excess * WINDOW_S / self._limit)


class FailedAttempts:
    def __init__(self) -> None:
        self._addresses = _Failures(BY_ADDRESS)
        self._users = _Failures(BY_USER)

    def wait_s(self, address: str, user: str, now_s: float) -> float:
        """Return for how many seconds this user may not try from this address; 0 if it may."""
        where = network_of(address)
        wait_s = self._addresses.wait_s(where, now_s)
        if self._addresses.count(where, now_s) > 0:
            wait_s = max(wait_s, self._users.wait_s(user, now_s))
        return wait_s

    def add(self, address: str, user: str, now_s: float) -> None:
        self._addresses.add(network_of(address), now_s)
        self._users.add(user, now_s)


def network_of(address: str) -> str:
    """Return an address as it is limited: an IPv6 address by its /64, which usually belongs to one client."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        mapped = parsed.ipv4_mapped
        return str(mapped) if mapped else parsed.exploded[:19]
    return address
