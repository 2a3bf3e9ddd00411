"""Scheduled maintenance of the tables of a pipeline, in a thread beside its queries."""

import datetime as dt
import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.storage.files import replace_text
from headrace.pipeline.storage.object_store import StoragePath
from headrace.spark.errors import SparkError
from headrace.spark.tables.maintenance import (
    KEPT_SNAPSHOTS,
    LEAST_RETENTION,
    Expired,
    Maintained,
    Removed,
    Rewritten,
)
from headrace.system.background import BackgroundThread

POLL_S: Final = 10.0
END_S: Final = 60.0  # to finish a step when the pipeline ends; one that is not finished changes nothing
_INTERVAL: Final = re.compile(r"(\d+) (second|minute|hour|day|week)s?")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """What is done to a table, and how often: Maintenance(every="1 day", vacuum_after="7 days").

    Files are merged, or clustered by columns. `vacuum_after` and `expire_after` (Iceberg) remove files and
    snapshots that are older; without them, nothing is removed.
    """

    every: str = "1 day"
    optimize: bool = True
    cluster_by: Sequence[str] = ()
    vacuum_after: str | None = None
    expire_after: str | None = None
    keep_snapshots: int = KEPT_SNAPSHOTS

    def __post_init__(self) -> None:
        for text in (self.every, self.vacuum_after, self.expire_after):
            if text is not None:
                interval(text)
        if self.vacuum_after is not None and interval(self.vacuum_after) < LEAST_RETENTION:
            raise PipelineError(
                f"vacuum_after={self.vacuum_after!r} is too short: younger files may belong to a batch that "
                f"is not committed yet; expected at least {LEAST_RETENTION.days} day"
            )
        if self.keep_snapshots < 1:
            raise PipelineError(f"keep_snapshots={self.keep_snapshots}: expected at least 1")

    def steps(self, table: Maintained) -> Iterator[tuple[str, Callable[[], str]]]:
        """Yield the steps in their order, each with a function that returns what it has done."""
        expire, vacuum = self.expire_after, self.vacuum_after
        if expire is not None:
            yield "expire", lambda: _told(table.expire(interval(expire), self.keep_snapshots, dry_run=False))
        if self.cluster_by:
            yield "cluster", lambda: _told(table.cluster(list(self.cluster_by)))
        elif self.optimize:
            yield "optimize", lambda: _told(table.optimize())
        if vacuum is not None:
            yield "vacuum", lambda: _told(table.vacuum(interval(vacuum), dry_run=False))


def _told(done: Expired | Rewritten | Removed) -> str:
    if isinstance(done, Rewritten):
        return f"{done.files_before} files became {done.files_after}"
    if isinstance(done, Removed):
        return f"{len(done.files)} files removed"
    return f"{len(done.snapshots)} snapshots expired"


def interval(text: str) -> dt.timedelta:
    """Return the duration of "7 days"; PipelineError if it is none."""
    parts = _INTERVAL.fullmatch(text.strip().lower())
    if parts is None:
        raise PipelineError(f"{text!r} is not an interval; expected 12 hours, 7 days, ...")
    return dt.timedelta(**{f"{parts[2]}s": int(parts[1])})


class MaintainedTarget(Protocol):
    """A table of a sink."""

    @property
    def label(self) -> str: ...

    @property
    def maintenance(self) -> Maintenance | None: ...

    def maintained(self) -> Maintained: ...


class Caretaker:
    """Maintains tables when they are due. A file has the times of the last maintenance, for the next run."""

    def __init__(
        self, tables: Mapping[str, MaintainedTarget], file: StoragePath, now: Callable[[], float] = time.time
    ) -> None:
        """`tables` are by the names of their sinks."""
        self._tables = {name: each for name, each in tables.items() if each.maintenance is not None}
        self._file = file
        self._now = now
        self._ending = threading.Event()

    @contextmanager
    def at_work(self, *, to_the_end: bool) -> Iterator[None]:
        """Maintain tables in a thread during the block; after it, if the pipeline runs `to_the_end`."""
        if not self._tables:
            yield
        elif to_the_end:
            yield
            self.run_due()
        else:
            thread = BackgroundThread(self._run, name="pipeline-maintenance", stop=self._ending.set)
            thread.start()
            try:
                yield
            finally:
                self._ending.set()
                thread.join(END_S)

    def _run(self) -> None:
        while True:
            self.run_due()
            if self._ending.wait(POLL_S):
                return

    def run_due(self) -> list[str]:
        """Maintain the tables that are due; return what was done. A new table is due after its interval."""
        told: list[str] = []
        for name, target in self._tables.items():
            plan = target.maintenance
            assert plan is not None, name
            last = self._times().get(name)
            if last is not None and self._now() - last < interval(plan.every).total_seconds():
                continue
            if last is not None:
                told += self._maintain(target, plan)
            replace_text(self._file, json.dumps({**self._times(), name: self._now()}))
        return told

    def _maintain(self, target: MaintainedTarget, plan: Maintenance) -> Iterator[str]:
        """Yield what was done. A step that fails is logged, and done again when the table is due again."""
        try:
            steps = list(plan.steps(target.maintained()))
        except SparkError as error:
            logger.warning("%s cannot be maintained: %s", target.label, error)
            return
        for step, act in steps:
            if self._ending.is_set():
                return
            try:
                said = f"{target.label}: {step}: {act()}"
            except Exception as error:  # noqa: BLE001  the queries go on
                logger.warning("%s: %s failed: %s", target.label, step, error)
            else:
                logger.info("%s", said)
                yield said

    def _times(self) -> dict[str, float]:
        try:
            return dict(json.loads(self._file.read_text()))
        except (FileNotFoundError, ValueError):
            return {}
