"""The demo's check finds alerts and windows that are missing, incomplete, or there twice."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from headrace.cli.demo.trucks import LIMIT_KMH
from headrace.cli.demo.verification import Position, alert_errors, window_errors

START_S: Final = 1_700_000_000
Rows = list[dict[str, Any]]


def position(number: int, truck: str = "a", kmh: float = 80.0) -> Position:
    """A position every four seconds."""
    return Position(truck, number, datetime.fromtimestamp(START_S + 4 * number, UTC), kmh)


def window(start_s: int, positions: int, truck: str = "a") -> dict[str, Any]:
    start = datetime.fromtimestamp(START_S + start_s, UTC).isoformat()
    return {"window": {"start": start, "end": "…"}, "truck": truck, "positions": positions}


FAST: Final = [position(1, kmh=LIMIT_KMH + 1.0), position(2), position(3, kmh=LIMIT_KMH + 2.0)]
ALERTS: Final = [{"truck": "a", "number": 1}, {"truck": "a", "number": 3}]
POSITIONS: Final = [position(number, truck) for number in range(8) for truck in ("a", "b")]
WINDOWS: Final = [window(start, size, truck) for start, size in ((0, 3), (10, 2)) for truck in ("a", "b")]


def test_what_was_written_once_is_right() -> None:
    assert alert_errors(FAST, ALERTS) == []
    assert window_errors(POSITIONS, WINDOWS, late_rows=0) == []
    assert window_errors(POSITIONS, [], late_rows=0) == [], "all windows are open"


@pytest.mark.parametrize(
    ("alerts", "error"),
    [
        ([*ALERTS, ALERTS[0]], "alert ('a', 1) was written 2 times, not 1"),
        (ALERTS[:1], "alert ('a', 3) was written 0 times, not 1"),
        ([*ALERTS, {"truck": "a", "number": 2}], "alert ('a', 2) was written 1 times, not 0"),
    ],
    ids=["twice", "missing", "invented"],
)
def test_a_wrong_alert_is_found(alerts: Rows, error: str) -> None:
    assert alert_errors(FAST, alerts) == [error]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda rows: [*rows, rows[0]], f"window ({START_S}, 'a') was written 2 times, not 1"),
        (lambda rows: rows[1:], f"window ({START_S}, 'a') was written 0 times, not 1"),
        (
            lambda rows: [window(0, 2), *rows[1:]],
            f"window ({START_S}, 'a') was written with 2 of 3 positions",
        ),
    ],
    ids=["twice", "missing", "incomplete"],
)
def test_a_wrong_window_is_found(change: Callable[[Rows], Rows], error: str) -> None:
    assert window_errors(POSITIONS, change(list(WINDOWS)), late_rows=0) == [error]


def test_windows_may_lack_rows_that_were_late_but_must_not_be_there_twice() -> None:
    assert window_errors(POSITIONS, [window(0, 2), *WINDOWS[2:]], late_rows=4) == []
    assert window_errors(POSITIONS, [*WINDOWS, WINDOWS[0]], late_rows=4) != []
