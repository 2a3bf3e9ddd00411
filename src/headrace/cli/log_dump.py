"""`headrace log dump`: print the files of a partition, record by record and entry by entry."""

import json
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from headrace.cli.support.output import to_json
from headrace.cli.support.session import Session, json_option
from headrace.protocol.errors import KafkaError, ProtocolError
from headrace.protocol.records import Record
from headrace.storage.dump import Entry, batches, control_record, entries, files_of
from headrace.storage.errors import StorageError
from headrace.storage.files import LOG

MAX_BYTES: Final = 1000


@click.command()
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.option("--records", "--print-data-log", is_flag=True, help="Print the records of each batch, too.")
@click.option(
    "--from",
    "-o",
    "start",
    type=click.IntRange(0),
    default=0,
    metavar="OFFSET",
    help="Only batches and records from here on.",
)
@click.option(
    "--max-messages", "-n", "-c", type=click.IntRange(1), help="Print so many lines of each file at most."
)
@click.option(
    "--max-bytes",
    type=click.IntRange(0),
    default=MAX_BYTES,
    metavar="N",
    help="Print so many bytes of a key, a value and a header at most.",
)
@json_option
def dump(
    session: Session,
    *,
    paths: Sequence[Path],
    records: bool,
    start: int,
    max_messages: int | None,
    max_bytes: int,
) -> None:
    """Print what is in the files of a partition:  headrace log dump /var/lib/headrace/orders-0 --records

    PATH is the directory of a partition, or single files: segments (.log), indexes (.index, .timeindex,
    .txnindex), snapshots of producers (.snapshot), and checkpoints such as leader-epoch-checkpoint. --json
    prints one object per line. Changes nothing; the end of the newest segment may be incomplete while its
    broker runs. Exit status 1 if a file is damaged.
    """
    damaged = False
    for path in [file for given in paths for file in files_of(given)]:
        if not session.as_json:
            click.echo(str(path))
        try:
            for indent, entry in islice(_lines(path, start, max_bytes if records else None), max_messages):
                line = indent + " ".join(f"{name}={_text(value)}" for name, value in entry.items())
                click.echo(to_json({"file": str(path), **entry}) if session.as_json else line)
        except (StorageError, KafkaError, ProtocolError) as error:
            damaged = True
            as_json = to_json({"file": str(path), "error": str(error)})
            click.echo(as_json if session.as_json else f"headrace: {error}", err=not session.as_json)
    if damaged:
        sys.exit(1)


def _lines(path: Path, start: int, max_bytes: int | None) -> Iterator[tuple[str, Entry]]:
    """Yield every entry with its indentation: records, if `max_bytes` is not None, are below their batch."""
    if path.suffix != LOG:
        yield from (("  ", entry) for entry in entries(path))
        return
    for batch in batches(path, start):
        yield "  ", batch.entry
        for record in batch.records if max_bytes is not None else ():
            yield "    ", control_record(record) if batch.is_control else _record(record, max_bytes or 0)


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.isalnum() else json.dumps(value, ensure_ascii=False)


def _record(record: Record, max_bytes: int) -> Entry:
    entry: Entry = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key_size": -1 if record.key is None else len(record.key),
        "value_size": -1 if record.value is None else len(record.value),
    }
    if record.headers:
        entry["headers"] = [[name, _shown(value, max_bytes)] for name, value in record.headers]
    return entry | {"key": _shown(record.key, max_bytes), "value": _shown(record.value, max_bytes)}


def _shown(data: bytes | None, max_bytes: int) -> Any:
    """Return text, or {"base64": ...}; what is cut off is replaced by an ellipsis."""
    if data is None:
        return None
    beginning = data[:max_bytes]
    end = "…" if len(data) > max_bytes else ""
    try:
        return beginning.decode() + end
    except UnicodeDecodeError as error:
        if end and error.start >= len(beginning) - 3:  # the cut is in the middle of a character
            return beginning[: error.start].decode() + end
    return {"base64": b64encode(beginning).decode() + end}
