"""Rows of `headrace sql`: as a table, as lines of JSON or CSV, or in a file."""

import csv
import datetime as dt
import io
import json
import math
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from headrace.tables.arrow.parallel import in_threads
from headrace.tables.sql.tables import QueryRefused

BATCH_ROWS: Final = 10_000
_LONGEST: Final = 200  # characters of a cell of a table


def write(rows: "duckdb.DuckDBPyRelation", path: Path) -> int:
    """Write the rows to a file in the format of its suffix, and return how many they are.

    The file appears when it is complete.
    """
    beside = path.with_name(f".{path.name}.part")
    try:
        with beside.open("wb") as file:
            if path.suffix == ".parquet":
                written = _write_parquet(rows, file)
            else:
                written = 0
                for number, lines in _lines(rows, as_csv=path.suffix == ".csv"):
                    file.write(lines)
                    written += number
        beside.replace(path)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
    return written


def _write_parquet(rows: "duckdb.DuckDBPyRelation", file: IO[bytes]) -> int:
    schema, batches = _run(rows)
    written = 0
    try:
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
                written += batch.num_rows
    except pa.ArrowNotImplementedError as error:
        raise QueryRefused(f"The rows cannot be written as Parquet: {error}") from error
    return written


def print_lines(rows: "duckdb.DuckDBPyRelation", *, as_csv: bool) -> None:
    """Print CSV with a head line, or one object per line."""
    out = sys.stdout.buffer
    for _, lines in _lines(rows, as_csv=as_csv):
        out.write(lines)
        out.flush()


def _lines(rows: "duckdb.DuckDBPyRelation", *, as_csv: bool) -> Iterator[tuple[int, bytes]]:
    names = rows.columns
    if as_csv:
        yield 0, _csv([names])
    _, batches = _run(rows)
    for batch in batches:
        cells = _cells(batch)
        if as_csv:
            yield batch.num_rows, _csv([[_text(cell) for cell in row] for row in cells])
        else:
            lines = (
                json.dumps(dict(zip(names, map(_plain, row), strict=True)), ensure_ascii=False)
                for row in cells
            )
            yield batch.num_rows, "".join(f"{line}\n" for line in lines).encode()


def _run(rows: "duckdb.DuckDBPyRelation") -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Run the query, and return its schema and its batches.

    It runs in a thread, because neither DuckDB nor pyarrow notices Ctrl-C before the next batch.
    """

    def work() -> Iterator[pa.Schema | pa.RecordBatch]:
        reader = rows.to_arrow_reader(BATCH_ROWS)
        yield reader.schema
        yield from reader

    found = in_threads([work], 1)
    return next(found), found


def load(rows: "duckdb.DuckDBPyRelation") -> pa.Table:
    schema, batches = _run(rows)
    return pa.Table.from_batches(batches, schema)


def _cells(batch: pa.RecordBatch | pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _csv(rows: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def shown(table: pa.Table) -> list[list[str | None]]:
    """Return the rows for people: as text, of which long ones are cut, and None for null."""
    return [[None if cell is None else _short(_text(cell)) for cell in row] for row in _cells(table)]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _text(cell: Any) -> str:
    """Return a value as text: null is empty, and values with parts are JSON."""
    if cell is None:
        return ""
    plain = _plain(cell)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return a value that JSON has; bytes that are not UTF-8 become {"base64": …}, as in `consume --json`."""
    match value:
        case bytes():
            with suppress(UnicodeDecodeError):
                return value.decode()
            return {"base64": b64encode(value).decode()}
        case dict():
            return {str(key): _plain(part) for key, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta() | Decimal():
            return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such number
    return value if isinstance(value, str | int | float | bool | None) else str(value)
