"""A table whose files can be replaced: what a merge needs of Delta and Iceberg."""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from headrace.spark.batch import Batch
from headrace.spark.merge.bounds import Bounds
from headrace.spark.tables.files import TableSink, arrow_schema, constant, read_rows

if TYPE_CHECKING:
    import pyarrow.fs
    from pyspark.sql import Column, DataFrame, SparkSession

FILE: Final = "__file"  # the column with the name of the file that a row was read from
Filesystem: TypeAlias = "Callable[[], pa.fs.FileSystem]"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """A file of a table."""

    name: str  # as in the table's list of files
    path: str  # in the file system of the table
    size: int
    bounds: Mapping[str, Bounds]
    constants: Mapping[str, Any] = field(default_factory=dict)  # partition columns, if the file lacks them
    partition: Hashable = ()  # files of the same partition can be merged
    entry: Any = None  # of an Iceberg manifest


class TableVersion(ABC):
    """A version of a table: its files, and a commit that succeeds only if it is still the last version."""

    schema: StructType
    files: Mapping[str, TableFile]
    sink: TableSink  # writes rows of `schema`
    filesystem: Filesystem
    ids: Mapping[str, int] | None = None  # of columns, if the format identifies them by id

    @abstractmethod
    def has(self, batch: Batch) -> bool:
        """Return whether this batch, or a later one of its query, has been committed."""

    @property
    @abstractmethod
    def definition(self) -> object:
        """The schema, the partitioning and the properties that matter for new files."""

    @abstractmethod
    def partition_order(self) -> "list[Column]":
        """Return an order in which rows of the same partition are near each other."""

    @abstractmethod
    def replace(self, removed: Sequence[TableFile], added: Sequence[Any], batch: Batch) -> bool:
        """Make the next version, with the batch; return False, without a change, if it exists already."""

    @abstractmethod
    def contains(self, added: Sequence[Any]) -> bool:
        """Return whether any of these new files is part of the table."""

    def scan(
        self, spark: "SparkSession", files: Iterable[TableFile], columns: Iterable[str], *, name: bool = False
    ) -> "DataFrame":
        """Return these columns of the rows of files; with `name` also the file's name, in FILE.

        Executors read the files with the code that writes them, so a URL needs no jar. Each task gets about
        the same number of bytes.
        """
        wanted = StructType([self.schema[column] for column in columns])
        read = _Read(self.filesystem, wanted, self.ids, name=name)
        by_size = sorted(files, key=lambda file: file.size, reverse=True)
        tasks = min(len(by_size), spark.sparkContext.defaultParallelism) or 1
        dealt = [file for n in range(tasks) for file in by_size[n::tasks]]
        # Executors do not need the rest.
        needed = [replace(file, bounds={}, partition=(), entry=None) for file in dealt]
        listed = spark.createDataFrame([(pickle.dumps(file),) for file in needed], "file binary")
        return listed.mapInArrow(read, read.schema)

    def write(self, rows: "DataFrame") -> list[Any]:
        """Write the rows to files, which are not part of the table yet; return their descriptions."""
        messages = rows.mapInArrow(_Write(self.sink), "files binary").collect()
        return [file for message in messages for file in pickle.loads(message["files"])]  # noqa: S301  our own


@dataclass(frozen=True, slots=True)
class Table:
    """A table, which other programs may write to."""

    label: str
    load: Callable[[], TableVersion]  # the current one; the table is created if it does not exist


@dataclass(frozen=True, slots=True)
class _Read:
    """Reads files on executors. A column that a file lacks is null."""

    filesystem: Filesystem
    columns: StructType
    ids: Mapping[str, int] | None
    name: bool

    @property
    def schema(self) -> StructType:
        return StructType([*self.columns.fields, *([StructField(FILE, StringType())] if self.name else [])])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filesystem = self.filesystem()
        nullable = [StructField(field.name, field.dataType) for field in self.columns.fields]
        schema = arrow_schema(StructType(nullable))
        for pickled in (pickled for batch in batches for pickled in batch.column(0).to_pylist()):
            file: TableFile = pickle.loads(pickled)  # noqa: S301  our own
            for rows in read_rows(filesystem, file.path, schema, self.ids, file.constants):
                name = constant(file.name, pa.string(), rows.num_rows)
                yield rows.append_column(FILE, name) if self.name else rows


@dataclass(frozen=True, slots=True)
class _Write:
    """Writes rows on executors, and returns descriptions of the files to the driver."""

    sink: TableSink

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        written = list(self.sink.write(batch for batch in batches if batch.num_rows))
        if written:
            yield pa.record_batch({"files": pa.array([pickle.dumps(written)], pa.binary())})
