"""The form that searches the messages of a topic. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from headrace.client.errors import ClientError
from headrace.client.records.one_by_one import Start

LIMITS: Final = (20, 50, 100, 500)
SCANNED: Final = 200_000  # most messages that one search scans
LONGEST: Final = 1000  # most characters of a key or a text
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?")
_MAX_INT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchForm:
    """A search. Offset and time are kept as they were typed, so that the page can show them again."""

    where: str = "newest"  # newest, beginning, offset, time
    partition: int | None = None
    offset: str = ""
    time: str = ""
    zone_min: int = 0  # minutes that the browser's clock is ahead of UTC
    key: str = ""
    text: str = ""
    filter: str = ""  # a CEL expression
    limit: int = 50
    after: str = ""  # continue here: partition:offset,…

    @property
    def filters(self) -> bool:
        return bool(self.key or self.text or self.filter)

    @property
    def time_field(self) -> str:
        """The time if an input of type datetime-local can show it."""
        return self.time if _TIME.fullmatch(self.time) else ""

    def start(self) -> Start:
        """Return where the search starts; raise ClientError if that field is missing or invalid."""
        match self.where:
            case "beginning":
                return Start()
            case "offset":
                return Start(offset=_whole(self.offset, "offset"))
            case "time":
                return Start(time_ms=self.time_ms())
            case _:
                return Start(last=SCANNED)  # newest first, until `limit` messages are found

    def time_ms(self) -> int:
        """Return the time: milliseconds, or date and time of the browser's clock."""
        if self.time.isascii() and self.time.isdigit():
            return _whole(self.time, "time")
        try:
            at = datetime.fromisoformat(self.time)
            if at.tzinfo is None:
                at = (at - timedelta(minutes=self.zone_min)).replace(tzinfo=UTC)
            return max(0, int(at.timestamp() * 1000))
        except (ValueError, OverflowError):
            raise ClientError(
                f"{self.time[:50]!r} is not a time: expected one such as 2026-11-15T18:20, or milliseconds"
            ) from None


def read(fields: Mapping[str, str]) -> SearchForm:
    """Return the search of a form's fields; raise ClientError if one is invalid."""
    partition, limit, zone = fields.get("partition", ""), fields.get("limit", ""), fields.get("zone", "")
    return SearchForm(
        where=fields.get("where", "newest"),
        partition=_whole(partition, "partition") if partition else None,
        offset=fields.get("offset", "").strip(),
        time=fields.get("time", "").strip(),
        zone_min=int(zone) if zone.removeprefix("-").isdecimal() and len(zone) < 6 else 0,
        key=fields.get("key", "")[:LONGEST],
        text=fields.get("text", "")[:LONGEST],
        filter=fields.get("filter", "").strip()[:LONGEST],
        limit=int(limit) if limit in map(str, LIMITS) else 50,
        after=fields.get("after", ""),
    )


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _MAX_INT):
        raise ClientError(f"the {what} is {text[:50]!r}: expected a whole number")
    return int(text)
