"""`format("headrace-delta")`: DataFrames and streams into a Delta table, each batch exactly once."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from headrace.spark.tables.delta_table import add_files, compact, filesystem, open_table, unknown_to
from headrace.spark.tables.options import DeltaOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.written import Written, batch_of, current_batch, files_of

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

    from headrace.spark.tables.files import DataFile

logger = logging.getLogger(__name__)


class DeltaSource(DataSource):
    """A table to write to; deltalake, or any reader of Delta tables, reads it."""

    @classmethod
    def name(cls) -> str:
        return "headrace-delta"

    def writer(self, schema: StructType, overwrite: bool) -> "BatchWriter":
        return BatchWriter(DeltaSink(DeltaOptions.of(self.options), schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> "StreamWriter":  # noqa: N802  Spark's name
        # In complete mode each batch is the whole result: it replaces what the one before has written.
        return StreamWriter(DeltaSink(DeltaOptions.of(self.options), schema, overwrite=overwrite))


class DeltaSink:
    """One table that rows of one schema go to. Made on the driver, sent to tasks, made again to commit."""

    def __init__(self, options: DeltaOptions, schema: StructType, *, overwrite: bool) -> None:
        table = open_table(options, schema)
        self._table: DeltaTable | None = table
        self.options = options
        self.overwrite = overwrite
        self._schema = schema
        self._partition_by = tuple(table.metadata().partition_columns)
        self._never_null = {each.name for each in table.schema().fields if not each.nullable}

    def __getstate__(self) -> Mapping[str, Any]:
        return self.__dict__ | {"_table": None}

    def write(self, batches: "Iterator[pa.RecordBatch]") -> Written:
        """Write all rows into files; on an executor."""
        needed("pyarrow", 'format("headrace-delta")')
        from headrace.spark.tables.arrow import arrow_schema  # noqa: PLC0415
        from headrace.spark.tables.files import Files  # noqa: PLC0415

        files = Files(
            filesystem(self.options),
            arrow_schema(self._schema, self._never_null),
            partition_by=self._partition_by,
            target_bytes=self.options.target_file_bytes,
        )
        try:
            for batch in batches:
                files.add(batch)
            return Written(files.close(), current_batch())
        except BaseException:
            files.discard()
            raise

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch_id: int | None = None) -> None:
        files: list[DataFile] = files_of(messages)
        batch = None if batch_id is None else batch_of(messages, batch_id)
        table = self._table or open_table(self.options, self._schema)
        if not files and not self.overwrite:
            return  # an empty batch may be repeated as often as it likes
        if not add_files(table, files, overwrite=self.overwrite, batch=batch):
            logger.info("batch %s is in %s already", batch_id, self.options.path)
            self._remove(table, files)
        every = self.options.compact_every
        number = table.version() if batch_id is None else batch_id
        if every and (number + 1) % every == 0:
            compact(table, self.options)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._remove(self._table or open_table(self.options, self._schema), files_of(messages))

    def _remove(self, table: "DeltaTable", files: "Sequence[DataFile]") -> None:
        """Remove what is no part of the table.

        Spark also aborts when `commit` has failed, and that can happen to one whose work is done: an answer
        from the storage that was lost, for instance. Files that the table knows stay.
        """
        from headrace.spark.tables.files import remove  # noqa: PLC0415

        remove(filesystem(self.options), unknown_to(table, files))


class BatchWriter(DataSourceArrowWriter):
    """`df.write.format("headrace-delta")`, mode append or overwrite."""

    def __init__(self, sink: DeltaSink) -> None:
        self._sink = sink

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        return self._sink.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.abort(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream.format("headrace-delta")`, output mode append or complete."""

    def __init__(self, sink: DeltaSink) -> None:
        self._sink = sink

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        return self._sink.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._sink.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        self._sink.abort(messages)
