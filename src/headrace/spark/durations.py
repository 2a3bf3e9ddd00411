"""Durations in options, as Spark writes them.

Spark reads maxTriggerDelay with JavaUtils.timeStringAsMs: "15m", "90s", "1h", or a number of milliseconds.
Its triggers are CalendarIntervals: "90 seconds", "1 day", "1 hour 30 minutes". Both notations are accepted.
"""

import re
from typing import Final

_MS: Final = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_MS_OF_WORDS: Final = {
    "microsecond": 0.001,
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_VARIABLE: Final = {"month", "year"}
_SUFFIXED: Final = re.compile(r"([0-9]{1,18})\s*([a-z]*)")
_PART: Final = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([a-z]+)")
_LARGEST_MS: Final = 2**63 - 1


def parse_duration_s(text: str) -> float:
    """Return the seconds of "15m", "90 seconds", "1 hour 30 minutes" or "1500" (milliseconds); ValueError."""
    lower = text.strip().lower()
    suffixed = _SUFFIXED.fullmatch(lower)
    if suffixed is not None and suffixed[2] in {"", *_MS}:
        ms = int(suffixed[1]) * _MS.get(suffixed[2], 1)
    else:
        rest, ms = lower.removeprefix("interval ").strip(), 0.0
        while rest or not lower:
            part = _PART.match(rest)
            unit = part[2].removesuffix("s") if part is not None else ""
            if unit in _VARIABLE:
                raise ValueError(f"{text!r}: a {unit} has no fixed length; use days")
            if part is None or unit not in _MS_OF_WORDS:
                expected = "expected a number and a unit, as in 30s, 15m or 90 seconds"
                raise ValueError(f"{text!r} is not a duration; {expected}")
            ms += float(part[1]) * _MS_OF_WORDS[unit]
            rest = rest[part.end() :].strip()
    if ms > _LARGEST_MS:
        raise ValueError(f"{text!r} is more than {_LARGEST_MS} milliseconds")
    return ms / 1000
