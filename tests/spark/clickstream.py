"""Clicks of visitors, as a tracker sends them: repeated, out of order, and some of them unreadable."""

import datetime as dt
import json
import random
from dataclasses import dataclass
from typing import Any, Final

PAGES: Final = ("/", "/shop", "/cart", "/pay", "/help")
COUNTRIES: Final = ("de", "fr", "ng", "jp")
START: Final = dt.datetime(2026, 1, 1, 22, tzinfo=dt.UTC)  # two hours before midnight
LENGTH: Final = dt.timedelta(hours=4)
MOST_LATE: Final = dt.timedelta(minutes=5)
END_OF_DAY: Final = START + LENGTH + dt.timedelta(hours=2)  # the last event: every window before it is over
TYPES: Final = "id string, visitor string, page string, country string, at timestamp, price double"


@dataclass(frozen=True, slots=True)
class Clicks:
    """What was sent, in order, and what it says: one row for each id."""

    messages: list[bytes]
    rows: list[dict[str, Any]]
    unreadable: int


def clicks(count: int, seed: int) -> Clicks:
    """Return `count` clicks; one in twenty is sent twice, and one in fifty is no JSON of a click."""
    chance = random.Random(seed)
    rows = [_click(number, chance) for number in range(count)]
    sent: list[tuple[dt.datetime, bytes]] = []
    for row in rows:
        for _ in range(2 if chance.random() < 0.05 else 1):
            late = MOST_LATE * chance.random()
            sent.append((row["at"] + late, _encoded(row)))
    unreadable = count // 50
    sent += [(START + LENGTH * chance.random(), b'{"id": "half a cl') for _ in range(unreadable)]
    return Clicks([message for _, message in sorted(sent)], rows, unreadable)


def last_click() -> bytes:
    """Return a click so much later that no window of the others stays open."""
    return _encoded(
        {"id": "last", "visitor": "-", "page": "-", "country": "-", "at": END_OF_DAY, "price": None}
    )


def _click(number: int, chance: random.Random) -> dict[str, Any]:
    page = chance.choice(PAGES)
    at = START + LENGTH * chance.random()
    return {
        "id": f"click-{number}",
        "visitor": f"visitor-{chance.randrange(40)}",
        "page": page,
        "country": chance.choice(COUNTRIES),
        "at": at.replace(microsecond=at.microsecond // 1000 * 1000),
        "price": round(chance.uniform(1, 200), 2) if page == "/pay" else None,
    }


def _encoded(row: dict[str, Any]) -> bytes:
    at = row["at"].isoformat(timespec="milliseconds")
    return json.dumps(row | {"at": at}).encode()
