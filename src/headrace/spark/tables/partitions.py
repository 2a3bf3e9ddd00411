"""The rows of a batch by partition, and the directories of partitions."""

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

import pyarrow as pa

Values: TypeAlias = tuple[Any, ...]  # of the partition columns; in a Delta table, texts and None


def divided(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """Yield the rows of each partition in their order, without the partition columns."""
    rest = batch.drop_columns(list(columns)) if columns else batch
    for values, rows in grouped(rest, [batch.column(name) for name in columns]):
        yield tuple(map(as_text, values)), rows


def grouped(batch: pa.RecordBatch, keys: Sequence[pa.Array]) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """Yield the rows with equal keys in their order; `keys` are columns with a value for each row."""
    if not keys:
        yield (), batch
        return
    table = pa.table({str(n): each for n, each in enumerate(keys)})
    numbered = table.append_column("row", pa.array(range(batch.num_rows), pa.int64()))
    # Threads would change the order of rows.
    groups = numbered.group_by(table.column_names, use_threads=False).aggregate([("row", "list")])
    rows = groups.column("row_list").combine_chunks()
    values = [groups.column(name).to_pylist() for name in table.column_names]
    for n in range(groups.num_rows):
        chosen = batch if groups.num_rows == 1 else batch.take(rows[n].values)
        yield tuple(value[n] for value in values), chosen


def as_text(value: Any) -> str | None:
    """Return a value as in Delta's log, where an empty string is null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.date):
        return value.isoformat()
    return None if value is None or value == "" else str(value)


def directory(columns: Sequence[str], values: Values) -> str:
    """Return the directory of a partition, which readers ignore: they use the table's log.

    columns (day, site) with values (2026-01-31, None): day=2026-01-31/site=__HIVE_DEFAULT_PARTITION__/
    """
    return "".join(
        f"{_safe(name)}={_safe(value) if value is not None else '__HIVE_DEFAULT_PARTITION__'}/"
        for name, value in zip(columns, values, strict=True)
    )


def _safe(text: str) -> str:
    # A file name has at most 255 bytes; that of a directory need not be unique.
    return quote(text, safe=" ")[:100]
