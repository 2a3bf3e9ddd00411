"""The lease under which a broker answers for replicated partitions and for groups.

ZooKeeper grants it: while a broker's session lives, its registration exists, and the controller replaces no
leader without that leader's consent. The lease ends before the session can: it is counted from when ZooKeeper
was asked, not from when it answered.
"""

import time

# Of a session. ZooKeeper's leader hears only every half tick which sessions other servers have heard from,
# and a session lasts two ticks at least: it may end up to a quarter earlier than it seems from here.
_SHARE = 0.75


class Lease:
    """Held or not, by the monotonic clock, which also goes on while the process is stopped."""

    def __init__(self) -> None:
        self._until_s = 0.0

    @staticmethod
    def now_s() -> float:
        return time.monotonic()

    @property
    def is_held(self) -> bool:
        return time.monotonic() < self._until_s

    def renew(self, asked_at_s: float, session_timeout_s: float) -> None:
        """ZooKeeper, asked at `asked_at_s`, has confirmed the broker's registration."""
        self._until_s = asked_at_s + _SHARE * session_timeout_s

    def revoke(self) -> None:
        """The session has ended."""
        self._until_s = 0.0
