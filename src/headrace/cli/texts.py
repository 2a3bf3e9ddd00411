"""Small texts: what people write on a command line, and what they are told."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import click

INTERRUPTED: Final = 130  # the exit status by which a shell counts a death by Ctrl-C

_DURATION: Final = re.compile(
    r"P(?=[\dT])(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """`name=value` texts by name; the last of a name counts."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{option} {text}: expected NAME=VALUE.")
        found[name.strip()] = value.strip()
    return found


def count(number: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def time_ms(text: str, option: str) -> int:
    """`2026-01-31T12:00:00+01:00` or `@1769857200000` as milliseconds; local time if it does not say."""
    if text.startswith("@") and text[1:].isdigit():
        return int(text[1:])
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise click.UsageError(
            f"{option} {text}: expected a time such as 2026-01-31T12:00:00+01:00."
        ) from None


def duration_ms(text: str, option: str) -> int:
    """`PT1H30M`, `P2DT0.5S`: ISO 8601's way to write how long, as milliseconds."""
    found = _DURATION.fullmatch(text.upper())
    if found is None:
        raise click.UsageError(f"{option} {text}: expected a duration such as PT1H30M or P7D.")
    parts = {unit: float(number) for unit, number in found.groupdict().items() if number}
    try:
        return timedelta(**parts) // timedelta(milliseconds=1)
    except OverflowError:
        raise click.UsageError(f"{option} {text}: that is too long ago.") from None


def size(number: float) -> str:
    """`812 B`, `4.2 KiB`, `1.0 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(number) < 1024:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def ready_line(where: Mapping[str, str], *, as_json: bool) -> str:
    """What a server says once it serves: `ready bootstrap=HOST:PORT http=URL`, or that as JSON."""
    if as_json:
        return json.dumps({"ready": True, **where})
    return " ".join(["ready", *(f"{name}={address}" for name, address in where.items())])
