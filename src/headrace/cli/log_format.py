"""How servers write their log: lines for people, or a JSON object a line for what collects logs.

HEADRACE_LOG_FORMAT=json headrace up --data DIR
"""

import json
import logging
import os
from datetime import UTC, datetime
from typing import Final

import click

TEXT: Final = "%(asctime)s %(levelname)s %(message)s"
VARIABLE: Final = "HEADRACE_LOG_FORMAT"
"""A variable, so that the processes of a cluster have it from the one that started them."""


class JsonFormatter(logging.Formatter):
    """{"time": …, "level": …, "logger": …, "message": …, "process": …} and, after a crash, "exception"."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the record has."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        entry |= getattr(record, "fields", {})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def formatter() -> logging.Formatter:
    """What the environment asks for."""
    wanted = os.environ.get(VARIABLE, "text")
    if wanted not in {"text", "json"}:
        raise click.UsageError(f"{VARIABLE} is {wanted!r}: choose text or json.")
    return JsonFormatter() if wanted == "json" else logging.Formatter(TEXT)
