"""The partition of each row of an Iceberg table: hidden partitioning, computed on whole columns.

Tasks use this module and pyiceberg-core, and not pyiceberg, which takes a second or two to import.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs

from headrace.spark.tables.files import Files
from headrace.spark.tables.packages import needed
from headrace.spark.tables.partitions import Values, directory, grouped

EPOCH: Final = dt.date(1970, 1, 1)
EPOCH_YEAR: Final = 1970
_HOURS: Final = 24


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec: a transform of a column.

    `argument` is the number of buckets, or the width of a truncation.
    """

    name: str
    source: tuple[str, ...]  # the path of the column; longer than one for a field of a struct
    transform: str  # identity, bucket, truncate, year, month, day, hour or void
    argument: int = 0

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the value of each row as Iceberg stores it: dates and times are integers."""
        if self.transform == "void" or self.source[0] not in batch.schema.names:
            return pa.nulls(batch.num_rows, pa.int32())
        column = batch.column(self.source[0])
        if len(self.source) > 1:
            column = pc.struct_field(column, list(self.source[1:]))
        if self.transform != "identity":
            if pa.types.is_large_binary(column.type):
                column = column.cast(pa.binary())
            arguments = [self.argument] if self.argument else []
            transform = needed("pyiceberg_core", 'format("headrace-iceberg")').transform
            column = getattr(transform, self.transform)(column, *arguments)
        if pa.types.is_date32(column.type):
            return column.view(pa.int32())
        return column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column

    def text(self, value: Any) -> str | None:
        """Return a value for the name of a directory: 2026-01-31 for the day 20484."""
        if value is None:
            return None
        if self.transform == "day":
            return (EPOCH + dt.timedelta(days=value)).isoformat()
        if self.transform == "hour":
            return f"{(EPOCH + dt.timedelta(days=value // _HOURS)).isoformat()}-{value % _HOURS:02}"
        if self.transform == "month":
            return f"{EPOCH_YEAR + value // 12}-{value % 12 + 1:02}"
        if self.transform == "year":
            return str(EPOCH_YEAR + value)
        return value.hex() if isinstance(value, bytes) else str(value)


class PartitionedFiles(Files):
    """The files of one task, each with the rows of one partition. The source columns stay in the files."""

    def __init__(
        self,
        filesystem: pa.fs.FileSystem,
        schema: pa.Schema,
        fields: Sequence[PartitionField],
        *,
        target_bytes: int,
    ) -> None:
        super().__init__(filesystem, schema, partition_by=(), target_bytes=target_bytes)
        self._fields = tuple(fields)
        base = filesystem.base_fs if isinstance(filesystem, pa.fs.SubTreeFileSystem) else filesystem
        self._has_directories = isinstance(base, pa.fs.LocalFileSystem)

    def divided(self, batch: pa.RecordBatch) -> Iterator[tuple[Values, pa.RecordBatch]]:
        return grouped(batch, [field.values(batch) for field in self._fields])

    def directory(self, values: Values) -> str:
        names = [field.name for field in self._fields]
        texts = tuple(field.text(value) for field, value in zip(self._fields, values, strict=True))
        found = directory(names, texts)
        if found and self._has_directories:
            self._filesystem.create_dir(found, recursive=True)
        return found

    def partition(self, values: Values) -> dict[str, Any]:
        return {field.name: value for field, value in zip(self._fields, values, strict=True)}
