"""What is known of pipelines: their progress, read on from where the last look ended.

Every look takes in what is new in the topic; what is remembered is bounded, and forgotten if the topic is
another one. Anybody may write to a topic: what is not what a pipeline would say is passed over.
"""

import math
import time
from collections import deque
from threading import Lock
from typing import Final

from headrace.client.errors import NoSuchTopic
from headrace.client.records.following import Follower
from headrace.client.records.one_by_one import Record, Start
from headrace.pipeline.progress import TOPIC, Progress
from headrace.pipeline.status import TAIL

STEP_S: Final = 0.2
LOOK_S: Final = 5.0  # after which the next look goes on
READ: Final = 50_000  # records that one look takes in

_TEXTS: Final = ("pipeline", "query", "event", "watermark", "error")
_COUNTS: Final = ("at_ms", "batch", "rows", "written", "took_ms", "lag", "state_rows", "state_bytes")
_RATES: Final = ("rows_per_s", "written_per_s")


class Pipelines:
    """For all pages and threads together."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._lock = Lock()
        self._known: deque[Progress] = deque(maxlen=TAIL)
        self._positions: dict[int, int] = {}

    def progress(self) -> list[Progress]:
        """All that is remembered, oldest first; nothing if no pipeline has run on the cluster."""
        with self._lock:
            try:
                self._read_on()
            except NoSuchTopic:
                self._forget()
            return list(self._known)

    def _read_on(self) -> None:
        with Follower(self._bootstrap, TOPIC, Start(last=TAIL), positions=self._positions) as follower:
            if any(offset > follower.ends.get(index, 0) for index, offset in self._positions.items()):
                self._forget()  # it has been made anew; the next look begins at its beginning
                return
            taken, deadline_s = 0, time.monotonic() + LOOK_S
            while not follower.at_end and taken < READ and time.monotonic() < deadline_s:
                records = follower.step(STEP_S)
                taken += len(records)
                self._known.extend(each for each in map(read, records) if each is not None)
            self._positions = dict(follower.positions)

    def _forget(self) -> None:
        self._known.clear()
        self._positions.clear()


def read(record: Record) -> Progress | None:
    """What a record says of a pipeline; None if it is somebody else's, or a later version's."""
    try:
        progress = Progress.decode(record.value or b"")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return progress if _is_sound(progress) else None


def _is_sound(progress: Progress) -> bool:
    return (
        all(isinstance(getattr(progress, name), str) for name in _TEXTS)
        and all(_is_count(getattr(progress, name)) for name in _COUNTS)
        and all(_is_rate(getattr(progress, name)) for name in _RATES)
        and isinstance(progress.lags, dict)
        and all(map(_is_count, progress.lags.values()))
        and bool(progress.pipeline)
    )


def _is_count(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _is_rate(value: object) -> bool:
    return _is_count(value) or (isinstance(value, float) and math.isfinite(value))
