"""Messages as JSON and as CSV, for a download. Pure."""

import csv
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from io import StringIO
from typing import Any, Final, Protocol

from headrace.client.serializers.codecs.plain_json import write_json

COLUMNS: Final = (
    "partition",
    "offset",
    "timestamp_ms",
    "time",
    "key",
    "key_encoding",
    "key_schema_id",
    "value",
    "value_encoding",
    "value_schema_id",
    "headers",
    "truncated",
)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # how cells begin that spreadsheets would evaluate
_YEAR_10000_MS: Final = 253_402_300_800_000


class Export(Protocol):
    """A file that is made of messages as they arrive; each message is the JSON of a `Message`."""

    def rows(self, messages: Sequence[bytes]) -> bytes:
        """Return the next bytes of the file."""

    def end(self, stopped_by: str, next_: str, offline: Sequence[int]) -> bytes:
        """Return the last bytes of the file; `offline` are the partitions that could not be read."""


class JsonExport:
    """The same object as the response of a search."""

    def __init__(self, topic: str) -> None:
        self._begin = b'{"topic":%b,"messages":[' % write_json(topic)
        self._between = b"\n"

    def rows(self, messages: Sequence[bytes]) -> bytes:
        written = self._begin
        self._begin = b""
        for message in messages:
            written += self._between + message
            self._between = b",\n"
        return written

    def end(self, stopped_by: str, next_: str, offline: Sequence[int]) -> bytes:
        about = {"stopped_by": stopped_by, "next": next_, "offline": offline}
        return b"%b\n],%b\n" % (self._begin, write_json(about)[1:])


class CsvExport:
    """A table with COLUMNS. A cell that a spreadsheet would take for a formula begins with an apostrophe."""

    def __init__(self) -> None:
        self._has_head = False

    def rows(self, messages: Sequence[bytes]) -> bytes:
        text = StringIO()
        table = csv.writer(text)
        if not self._has_head:
            self._has_head = True
            table.writerow(COLUMNS)
        for message in messages:
            table.writerow([_cell(value) for value in row_of(json.loads(message)).values()])
        return text.getvalue().encode("utf-8", "backslashreplace")

    def end(self, stopped_by: str, next_: str, offline: Sequence[int]) -> bytes:  # noqa: ARG002  a table has no place
        return b""


def row_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a message; keys, values and headers that are not text are written as JSON."""
    at_ms = message["timestamp_ms"]
    known = at_ms is not None and 0 <= at_ms < _YEAR_10000_MS
    time = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds") if known else None
    texts = {"key": _text(message["key"]), "value": _text(message["value"]), "time": time}
    headers = _text(message["headers"]) if message["headers"] else None
    every = {**message, **texts, "headers": headers}
    return {name: every[name] for name in COLUMNS}


def _text(value: object) -> str | None:
    return value if isinstance(value, str | None) else json.dumps(value, ensure_ascii=False)


def _cell(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
