"""The Parquet files of a table: their schema, with times in UTC, their rows, and those that a task writes.

A task has one open file for each partition, which is closed at the target size.
"""

import logging
import secrets
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headrace.spark.batch import Batch, Sink
from headrace.spark.tables.partitions import Values, directory, divided

SMALL: Final = 0.5  # of the target size: such files are merged
MERGED_BYTES: Final = 1 << 30  # on disk, in one compaction; other files are merged the next time
FIELD_ID: Final = b"PARQUET:field_id"
ROW_GROUP_BYTES: Final = 64 << 20  # in memory; the most that an open file buffers
OPEN_FILES: Final = 512  # with more partitions than that, the oldest file is closed
HELD_BYTES: Final = 256 << 20  # in all buffers together

logger = logging.getLogger(__name__)


def arrow_schema(schema: StructType, never_null: Collection[str] = ()) -> pa.Schema:
    plain = to_arrow_schema(schema, timezone="UTC")
    return pa.schema([pa.field(field.name, field.type, field.name not in never_null) for field in plain])


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch in the schema of the files; Spark's times are in the time zone of the session.

    ValueError is raised for a null in a column that is not nullable.
    """
    for field in schema:
        if not field.nullable and batch.column(field.name).null_count:
            raise ValueError(f"column {field.name!r} has a null, and is not nullable in the table")
    fitting = batch if batch.schema.equals(schema) else batch.select(schema.names).cast(schema)
    columns = [_filled(fitting.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def is_variant(kind: pa.DataType) -> bool:
    """Return whether it is Spark's struct of a VARIANT, which Delta stores as it is."""
    return isinstance(kind, pa.StructType) and any(b"variant" in (field.metadata or {}) for field in kind)


