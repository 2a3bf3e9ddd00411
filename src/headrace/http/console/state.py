"""What the console keeps between requests: little and bounded, and not needed after a restart."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Final, Generic, TypeVar

from fastapi import Request

from headrace.client.cluster.topic_overview import TopicList, TopicOverview
from headrace.http.console.progress import Pipelines
from headrace.http.console.sampling import LagSampler
from headrace.http.console.views.groups import GroupRow
from headrace.http.reach import Reach

KEPT_S: Final = 5.0
SWAP: Final = "x-headrace-swap"
"""The header of a script's request for the same table in another order, filter or page."""

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """One value that was read a moment ago."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = Lock()
        self._kept: tuple[float, Value] | None = None

    def get(self, request: Request, read: Callable[[], Value]) -> Value:
        """Return a new value, or for a SWAP request one that is at most KEPT_S old."""
        return self.aged(KEPT_S if SWAP in request.headers else 0, read)

    def aged(self, max_age_s: float, read: Callable[[], Value]) -> Value:
        """Return the kept value if it is young enough, else a new one."""
        with self._lock:
            kept = self._kept
        if kept is not None and self._now_s() - kept[0] < max_age_s:
            return kept[1]
        value = read()
        with self._lock:
            self._kept = (self._now_s(), value)
        return value


class Console:
    """`app.state.console`."""

    def __init__(self, reach: Reach) -> None:
        self.topics: Recent[TopicList] = Recent()
        self.whole_topics: Recent[list[TopicOverview]] = Recent()
        self.disk: Recent[dict[int, int]] = Recent()
        self.groups: Recent[list[GroupRow]] = Recent()
        self.lags = LagSampler(reach.groups.describe)
        self.pipelines = Pipelines(reach.bootstrap)
        reach.at_close(self.lags.close)
