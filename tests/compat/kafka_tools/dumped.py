"""What DumpLogSegments prints of batches, records, snapshots and aborted transactions, as values."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FIELD: Final = re.compile(r"(\w+): (OptionalLong\[\d+\]|[^ ]+)")
RECORD: Final = re.compile(
    r"\| offset: (?P<offset>\d+) (?:CreateTime|LogAppendTime): (?P<timestamp>-?\d+) "
    r"keySize: (?P<key_size>-?\d+) valueSize: (?P<value_size>-?\d+) sequence: (?P<sequence>-?\d+) "
    r"headerKeys: \[(?P<headers>.*?)\](?: key: (?P<key>.*?))?(?: payload: (?P<value>.*))?"
)


def by_file(output: str) -> dict[Path, list[str]]:
    """The lines that a dump printed about each file."""
    lines: dict[Path, list[str]] = {}
    current: list[str] = []
    for line in output.splitlines():
        if line.startswith("Dumping "):
            current = lines.setdefault(Path(line.removeprefix("Dumping ")), [])
        else:
            current.append(line)
    return lines


def fields(lines: list[str], first: str) -> list[dict[str, str]]:
    """`name: value` pairs of the lines that begin with the field `first`."""
    return [dict(FIELD.findall(line)) for line in lines if line.startswith(f"{first}: ")]


def records(lines: list[str]) -> Iterator[dict[str, str | None]]:
    """The records of a log; the data only if it was asked for with `--print-data-log`."""
    for line in lines:
        if line.startswith("|") and "endTxnMarker" not in line:
            found = RECORD.fullmatch(line)
            assert found is not None, line
            yield found.groupdict()
