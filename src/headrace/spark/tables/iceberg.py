"""`format("headrace-iceberg")`: DataFrames and streams into an Iceberg table, each batch exactly once."""

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from headrace.spark.tables.iceberg_compaction import compact
from headrace.spark.tables.iceberg_files import data_filesystem, described, file_schema
from headrace.spark.tables.iceberg_table import WHAT, add_files, open_table
from headrace.spark.tables.options import IcebergOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.writers import Batch, BatchWriter, Sink, StreamWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.spark.tables.files import DataFile

logger = logging.getLogger(__name__)


class IcebergSource(DataSource):
    """A table to write to, in any catalog that pyiceberg knows."""

    @classmethod
    def name(cls) -> str:
        return "headrace-iceberg"

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return BatchWriter(IcebergSink(IcebergOptions.of(self.options), schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802  Spark's name
        # In complete mode each batch is the whole result: it replaces what the one before has written.
        return StreamWriter(IcebergSink(IcebergOptions.of(self.options), schema, overwrite=overwrite))


class IcebergSink(Sink):
    """UnfitTable if the table cannot take rows of this schema; it is made if there is none."""

    def __init__(self, options: IcebergOptions, schema: StructType, *, overwrite: bool) -> None:
        table = open_table(options, schema)
        self._options = options
        self._overwrite = overwrite
        self._schema = schema
        # What a task needs to know. It has no use for pyiceberg, which takes a second or two to import.
        self._filesystem = data_filesystem(table)
        self._file_schema = file_schema(table, schema.fieldNames())

    def write(self, batches: "Iterator[pa.RecordBatch]") -> "list[DataFile]":
        needed("pyarrow", WHAT)
        from headrace.spark.tables.files import Files  # noqa: PLC0415

        files = Files(
            self._filesystem,
            self._file_schema,
            partition_by=(),
            target_bytes=self._options.target_file_bytes,
        )
        return files.write(batches)

    def commit(self, files: "Sequence[DataFile]", batch: Batch | None) -> None:
        if not files and not self._overwrite:
            return  # an empty batch may be repeated as often as it likes
        table = open_table(self._options, self._schema)
        if not add_files(table, described(table, files), overwrite=self._overwrite, batch=batch):
            logger.info("%s is in %s already", batch, self._options.table)
            self.remove(files)
        number = batch.batch_id if batch else len(table.snapshots()) - 1
        if self._options.compact_every and (number + 1) % self._options.compact_every == 0:
            compact(table, self._options.target_file_bytes)

    def remove(self, files: "Sequence[DataFile]") -> None:
        from headrace.spark.tables.files import remove  # noqa: PLC0415

        remove(self._filesystem, [each.path for each in files])
