"""The lease under which this broker answers for replicated partitions and for groups.

ZooKeeper grants it: while a broker's session lives, its registration exists, and the controller replaces no
leader without that leader's consent. The lease ends before the session can: it is counted from when the
broker sent its question to ZooKeeper, not from when ZooKeeper answered.
"""

import time

from headrace.broker.errors import NotLeader
from headrace.broker.replicas.partition import Partition

# The share of a session timeout that a lease lasts. ZooKeeper's leader hears only every half tick which
# sessions the other servers have heard from, and a session lasts at least two ticks: it may end up to a
# quarter earlier than this broker would conclude from its own pings.
_SHARE = 0.75


class Lease:
    """Belongs to one registration of the broker, and is held or not by the monotonic clock.

    The monotonic clock also advances while the process is stopped.
    """

    def __init__(self) -> None:
        self.broker_epoch = -1
        """The zxid of this broker's registration, which distinguishes it from earlier registrations."""
        self._updated_epoch = -1  # the broker epoch in which the controller last sent an update
        self._until_s = 0.0

    @staticmethod
    def now_s() -> float:
        return time.monotonic()

    @property
    def is_held(self) -> bool:
        return time.monotonic() < self._until_s

    def renew(self, asked_at_s: float, session_timeout_s: float) -> None:
        """Extend the lease: ZooKeeper, asked at `asked_at_s`, has confirmed the broker's registration."""
        self._until_s = asked_at_s + _SHARE * session_timeout_s

    def revoke(self) -> None:
        """End the lease: the session has ended."""
        self._until_s = 0.0

    def updated(self) -> None:
        """Note that the controller has updated this registration: the broker knows if others lead."""
        self._updated_epoch = self.broker_epoch

    def ensure(self, partition: Partition) -> None:
        """Raise NotLeader if another broker may lead `partition`: records not yet committed could be lost."""
        partition.ensure_serving()
        if len(partition.replicas) < 2:
            return
        if self._updated_epoch != self.broker_epoch or not self.is_held:
            raise NotLeader(
                f"{partition.id}: the lease of this broker has ended, another broker may lead "
                "(NOT_LEADER_OR_FOLLOWER)"
            )
