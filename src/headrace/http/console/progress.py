"""The progress of pipelines, read from their topic; each call continues where the last one ended.

What is kept is bounded, and dropped if the topic has been recreated. Any client may write to the topic, so
records that no pipeline would write are skipped.
"""

import math
import time
from collections import deque
from threading import Lock
from typing import Final

from headrace.client.errors import NoSuchTopic
from headrace.client.records.following import Follower
from headrace.client.records.one_by_one import Record, Start
from headrace.client.wire.connection_settings import Target
from headrace.pipeline.progress import TOPIC, Progress
from headrace.pipeline.status import TAIL

STEP_S: Final = 0.2
READ_S: Final = 5.0  # for one call; the next one continues
MAX_READ: Final = 50_000  # records of one call

_TEXTS: Final = ("pipeline", "query", "event", "watermark", "error", "shared")
_COUNTS: Final = (
    "at_ms",
    "batch",
    "rows",
    "written",
    "took_ms",
    "lag",
    "state_rows",
    "state_bytes",
    "restarts",
)
_RATES: Final = ("rows_per_s", "written_per_s")


class Pipelines:
    """The progress that all pages share."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._lock = Lock()
        self._known: deque[Progress] = deque(maxlen=TAIL)
        self._positions: dict[int, int] = {}

    def progress(self) -> list[Progress]:
        """Return the newest records of progress, oldest first; none if no pipeline has run on the cluster."""
        with self._lock:
            try:
                self._read_on()
            except NoSuchTopic:
                self._forget()
            return list(self._known)

    def _read_on(self) -> None:
        with Follower(self._target, TOPIC, Start(last=TAIL), positions=self._positions) as follower:
            if any(offset > follower.ends.get(index, 0) for index, offset in self._positions.items()):
                self._forget()  # the topic has been recreated; the next call starts at its beginning
                return
            taken, deadline_s = 0, time.monotonic() + READ_S
            while not follower.at_end and taken < MAX_READ and time.monotonic() < deadline_s:
                records = follower.step(STEP_S)
                taken += len(records)
                self._known.extend(each for each in map(read, records) if each is not None)
            self._positions = dict(follower.positions)

    def _forget(self) -> None:
        self._known.clear()
        self._positions.clear()


def read(record: Record) -> Progress | None:
    """Return the progress in a record; None if no pipeline of this version has written it."""
    try:
        progress = Progress.decode(record.value or b"")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return progress if _is_valid(progress) else None


def _is_valid(progress: Progress) -> bool:
    return (
        all(isinstance(getattr(progress, name), str) for name in _TEXTS)
        and all(_is_count(getattr(progress, name)) for name in _COUNTS)
        and all(_is_rate(getattr(progress, name)) for name in _RATES)
        and isinstance(progress.lags, dict)
        and all(map(_is_count, progress.lags.values()))
        and isinstance(progress.broken, dict)
        and all(map(_are_counts, progress.broken.values()))
        and isinstance(progress.graph, list | tuple)
        and bool(progress.pipeline)
    )


def _is_count(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _are_counts(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_count, value.values()))


def _is_rate(value: object) -> bool:
    return _is_count(value) or (isinstance(value, float) and math.isfinite(value))
