"""Small files of an Iceberg table merged into larger ones, which pyiceberg does not do.

The snapshot that replaces them has the operation `overwrite`, though it changes no row. It is committed only
if every file that it replaces is part of the snapshot right before it. Other programs check the same: the
catalog refuses a commit if the table's snapshot is no longer the one that the program has read.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from headrace.spark.tables.attempts import ATTEMPTS, attempts
from headrace.spark.tables.iceberg_files import data_filesystem, data_location, described, file_schema
from headrace.spark.tables.iceberg_table import (
    BATCH_OF,
    WHAT,
    batch_properties,
    known_batches,
    without_retries,
)
from headrace.spark.tables.packages import needed

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs
    from pyiceberg.manifest import DataFile as ManifestEntry
    from pyiceberg.table import Table

SMALL: Final = 0.5  # of the size that files are to have
MERGED_BYTES: Final = 1 << 30  # on disk, in one go; what is left is merged next time

logger = logging.getLogger(__name__)


def compact(table: "Table", target_bytes: int) -> None:
    """Merge small files. The rows are safe already: what goes wrong here is logged, and done next time."""
    try:
        table.refresh()
        merged = _merge(table, target_bytes)
    except Exception as error:  # noqa: BLE001  whatever it is, the batch is committed
        logger.warning("%s was not compacted: %s", ".".join(table.name()), error)
    else:
        logger.info("%s: %d files were merged", ".".join(table.name()), merged)


def _merge(table: "Table", target_bytes: int) -> int:
    """Return how many files were merged; CommitFailedException if other commits do not allow it."""
    from headrace.spark.tables.files import Files, remove  # noqa: PLC0415

    filesystem = data_filesystem(table)
    schema = file_schema(table, [each.name for each in table.schema().fields])
    old = list(_mergeable(table, filesystem, target_bytes))
    if len(old) < 2:
        return 0
    files = Files(filesystem, schema, partition_by=(), target_bytes=target_bytes)
    written = files.write(_rows(table, filesystem, old))
    new = described(table, written)
    before, after = sum(each.record_count for each in old), sum(each.record_count for each in new)
    assert before == after, (before, after)
    failed = needed("pyiceberg.exceptions", WHAT).CommitFailedException
    read = table.schema(), table.spec()
    for attempt in attempts():
        try:
            _replace(table, old, new)
        except failed:  # somebody else was first
            table.refresh()
            gone = {each.file_path for each in old} - set(_whole_files(table))
            if gone or (table.schema(), table.spec()) != read or attempt == ATTEMPTS:
                remove(filesystem, [each.path for each in written])
                raise
        else:
            return len(old)
    raise AssertionError("unreachable")


def _replace(table: "Table", old: "Sequence[ManifestEntry]", new: "Sequence[ManifestEntry]") -> None:
    with without_retries(table).transaction() as transaction:
        # Snapshots of an older Headrace may expire, and what they say of batches is still needed.
        noted = batch_properties(table)
        if missing := {query: batch for query, batch in known_batches(table).items() if query not in noted}:
            transaction.set_properties({f"{BATCH_OF}{query}": str(batch) for query, batch in missing.items()})
        with transaction.update_snapshot().overwrite() as snapshot:
            for each in old:
                snapshot.delete_data_file(each)
            for each in new:
                snapshot.append_data_file(each)


def _whole_files(table: "Table") -> "dict[str, ManifestEntry]":
    """The files of the table of which no row is deleted."""
    tasks = table.scan().plan_files()
    return {task.file.file_path: task.file for task in tasks if not task.delete_files}


def _mergeable(
    table: "Table", filesystem: "pa.fs.FileSystem", target_bytes: int
) -> "Iterator[ManifestEntry]":
    """Files below half the size, with the table's columns as they are now, of which no row is deleted."""
    total = 0
    for file in _whole_files(table).values():
        path = _path(table, file)
        if file.file_size_in_bytes > target_bytes * SMALL or path is None:
            continue
        if _has_columns_of(table, filesystem, path):
            total += file.file_size_in_bytes
            yield file
        if total > MERGED_BYTES:
            return


def _has_columns_of(table: "Table", filesystem: "pa.fs.FileSystem", path: str) -> bool:
    """Whether a file has the table's columns as they are now, with their ids."""
    found = needed("pyarrow.parquet", WHAT).read_schema(path, filesystem=filesystem)
    try:
        schema = needed("pyiceberg.io.pyarrow", WHAT).pyarrow_to_schema(found)
    except ValueError:  # a file of somebody else's, without ids
        return False
    return bool(schema.as_struct() == table.schema().as_struct())


def _rows(
    table: "Table", filesystem: "pa.fs.FileSystem", files: "Iterable[ManifestEntry]"
) -> "Iterator[pa.RecordBatch]":
    parquet = needed("pyarrow.parquet", WHAT)
    for file in files:
        with parquet.ParquetFile(_path(table, file), filesystem=filesystem) as opened:
            yield from opened.iter_batches()


def _path(table: "Table", file: "ManifestEntry") -> str | None:
    """Its path below the table's directory, None if it is elsewhere."""
    inside = f"{data_location(table)}/"
    return file.file_path.removeprefix(inside) if file.file_path.startswith(inside) else None
