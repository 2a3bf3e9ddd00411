"""The progress of pipelines, read from their topic; each call continues where the last one ended.

What is kept is bounded, and dropped if the topic has been recreated. Any client may write to the topic, so
records that no pipeline would write are skipped.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import fields, replace
from threading import Lock
from typing import Final

from pydantic import TypeAdapter, ValidationError

from headrace.client.errors import NoSuchTopic
from headrace.client.records.following import Follower
from headrace.client.records.one_by_one import Record, Start
from headrace.client.wire.connection_settings import Target
from headrace.pipeline.progress import RETENTION_MS, TOPIC, Figures, Progress
from headrace.pipeline.status import TAIL

STEP_S: Final = 0.2
READ_S: Final = 5.0  # for one call; the next one continues
MAX_READ: Final = 50_000  # records of one call
MAX_QUERIES: Final = 1_000
MAX_EXPECTATIONS: Final = 100  # of a query
MAX_NAME: Final = 500  # characters
MAX_RECORD_BYTES: Final = 256 * 1024
MAX_KEPT_BYTES: Final = 64 * 1024 * 1024  # of all records

_PROGRESS: Final = TypeAdapter(Progress)


class Totals:
    """The totals of the queries that have reported last, each since its start. Pure."""

    def __init__(self) -> None:
        self._queries: OrderedDict[tuple[str, str], Figures] = OrderedDict()  # the last to report is last

    def add(self, progress: Progress) -> None:
        key = (progress.pipeline, progress.query)
        figures = self._queries.setdefault(key, Figures(progress.query))
        figures.add(progress)
        for name in list(figures.broken)[MAX_EXPECTATIONS:]:
            del figures.broken[name]
        self._queries.move_to_end(key)
        if len(self._queries) > MAX_QUERIES:
            self._queries.popitem(last=False)

    def by_pipeline(self, now_ms: int) -> dict[str, list[Figures]]:
        """Return the queries of each pipeline that have reported within the retention of the topic."""
        found: dict[str, list[Figures]] = {}
        for (pipeline, _), figures in sorted(self._queries.items()):
            if figures.at_ms > now_ms - RETENTION_MS:
                found.setdefault(pipeline, []).append(replace(figures, broken=dict(figures.broken)))
        return found

    def clear(self) -> None:
        self._queries.clear()


class Pipelines:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._lock = Lock()
        self._known: deque[tuple[Progress, int]] = deque()  # with the number of bytes
        self._kept_bytes = 0
        self._totals = Totals()
        self._positions: dict[int, int] = {}

    def progress(self) -> list[Progress]:
        """Return the newest records of progress, oldest first; none if no pipeline has run on the cluster."""
        with self._lock:
            self._update()
            return [progress for progress, _ in self._known]

    def totals(self, now_ms: int) -> dict[str, list[Figures]]:
        """Return the totals of the queries of each pipeline, since each query was started last."""
        with self._lock:
            self._update()
            return self._totals.by_pipeline(now_ms)

    def _update(self) -> None:
        try:
            with Follower(self._target, TOPIC, Start(last=TAIL), positions=self._positions) as follower:
                if any(offset > follower.ends.get(index, 0) for index, offset in self._positions.items()):
                    self._forget()  # the topic has been recreated; the next call starts at its beginning
                    return
                taken, deadline_s = 0, time.monotonic() + READ_S
                while not follower.at_end and taken < MAX_READ and time.monotonic() < deadline_s:
                    records = follower.step(STEP_S)
                    taken += len(records)
                    self._add(records)
                    self._positions = dict(follower.positions)
        except NoSuchTopic:
            self._forget()

    def _add(self, records: Iterable[Record]) -> None:
        for record in records:
            progress = read(record)
            if progress is not None:
                self._totals.add(progress)
                self._known.append((replace(progress, graph=()), len(record.value or b"")))
                self._kept_bytes += self._known[-1][1]
        while len(self._known) > TAIL or self._kept_bytes > MAX_KEPT_BYTES:
            self._kept_bytes -= self._known.popleft()[1]

    def _forget(self) -> None:
        self._known.clear()
        self._kept_bytes = 0
        self._totals.clear()
        self._positions.clear()


def read(record: Record) -> Progress | None:
    """Return the progress in a record; None if no pipeline of this version has written it."""
    value = record.value or b""
    if len(value) > MAX_RECORD_BYTES:
        return None
    try:
        progress = _PROGRESS.validate_json(value, strict=True)
    except ValidationError:
        return None
    numbers = [getattr(progress, field.name) for field in fields(Progress) if field.type in {int, float}]
    numbers += progress.lags.values()
    numbers += [rows for by_name in progress.broken.values() for rows in by_name.values()]
    is_valid = (
        all(-(2**63) <= number < 2**63 for number in numbers)  # neither NaN nor infinite
        and 0 < len(progress.pipeline) <= MAX_NAME
        and len(progress.query) <= MAX_NAME
    )
    return progress if is_valid else None
