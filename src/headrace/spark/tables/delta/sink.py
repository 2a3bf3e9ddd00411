"""The sink of a Delta table."""

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from headrace.spark.batch import Batch
from headrace.spark.tables.delta.compaction import compact
from headrace.spark.tables.delta.table import DeltaFile, add_files, filesystem, open_table, stored_schema
from headrace.spark.tables.evolution import written
from headrace.spark.tables.files import Files, TableSink, arrow_schema, remove
from headrace.spark.tables.options import DeltaOptions
from headrace.spark.tables.statistics import statistics

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

logger = logging.getLogger(__name__)


class DeltaSink(TableSink):
    """Creates the table if it does not exist. UnfitTable is raised if it cannot have rows of this schema."""

    def __init__(self, options: DeltaOptions, schema: StructType, *, overwrite: bool) -> None:
        table = open_table(options, schema)
        self._options = options
        self._overwrite = overwrite
        self._schema = schema
        self._partition_by = tuple(table.metadata().partition_columns)
        self._written = written(schema, stored_schema(table)) if options.evolve else schema
        self._never_null = {field.name for field in table.schema().fields if not field.nullable}

    def write(self, batches: "Iterator[pa.RecordBatch]") -> list[DeltaFile]:
        files = Files(
            filesystem(self._options),
            arrow_schema(self._written, self._never_null),
            partition_by=self._partition_by,
            target_bytes=self._options.target_file_bytes,
        )
        return [
            DeltaFile(file.path, file.size, file.partition, statistics(file.footer, files.inner))
            for file in files.write(batches)
        ]

    def commit(self, files: Sequence[DeltaFile], batch: Batch | None) -> None:
        if not files and not self._overwrite:
            return  # an empty batch can be repeated without effect
        table = self._open()
        if not add_files(table, files, reopen=self._open, overwrite=self._overwrite, batch=batch):
            logger.info("%s has already been committed to %s", batch, self._options.path)
            self.remove(files)
        number = batch.batch_id if batch else table.version()
        if self._options.compact_every and (number + 1) % self._options.compact_every == 0:
            compact(self._options)

    def _open(self) -> "DeltaTable":
        return open_table(self._options, self._schema)

    def remove(self, files: Sequence[DeltaFile]) -> None:
        remove(filesystem(self._options), [file.path for file in files])
