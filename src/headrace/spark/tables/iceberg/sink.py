"""The sink of an Iceberg table."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from headrace.spark.batch import Batch
from headrace.spark.tables.files import DataFile, TableSink, remove
from headrace.spark.tables.iceberg.partitions import PartitionedFiles
from headrace.spark.tables.options import IcebergOptions

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IcebergFile:
    """A file, and the partition spec that it was written with."""

    file: DataFile
    spec_id: int


class IcebergSink(TableSink):
    """Creates the table if it does not exist. UnfitTable is raised if it cannot have rows of this schema.

    Tasks use this class as well, but not pyiceberg, which takes a second or two to import.
    """

    def __init__(self, options: IcebergOptions, schema: StructType, *, overwrite: bool) -> None:
        from headrace.spark.tables.iceberg.files import data_filesystem, file_schema  # noqa: PLC0415
        from headrace.spark.tables.iceberg.spec import fields_of  # noqa: PLC0415
        from headrace.spark.tables.iceberg.table import open_table  # noqa: PLC0415

        table = open_table(options, schema)
        self._options = options
        self._overwrite = overwrite
        self._schema = schema
        self._filesystem = data_filesystem(table)
        self._file_schema = file_schema(table, schema.fieldNames())
        self._spec_id = table.spec().spec_id
        self._partition_fields = fields_of(table)

    def write(self, batches: "Iterator[pa.RecordBatch]") -> list[IcebergFile]:
        files = PartitionedFiles(
            self._filesystem,
            self._file_schema,
            self._partition_fields,
            target_bytes=self._options.target_file_bytes,
        )
        return [IcebergFile(file, self._spec_id) for file in files.write(batches)]

    def commit(self, files: Sequence[IcebergFile], batch: Batch | None) -> None:
        from headrace.spark.tables.iceberg.compaction import compact  # noqa: PLC0415
        from headrace.spark.tables.iceberg.files import check_columns, described  # noqa: PLC0415
        from headrace.spark.tables.iceberg.table import add_files, open_table  # noqa: PLC0415

        if not files and not self._overwrite:
            return  # an empty batch can be repeated without effect
        table = open_table(self._options, self._schema)
        check_columns(table, files)
        if not add_files(table, described(table, files), overwrite=self._overwrite, batch=batch):
            logger.info("%s has already been committed to %s", batch, self._options.table)
            self.remove(files)
        number = batch.batch_id if batch else len(table.snapshots()) - 1
        if self._options.compact_every and (number + 1) % self._options.compact_every == 0:
            compact(table, self._options.target_file_bytes)

    def remove(self, files: Sequence[IcebergFile]) -> None:
        remove(self._filesystem, [file.file.path for file in files])
