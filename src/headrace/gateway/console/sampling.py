"""Lag of groups over time, sampled while a page shows it and for ten minutes after.

sampler.watch("billing") -> [Sample(at_ms=…, topics={"orders": 12})]
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event, Lock
from typing import Final

from cachetools import TTLCache

from headrace.client.errors import ClientError, NoSuchGroup
from headrace.client.groups.group import Group, Progress, lag_of
from headrace.system.background import BackgroundThread

EVERY_S: Final = 2.0
KEPT: Final = 300  # samples of a group: ten minutes
WATCHED: Final = 32  # groups at a time
FORGOTTEN_S: Final = 600.0  # without a request, after which a group is not sampled any more
TOPICS: Final = 6  # of a group that have their own series: those with the most lag

Ask = Callable[[Sequence[str]], Sequence[Group]]


@dataclass(frozen=True, slots=True)
class Sample:
    """A group's lag by topic at one time; None if the cluster, or a topic's leaders, did not answer."""

    at_ms: int
    topics: dict[str, int | None] | None


class TooManyWatched(ClientError):
    """WATCHED groups are being sampled."""

    def __init__(self) -> None:
        super().__init__(
            f"the lag of {WATCHED} groups is being sampled, the most at a time: close another group's page"
        )


class LagSampler:
    """One thread for all groups, which ends when none is watched."""

    def __init__(self, ask: Ask, now_s: Callable[[], float] = time.time) -> None:
        self._ask = ask
        self._now_s = now_s
        self._lock = Lock()
        self._watched: TTLCache[str, deque[Sample]] = TTLCache(WATCHED, FORGOTTEN_S, now_s)
        self._thread: BackgroundThread | None = None
        self._closed = Event()

    def watch(self, group: str) -> list[Sample]:
        """Return a group's samples, and keep sampling it; raise NoSuchGroup if there is no such group."""
        with self._lock:
            samples = self._watched.get(group)
        if samples is None:
            first = sample(self._now_s(), self._ask([group])[0])
            with self._lock:
                if group not in self._watched:
                    if len(self._watched) >= WATCHED:
                        raise TooManyWatched
                    self._watched[group] = deque(maxlen=KEPT)
                if self._thread is None:
                    self._thread = BackgroundThread(self._run, name="headrace-lag", stop=self._closed.set)
                    self._thread.start()
                samples = self._watched[group]
                samples.append(first)
        with self._lock:
            self._watched[group] = samples  # for another FORGOTTEN_S
            return list(samples)

    def close(self) -> None:
        """Stop sampling."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(EVERY_S):
            with self._lock:
                names = list(self._watched)
                if not names:
                    self._thread = None
                    return
            self.take(names)

    def take(self, names: Sequence[str]) -> None:
        """Sample these groups, and drop those that do not exist any more."""
        for name in names:
            now_s = self._now_s()
            try:
                new = sample(now_s, self._ask([name])[0])
            except NoSuchGroup:
                with self._lock:
                    self._watched.pop(name, None)
                continue
            except ClientError:
                new = Sample(int(now_s * 1000), None)
            with self._lock:
                if name in self._watched:
                    self._watched[name].append(new)


def sample(now_s: float, group: Group) -> Sample:
    """Return a group's lag by topic: of the topics with the most lag, and of the others together."""
    by_topic: dict[str, list[Progress]] = {}
    for progress in group.partitions:
        by_topic.setdefault(progress.topic, []).append(progress)
    lags = {topic: lag_of(partitions) for topic, partitions in by_topic.items()}
    ranked = sorted(lags.items(), key=lambda item: (-(item[1] or 0), item[0]))
    kept = dict(ranked[:TOPICS])
    if len(ranked) > TOPICS:
        others = [lag for _, lag in ranked[TOPICS:]]
        kept["others"] = None if None in others else sum(lag or 0 for lag in others)
    return Sample(int(now_s * 1000), kept)
