"""What the console keeps between requests: little and bounded, and not needed after a restart."""

import time
from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import Final, Generic, TypeVar

from fastapi import Request

from headrace.client.admin.quotas import ClientQuota
from headrace.client.admin.users import User
from headrace.client.cluster.topic_overview import TopicList, TopicOverview
from headrace.client.transactions.admin import Summaries
from headrace.gateway.console.views.groups import GroupRow
from headrace.security.acls import AclBinding

KEPT_S: Final = 5.0
SWAP: Final = "x-headrace-swap"
"""The header of a script's request for the same table in another order, filter or page."""

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """One value that was read a moment ago.

    With `rest`, a value that took long to read is kept for `rest` times as long: then reading it takes a
    bounded share of the cluster's time, however many pages show it. A value that is not `complete` is not
    kept: the brokers that have not answered may do so the next time.
    """

    def __init__(
        self,
        now_s: Callable[[], float] = time.monotonic,
        *,
        rest: float = 0,
        complete: Callable[[Value], bool] = lambda _: True,
    ) -> None:
        self._now_s = now_s
        self._rest = rest
        self._complete = complete
        self._lock = Lock()
        self._kept: tuple[Value, Hashable, float, float] | None = None  # with its key, when, and how long

    def get(self, request: Request, read: Callable[[], Value], key: Hashable = None) -> Value:
        """Return a new value, or for a SWAP request one that is at most KEPT_S old."""
        return self.aged(KEPT_S if SWAP in request.headers else 0, read, key)

    def aged(self, max_age_s: float, read: Callable[[], Value], key: Hashable = None) -> Value:
        """Return the kept value if it has the same key and is young enough, else a new one."""
        with self._lock:
            kept = self._kept
        started_s = self._now_s()
        if kept is not None and kept[1] == key:
            value, _, at_s, took_s = kept
            if started_s - at_s < max(max_age_s, self._rest * took_s):
                return value
        value = read()
        with self._lock:
            now_s = self._now_s()
            self._kept = (value, key, now_s, now_s - started_s) if self._complete(value) else None
        return value


class Console:
    def __init__(self) -> None:
        self.topics: Recent[TopicList] = Recent()
        self.whole_topics: Recent[list[TopicOverview]] = Recent()
        self.disk: Recent[dict[int, int]] = Recent()
        self.groups: Recent[list[GroupRow]] = Recent()
        self.transactions: Recent[Summaries] = Recent(rest=10, complete=lambda found: not found.missing)
        self.users: Recent[list[User]] = Recent()
        self.acls: Recent[Sequence[AclBinding]] = Recent()
        self.quotas: Recent[list[ClientQuota]] = Recent()
