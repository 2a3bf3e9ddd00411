"""`format("headrace-delta")` and `format("headrace-iceberg")`: DataFrames and streams into tables.

Spark imports this module whenever it looks for a data source, so the packages of the tables are imported
later.
"""

from abc import abstractmethod

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from headrace.spark.batch import BatchWriter, Sink, StreamWriter
from headrace.spark.errors import InvalidOption
from headrace.spark.garbage import freeze_modules
from headrace.spark.tables.options import DeltaOptions, IcebergOptions, identified_batch
from headrace.spark.tables.packages import needed


class _TableSource(DataSource):
    @abstractmethod
    def _sink(self, schema: StructType, *, overwrite: bool) -> Sink: ...

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return BatchWriter(self._sink(schema, overwrite=overwrite), identified_batch(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        if identified_batch(self.options) is not None:
            raise InvalidOption("txnAppId", "a streaming query has the number of its batch: leave it out")
        freeze_modules()  # Spark calls this with every batch, in two workers: before it and at its commit
        # In complete mode each batch is the whole result, and replaces the result of the batch before.
        return StreamWriter(self._sink(schema, overwrite=overwrite))


class DeltaSource(_TableSource):
    @classmethod
    def name(cls) -> str:
        return "headrace-delta"

    def _sink(self, schema: StructType, *, overwrite: bool) -> Sink:
        needed("pyarrow", 'format("headrace-delta")')
        from headrace.spark.tables.delta.sink import DeltaSink  # noqa: PLC0415

        return DeltaSink(DeltaOptions.of(self.options), schema, overwrite=overwrite)


class IcebergSource(_TableSource):
    @classmethod
    def name(cls) -> str:
        return "headrace-iceberg"

    def _sink(self, schema: StructType, *, overwrite: bool) -> Sink:
        needed("pyarrow", 'format("headrace-iceberg")')
        from headrace.spark.tables.iceberg.sink import IcebergSink  # noqa: PLC0415

        return IcebergSink(IcebergOptions.of(self.options), schema, overwrite=overwrite)
