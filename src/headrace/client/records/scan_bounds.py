"""Where a search ends, and how much it has looked at."""

import time
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

STEP_S: Final = 0.2  # how soon it is noticed that the time is up

Kept = TypeVar("Kept")  # what a search makes of a record that it has found
Stopped = Literal["end", "limit", "records", "bytes", "time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Where a search ends, whatever comes first."""

    found: int
    records: int
    size_bytes: int
    time_s: float


@dataclass(slots=True)
class Spent:
    """What a search has looked at."""

    records: int = 0
    size_bytes: int = 0

    def add(self, records: int, size_bytes: int) -> None:
        self.records += records
        self.size_bytes += size_bytes

    def over(self, bounds: Bounds, deadline_s: float) -> Stopped | None:
        """The bound that is reached, if one is."""
        if self.records >= bounds.records:
            return "records"
        if self.size_bytes >= bounds.size_bytes:
            return "bytes"
        return "time" if time.monotonic() > deadline_s else None