def _has_variant(kind: pa.DataType) -> bool:
    inner = [kind.field(n).type for n in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return is_variant(kind) or any(map(_has_variant, inner))


def _filled(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the column with empty fields of null variants: Spark has nulls there, which Parquet refuses."""
    if not _has_variant(kind):
        return column
    if not pa.types.is_struct(kind):
        # In lists and maps, Arrow fills them itself.
        return pa.array(column.to_pylist(), kind)
    filled = [
        pc.fill_null(column.field(n), b"") if is_variant(kind) else _filled(column.field(n), field.type)
        for n, field in enumerate(kind)
    ]
    return pa.StructArray.from_arrays(filled, fields=list(kind), mask=column.is_null())


def read_rows(
    filesystem: pa.fs.FileSystem,
    path: str,
    schema: pa.Schema,
    ids: Mapping[str, int] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with all columns of the schema: from the file, constant, or null.

    With `ids` a column is found by its id, as it may have been renamed, unless the file has no ids.
    """
    with pq.ParquetFile(path, filesystem=filesystem) as opened:
        names = column_names(opened.schema_arrow, schema.names, ids)
        for batch in opened.iter_batches(columns=list(names.values())):
            columns = [
                batch.column(names[field.name])
                if field.name in names
                else constant((constants or {}).get(field.name), field.type, batch.num_rows)
                for field in schema
            ]
            yield as_schema(pa.RecordBatch.from_arrays(columns, names=schema.names), schema)


def column_names(found: pa.Schema, wanted: Iterable[str], ids: Mapping[str, int] | None) -> dict[str, str]:
    """Return the names of columns in a file, by their names in the table."""
    by_id = {
        int(column.metadata[FIELD_ID]): column.name
        for column in found
        if column.metadata and FIELD_ID in column.metadata
    }
    if ids is None or not by_id:
        return {name: name for name in wanted if name in found.names}
    return {name: by_id[ids[name]] for name in wanted if ids[name] in by_id}


def constant(value: Any, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.nulls(rows, kind) if value is None else pa.repeat(pa.scalar(value, kind), rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A complete file, which is not part of the table before the driver commits it."""

    path: str  # relative to the table
    size: int
    partition: dict[str, Any]
    footer: pq.FileMetaData


class _OpenFile:
    """Buffers rows until they fill a row group."""

    def __init__(
        self, filesystem: pa.fs.FileSystem, path: str, schema: pa.Schema, row_group_bytes: int
    ) -> None:
        self.path = path
        self._stream = filesystem.open_output_stream(path)
        self._writer = pq.ParquetWriter(self._stream, schema, compression="zstd")
        self._row_group_bytes = row_group_bytes
        self._waiting: list[pa.RecordBatch] = []
        self.held = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self.held += batch.nbytes
        if self.held >= self._row_group_bytes:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            rows = pa.Table.from_batches(self._waiting)
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        self._waiting, self.held = [], 0

    @property
    def size(self) -> int:
        written: int = self._stream.tell()
        return written

    def close(self) -> tuple[int, pq.FileMetaData]:
        self.flush()
        self._writer.close()
        size = self.size
        self._stream.close()
        return size, self._writer.writer.metadata

    def abandon(self) -> None:
        self._waiting, self.held = [], 0
        self._stream.close()


class Files:
    def __init__(
        self,
        filesystem: pa.fs.FileSystem,
        schema: pa.Schema,
        *,
        partition_by: Sequence[str],
        target_bytes: int,
        below: str = "",
    ) -> None:
        """`below` is the directory of the files, with a trailing slash."""
        self._filesystem = filesystem
        self._below = below
        self._schema = schema
        self.inner = pa.schema([field for field in schema if field.name not in partition_by])
        self._partition_by = tuple(partition_by)
        self._target_bytes = target_bytes
        self._open: dict[Values, _OpenFile] = {}  # the oldest first
        self._done: list[DataFile] = []

    def add(self, batch: pa.RecordBatch) -> None:
        for values, rows in self.divided(as_schema(batch, self._schema)):
            file = self._open.get(values) or self._begin(values)
            file.add(rows)
            if file.size >= self._target_bytes:
                self._finish(values)
        while sum(file.held for file in self._open.values()) > HELD_BYTES:
            max(self._open.values(), key=lambda file: file.held).flush()

    def _begin(self, values: Values) -> _OpenFile:
        if len(self._open) >= OPEN_FILES:
            self._finish(next(iter(self._open)))
        path = f"{self._below}{self.directory(values)}part-{secrets.token_hex(16)}.zstd.parquet"
        # A file may exceed its target size by a row group.
        row_group_bytes = min(ROW_GROUP_BYTES, self._target_bytes // 4)
        self._open[values] = _OpenFile(self._filesystem, path, self.inner, row_group_bytes)
        return self._open[values]

    def _finish(self, values: Values) -> None:
        file = self._open[values]
        size, footer = file.close()
        del self._open[values]
        partition = self.partition(values)
        self._done.append(DataFile(path=file.path, size=size, partition=partition, footer=footer))

    def divided(self, batch: pa.RecordBatch) -> Iterator[tuple[Values, pa.RecordBatch]]:
        """Yield the rows of each partition, with the columns of files."""
        return divided(batch, self._partition_by)

    def directory(self, values: Values) -> str:
        """Return the directory of a partition, with a trailing slash."""
        return directory(self._partition_by, values)

    def partition(self, values: Values) -> dict[str, Any]:
        """Return the values of a partition by their names."""
        return dict(zip(self._partition_by, values, strict=True))

    def write(self, batches: Iterable[pa.RecordBatch]) -> list[DataFile]:
        """Write all rows and return the files; after an error, all files are removed."""
        try:
            for batch in batches:
                self.add(batch)
            for values in list(self._open):
                self._finish(values)
        except BaseException:
            self.discard()
            raise
        return self._done

    def discard(self) -> None:
        """Remove all files, complete or not."""
        for file in self._open.values():
            file.abandon()
        paths = [file.path for file in self._open.values()]
        remove(self._filesystem, paths + [file.path for file in self._done])


def remove(filesystem: pa.fs.FileSystem, paths: Iterable[str]) -> None:
    """Remove files that are in no table. A file that remains only takes up space."""
    for path in paths:
        try:
            filesystem.delete_file(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            logger.warning("%s is not part of a table, and could not be removed: %s", path, error)


class TableSink(Sink):
    """A table; tasks write files to it, which are not part of the table before the commit."""

    @abstractmethod
    def remove(self, files: Sequence[Any]) -> None:
        """Remove files that are not part of the table."""

    def abort(self, written: Sequence[Any], batch: Batch | None, *, is_complete: bool) -> None:
        """Remove the files of the tasks, unless the commit has failed.

        A commit may have succeeded although its answer was lost: then the files are part of the table.
        Otherwise they only take up space.
        """
        if not is_complete:
            self.remove(written)
        elif written:
            logger.warning("the commit of %s has failed; %d files are kept", batch, len(written))
