"""Iceberg tables whose files a merge replaces: one snapshot with the operation `overwrite`.

The catalog refuses the commit if the table has a newer snapshot than the one that was read.
"""

import datetime as dt
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from pyiceberg import types as iceberg
from pyiceberg.conversions import from_bytes
from pyiceberg.transforms import IdentityTransform
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from headrace.spark.batch import Batch
from headrace.spark.merge.bounds import Bounds, bounds_of, known
from headrace.spark.merge.events import column
from headrace.spark.merge.table import Table, TableFile, TableVersion
from headrace.spark.tables.iceberg.files import data_location, described
from headrace.spark.tables.iceberg.partitions import PartitionField
from headrace.spark.tables.iceberg.schema import spark_schema
from headrace.spark.tables.iceberg.sink import IcebergSink
from headrace.spark.tables.iceberg.spec import fields_of
from headrace.spark.tables.iceberg.table import (
    BATCH_ID,
    BATCH_OF,
    QUERY_ID,
    WHAT,
    is_in,
    open_table,
    without_retries,
)
from headrace.spark.tables.options import IcebergOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import UnfitTable, storable

if TYPE_CHECKING:
    import pyarrow.fs
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import DataFile as ManifestEntry
    from pyiceberg.table import Table as PyIcebergTable
    from pyspark.sql import Column

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

logger = logging.getLogger(__name__)


def iceberg_table(options: IcebergOptions, schema: StructType) -> Table:
    """Return a table of a catalog, created for rows of `schema` if it does not exist."""
    return Table(
        f"Iceberg table {options.table}", lambda: IcebergVersion(options, open_table(options, schema))
    )


class IcebergVersion(TableVersion):
    def __init__(self, options: IcebergOptions, table: "PyIcebergTable") -> None:
        self._table = table
        self.schema = spark_schema(table.schema())
        self.sink = IcebergSink(options, self.schema, overwrite=False)
        self.ids = {field.name: field.field_id for field in table.schema().fields}
        self.files = rewritable_files(table)
        io = _io(table)
        scheme, host, _ = io.parse_location(data_location(table))
        self.filesystem = partial(_itself, io.fs_by_scheme(scheme, host))

    def partition_order(self) -> "list[Column]":
        return [order for field in fields_of(self._table) if (order := _order(field)) is not None]

    def has(self, batch: Batch) -> bool:
        return is_in(self._table, batch)

    @property
    def definition(self) -> object:
        return self._table.schema(), self._table.spec()

    def replace(self, removed: Sequence[TableFile], added: Sequence[Any], batch: Batch) -> bool:
        summary = {QUERY_ID: batch.query_id, BATCH_ID: str(batch.batch_id)}
        new = described(self._table, added)
        try:
            with without_retries(self._table).transaction() as transaction:
                transaction.set_properties({f"{BATCH_OF}{batch.query_id}": str(batch.batch_id)})
                with transaction.update_snapshot(snapshot_properties=summary).overwrite() as snapshot:
                    for file in removed:
                        snapshot.delete_data_file(file.entry)
                    for entry in new:
                        snapshot.append_data_file(entry)
        except needed("pyiceberg.exceptions", WHAT).CommitFailedException as error:
            logger.info("%s was not committed: %s", batch, error)
            return False
        return True

    def contains(self, added: Sequence[Any]) -> bool:
        return any(entry.file_path in self.files for entry in described(self._table, added))


def rewritable_files(table: "PyIcebergTable") -> dict[str, TableFile]:
    """Return the files of a table; UnfitTable if its rows cannot be moved to other files, or be deleted."""
    storable(spark_schema(table.schema()))  # raises UnfitTable for types that Spark does not have
    io = _io(table)
    scheme, host, _ = io.parse_location(data_location(table))
    names = {field.field_id: field.name for field in table.schema().fields}
    found = {}
    for task in table.scan().plan_files():
        entry = task.file
        name = entry.file_path
        if task.delete_files:
            raise UnfitTable(
                f"upserts cannot replace the file {name}, which has deleted rows (merge-on-read): "
                "rewrite the data files in the program that has deleted them"
            )
        found_scheme, found_host, path = io.parse_location(name)
        if (found_scheme, found_host) != (scheme, host):
            raise UnfitTable(f"upserts cannot replace the file {name}: it is not at {scheme}://{host}")
        partition = tuple(entry.partition[n] for n in range(len(entry.partition)))
        # Files of migrated tables do not have the columns of identity partitions.
        constants = {
            names[field.source_id]: value
            for field, value in zip(table.specs()[entry.spec_id].fields, partition, strict=True)
            if isinstance(field.transform, IdentityTransform) and field.source_id in names
        }
        found[name] = TableFile(
            name=name,
            path=path,
            size=entry.file_size_in_bytes,
            bounds=_bounds(table, entry),
            constants=constants,
            partition=(entry.spec_id, *partition),
            entry=entry,
        )
    return found


def _io(table: "PyIcebergTable") -> "PyArrowFileIO":
    found: PyArrowFileIO = needed("pyiceberg.io.pyarrow", WHAT).PyArrowFileIO(dict(table.io.properties))
    return found


def _order(field: PartitionField) -> "Column | None":
    """Return an order in which rows of a partition are near each other; None for buckets.

    It is only about the number of files: days are those of the session's time zone.
    """
    if field.transform in ("bucket", "void"):
        return None
    source = column(field.source[0])
    for name in field.source[1:]:
        source = source.getField(name)
    return source if field.transform in ("identity", "truncate") else F.date_trunc(field.transform, source)


def _bounds(table: "PyIcebergTable", entry: "ManifestEntry") -> dict[str, Bounds]:
    low, high = entry.lower_bounds or {}, entry.upper_bounds or {}
    return known(
        (field.name, bounds_of(*(_value(field.field_type, of[field.field_id]) for of in (low, high))))
        for field in table.schema().fields
        if field.field_id in low and field.field_id in high
    )


def _value(kind: iceberg.IcebergType, data: bytes) -> Any:
    """Return a bound as Python represents it; None for a type whose bounds are not compared."""
    if isinstance(kind, iceberg.TimestamptzType):
        return _EPOCH + dt.timedelta(microseconds=cast("int", from_bytes(kind, data)))
    if isinstance(kind, iceberg.IntegerType | iceberg.LongType | iceberg.StringType | iceberg.DateType):
        return from_bytes(kind, data)  # of a date: days since 1970
    return None


def _itself(filesystem: "pyarrow.fs.FileSystem") -> "pyarrow.fs.FileSystem":
    return filesystem
