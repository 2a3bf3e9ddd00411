"""The readers that Spark drives, for tests that drive them by hand."""

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from headrace.spark.options import SourceOptions
from headrace.spark.source import SCHEMA, BatchReader, StreamReader

ALL = ReadAllAvailable()
COLUMNS = tuple(SCHEMA.fieldNames())


def stream_reader(bootstrap: str, **options: str) -> StreamReader:
    given = {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest"} | options
    return StreamReader(SourceOptions.of(given, streaming=True), COLUMNS)


def batch_reader(bootstrap: str, **options: str) -> BatchReader:
    given = {"kafka.bootstrap.servers": bootstrap} | options
    return BatchReader(SourceOptions.of(given, streaming=False), COLUMNS)


def offsets_of(reader: StreamReader | BatchReader, tasks: list[InputPartition]) -> list[int]:
    return [offset for task in tasks for batch in reader.read(task) for offset in batch["offset"].to_pylist()]
