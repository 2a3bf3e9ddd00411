"""`headrace log dump`: print the files of a partition, record by record and entry by entry."""

import json
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from headrace.cli.support.session import Session, json_option
from headrace.protocol.errors import KafkaError, ProtocolError
from headrace.protocol.message import Struct
from headrace.protocol.records import Record
from headrace.storage.dump import Batch, Entry, batches, control_record, entries, files_of
from headrace.storage.errors import StorageError
from headrace.storage.files import LOG

MAX_BYTES: Final = 1000
_UUID_BYTES: Final = 16
Decoder = Callable[[Record], Entry]


@click.command()
@click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option("--records", "--print-data-log", is_flag=True, help="Print the records of each batch, too.")
@click.option(
    "--offsets-decoder", is_flag=True, help="The records are those of __consumer_offsets: decode them."
)
@click.option(
    "--transaction-log-decoder",
    is_flag=True,
    help="The records are those of __transaction_state: decode them.",
)
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
    "--max-messages",
    "-n",
    "-c",
    type=click.IntRange(1),
    help="Print so many lines of each file at most.",
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
    offsets_decoder: bool,
    transaction_log_decoder: bool,
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
    if offsets_decoder and transaction_log_decoder:
        raise click.UsageError("Give --offsets-decoder or --transaction-log-decoder, not both.")
    decode = _decoder(offsets=offsets_decoder, transactions=transaction_log_decoder, max_bytes=max_bytes)
    damaged = False
    for path in [file for each in paths for file in files_of(each)]:
        if not session.as_json:
            click.echo(str(path))
        lines = _lines(path, start, decode if records or offsets_decoder or transaction_log_decoder else None)
        try:
            for indent, entry in islice(lines, max_messages):
                _print(entry, indent, path if session.as_json else None)
        except (StorageError, KafkaError, ProtocolError) as error:
            damaged = True
            _print_damage(error, path, as_json=session.as_json)
    if damaged:
        sys.exit(1)


def _lines(path: Path, start: int, decode: Decoder | None) -> Iterator[tuple[str, Entry]]:
    """Yield every entry with its indentation: records are below their batch."""
    if path.suffix != LOG:
        yield from (("  ", entry) for entry in entries(path))
        return
    for batch in batches(path, start):
        yield "  ", batch.entry
        if decode is not None:
            yield from (("    ", entry) for entry in _records(batch, decode))


def _records(batch: Batch, decode: Decoder) -> Iterator[Entry]:
    for record in batch.records:
        yield control_record(record) if batch.is_control else decode(record)


def _print(entry: Entry, indent: str, path: Path | None) -> None:
    if path is not None:
        click.echo(json.dumps({"file": str(path), **entry}, ensure_ascii=False))
        return
    shown = (f"{name}={_text(value)}" for name, value in entry.items())
    click.echo(indent + " ".join(shown))


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.isalnum() else json.dumps(value, ensure_ascii=False)


def _print_damage(error: Exception, path: Path, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"file": str(path), "error": str(error)}, ensure_ascii=False))
    else:
        click.echo(f"headrace: {error}", err=True)


# -- records ---------------------------------------------------------------------------------------


def _decoder(*, offsets: bool, transactions: bool, max_bytes: int) -> Decoder:
    if offsets:
        return _group_record
    if transactions:
        return _transaction_record
    return lambda record: _plain_record(record, max_bytes)


def _plain_record(record: Record, max_bytes: int) -> Entry:
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


def _group_record(record: Record) -> Entry:
    from headrace.coordinators.group.records import (  # noqa: PLC0415  only with --offsets-decoder
        decode_record,
    )

    found = decode_record(record.key, record.value)
    if found is None:
        return {"offset": record.offset, "type": "unknown"}
    kind = type(found.key).__name__.removesuffix("Key")
    return {
        "offset": record.offset,
        "type": kind,
        "key": _plain(found.key),
        "value": None if found.value is None else _plain(found.value),
    }


def _transaction_record(record: Record) -> Entry:
    from headrace.coordinators.transaction.records import decode_record  # noqa: PLC0415

    found = decode_record(record.key, record.value)
    if found is None:
        return {"offset": record.offset, "type": "unknown"}
    value = None if found.transaction is None else _plain(found.transaction)
    return {"offset": record.offset, "transactional_id": found.transactional_id, "value": value}


def _plain(value: Any) -> Any:
    """Return a decoded message as JSON."""
    match value:
        case bytes() | bytearray() | memoryview():
            return value.hex() if len(value) == _UUID_BYTES else _shown(bytes(value), MAX_BYTES)
        case Enum():
            return value.name
        case Struct():
            return {each.name: _plain(getattr(value, each.name)) for each in type(value).__fields__}
        case frozenset() | set():
            return sorted(map(str, value))
        case list() | tuple():
            return [_plain(each) for each in value]
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value
