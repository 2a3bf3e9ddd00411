"""Numbers, sizes and times as text for pages. Pure."""

from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

UNKNOWN: Final = "\N{EN DASH}"
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SPANS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))
_BYTES: Final = (".bytes", ".buffer.size", ".throttled.rate")
_ENDLESS: Final = {str(2**31 - 1), str(2**63 - 1)}
_MINUS_ONE: Final = (".ms", ".bytes", ".hours", ".minutes")  # of other settings, -1 may mean a default


def number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def rate(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def size(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    left, unit = float(value), _UNITS[0]
    for unit in _UNITS:
        if left < 1024 or unit == _UNITS[-1]:
            break
        left /= 1024
    return f"{left:.0f} {unit}" if unit == "B" or left >= 100 else f"{left:.1f} {unit}"


def span(milliseconds: float | None) -> str:
    """Return a duration such as `7 d` or `1 h 30 min`: its two largest units that are not zero."""
    if milliseconds is None:
        return UNKNOWN
    left, parts = int(milliseconds), []
    for unit_ms, name in _SPANS:
        count, left = divmod(left, unit_ms)
        if count:
            parts.append(f"{count:,} {name}")
    return " ".join(parts[:2]) or "0 ms"


def took(milliseconds: float | None) -> str:
    """Return a measured duration such as `145 ms`, `4.1 s` or `2 min 5 s`."""
    if milliseconds is None or milliseconds < 1000 or milliseconds >= 60_000:
        return span(milliseconds)
    return f"{milliseconds / 1000:.1f} s"


def meaning(name: str, value: str | None) -> str:
    """Return the value of a setting in readable units: retention.ms=604800000 is `7 d`."""
    text = value or ""
    if text in _ENDLESS or (text == "-1" and name.endswith(_MINUS_ONE)):
        return "no limit"
    if not text.isdigit():
        return ""
    figure = int(text)
    if name.endswith(".ms") and figure >= 1000:
        return span(figure)
    if name.endswith(_BYTES) and figure >= 1024:
        return size(figure) + (" per second" if name.endswith(".rate") else "")
    return ""


def stamp(milliseconds: int | None) -> str:
    """Return `2026-11-15 18:20:43.123` in UTC; a script replaces it by the browser's time."""
    if milliseconds is None or not 0 <= milliseconds < 253_402_300_800_000:  # the year 10,000
        return UNKNOWN
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return at.strftime("%Y-%m-%d %H:%M:%S.") + f"{milliseconds % 1000:03}"


def iso(milliseconds: int | None) -> str:
    written = stamp(milliseconds)
    return "" if written == UNKNOWN else written.replace(" ", "T") + "Z"


def segment(name: object) -> str:
    """Return a name as one segment of a path, whatever is in it."""
    return quote(str(name), safe="")


def plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
