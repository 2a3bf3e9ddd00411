"""`format("headrace-delta")`: DataFrames and streams into a Delta table, each batch exactly once."""

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from headrace.spark.tables.delta_compaction import compact
from headrace.spark.tables.delta_table import WHAT, DeltaFile, add_files, filesystem, open_table
from headrace.spark.tables.options import DeltaOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.writers import Batch, BatchWriter, Sink, StreamWriter

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

logger = logging.getLogger(__name__)


class DeltaSource(DataSource):
    """A table to write to; deltalake, or any other reader of Delta tables, reads it."""

    @classmethod
    def name(cls) -> str:
        return "headrace-delta"

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return BatchWriter(DeltaSink(DeltaOptions.of(self.options), schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802  Spark's name
        # In complete mode each batch is the whole result: it replaces what the one before has written.
        return StreamWriter(DeltaSink(DeltaOptions.of(self.options), schema, overwrite=overwrite))


class DeltaSink(Sink):
    """UnfitTable if the table cannot take rows of this schema; it is made if there is none."""

    def __init__(self, options: DeltaOptions, schema: StructType, *, overwrite: bool) -> None:
        table = open_table(options, schema)
        self._options = options
        self._overwrite = overwrite
        self._schema = schema
        self._partition_by = tuple(table.metadata().partition_columns)
        self._never_null = {each.name for each in table.schema().fields if not each.nullable}

    def write(self, batches: "Iterator[pa.RecordBatch]") -> list[DeltaFile]:
        needed("pyarrow", WHAT)
        from headrace.spark.tables.arrow import arrow_schema  # noqa: PLC0415
        from headrace.spark.tables.files import Files  # noqa: PLC0415
        from headrace.spark.tables.statistics import statistics  # noqa: PLC0415

        files = Files(
            filesystem(self._options),
            arrow_schema(self._schema, self._never_null),
            partition_by=self._partition_by,
            target_bytes=self._options.target_file_bytes,
        )
        return [
            DeltaFile(each.path, each.size, each.partition, statistics(each.footer, files.inner))
            for each in files.write(batches)
        ]

    def commit(self, files: Sequence[DeltaFile], batch: Batch | None) -> None:
        if not files and not self._overwrite:
            return  # an empty batch may be repeated as often as it likes
        table = self._open()
        if not add_files(table, files, reopen=self._open, overwrite=self._overwrite, batch=batch):
            logger.info("%s is in %s already", batch, self._options.path)
            self.remove(files)
        number = batch.batch_id if batch else table.version()
        if self._options.compact_every and (number + 1) % self._options.compact_every == 0:
            compact(self._options)

    def _open(self) -> "DeltaTable":
        return open_table(self._options, self._schema)

    def remove(self, files: Sequence[DeltaFile]) -> None:
        from headrace.spark.tables.files import remove  # noqa: PLC0415

        remove(filesystem(self._options), [each.path for each in files])
