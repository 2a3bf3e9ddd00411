"""When a failed query is started again, and which batches seem to hang. This knows neither time nor Spark."""

from dataclasses import dataclass, field
from typing import Final

from headrace.pipeline.errors import PipelineError

AFTER_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """The restart policy of a pipeline: `Pipeline("shop", restart=Restart(limit=5))`.

    limit: restarts of a query in a row, without a finished batch between them.
    backoff_s: the time before the first restart; it doubles with every restart, up to max_backoff_s.
    """

    limit: int = 10
    backoff_s: float = 1.0
    max_backoff_s: float = 60.0

    def __post_init__(self) -> None:
        if self.limit < 0 or not 0 <= self.backoff_s <= self.max_backoff_s:
            raise PipelineError(
                f"{self}: expected a limit of at least 0, and a backoff_s from 0 to max_backoff_s"
            )


@dataclass(slots=True)
class _Failures:
    in_a_row: int = 0
    in_all: int = 0
    batch: int = -1  # the last one that was finished at the last failure


@dataclass(slots=True)
class Restarts:
    """The failures of all queries of a run, and what the policy says about the next one."""

    policy: Restart
    _failures: dict[str, _Failures] = field(default_factory=dict)

    def failed(self, query: str, batch: int) -> float | None:
        """Return the seconds before the restart of a failed query; None if it must not be restarted.

        `batch` is the last one that it has finished.
        """
        found = self._failures.setdefault(query, _Failures(batch=batch))
        if batch > found.batch:
            found.in_a_row = 0
        found.batch = batch
        if found.in_a_row >= self.policy.limit:
            return None
        delay_s = min(self.policy.backoff_s * float(2**found.in_a_row), self.policy.max_backoff_s)
        found.in_a_row += 1
        found.in_all += 1
        return delay_s

    def count(self, query: str) -> int:
        """Return how often a query has been restarted in this run."""
        return self._failures[query].in_all if query in self._failures else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What a query does at a moment."""

    in_batch: bool  # or plans one
    batch: int
    last_job: int  # the greatest id of its jobs; -1 if there are none
    has_running_job: bool


@dataclass(slots=True)
class Watchdog:
    """Reports a batch that runs no job, every `after_s` seconds as long as that lasts."""

    after_s: float = AFTER_S
    _seen: dict[str, tuple[Activity, float, int]] = field(default_factory=dict)  # since when, and reports

    def check(self, query: str, now: Activity, now_s: float) -> float | None:
        """Return for how many seconds the batch of a query has run no job, if that is to be reported now."""
        seen, since_s, reports = self._seen.get(query, (now, now_s, 0))
        if now != seen or not now.in_batch or now.has_running_job:
            since_s, reports = now_s, 0
        idle_s = now_s - since_s
        due = idle_s >= self.after_s * (reports + 1)
        self._seen[query] = now, since_s, reports + due
        return idle_s if due else None
