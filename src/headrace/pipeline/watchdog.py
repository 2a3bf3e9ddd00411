"""Batches that seem to hang, because they run no Spark job. Nothing here knows the time or Spark."""

from dataclasses import dataclass, field
from typing import Final

AFTER_S: Final = 60.0


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
