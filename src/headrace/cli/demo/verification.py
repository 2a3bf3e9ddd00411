"""Whether every position, alert and window of the demo was written exactly once."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from headrace.cli.demo.trucks import LIMIT_KMH, WINDOW_S
from headrace.client.records.one_by_one import BEGINNING, Reader

READ_COMMITTED: Final = {"isolation.level": "read_committed"}


@dataclass(frozen=True, slots=True)
class Position:
    """A row of the table."""

    truck: str
    number: int
    at: datetime
    kmh: float

    @property
    def window(self) -> tuple[int, str]:
        """The window of the position: its first second, and the truck."""
        return int(self.at.timestamp() // WINDOW_S) * WINDOW_S, self.truck


def read_topic(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    """Return the committed records of a topic, whose values are JSON objects."""
    with Reader(bootstrap, topic, BEGINNING, stop_at_end=True, options=READ_COMMITTED) as reader:
        return [json.loads(each.value or b"{}") for batch in reader.batches() for each in batch]


def alert_errors(positions: Iterable[Position], alerts: Iterable[dict[str, Any]]) -> list[str]:
    """Return what is wrong unless every position above the limit has exactly one alert."""
    expected = Counter((each.truck, each.number) for each in positions if each.kmh > LIMIT_KMH)
    return _differences("alert", expected, Counter((alert["truck"], alert["number"]) for alert in alerts))


def window_errors(
    positions: Iterable[Position], speeds: Iterable[dict[str, Any]], *, late_rows: int
) -> list[str]:
    """Return what is wrong unless every closed window was written exactly once, with all its positions.

    The windows after the last one that was written are still open. If Spark has dropped late rows, windows
    lack some positions, and only those that were written twice are wrong.
    """
    sizes: dict[tuple[int, str], int] = defaultdict(int)
    for position in positions:
        sizes[position.window] += 1
    speeds = list(speeds)
    written = {_window(speed): int(speed["positions"]) for speed in speeds}
    closed = max((start for start, _ in written), default=0)
    expected = Counter(window for window in sizes if window[0] <= closed)
    if late_rows:
        return _differences("window", Counter(written.keys()), Counter(map(_window, speeds)))
    return _differences("window", expected, Counter(map(_window, speeds))) + [
        f"window {window} was written with {size} of {sizes[window]} positions"
        for window, size in written.items()
        if size != sizes[window]
    ]


def _window(speed: dict[str, Any]) -> tuple[int, str]:
    return int(datetime.fromisoformat(speed["window"]["start"]).timestamp()), speed["truck"]


def _differences(what: str, expected: Counter[tuple[Any, Any]], found: Counter[tuple[Any, Any]]) -> list[str]:
    return [
        f"{what} {key} was written {found[key]} times, not {expected[key]}"
        for key in sorted(expected.keys() | found.keys())
        if found[key] != expected[key]
    ]
