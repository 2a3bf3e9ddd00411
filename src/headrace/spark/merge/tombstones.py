"""Tombstones: deletions that are remembered for a time, in a table beside the table.

They are written before the batch is committed to the table. If the batch is not committed then, it is
repeated, and its tombstones only refuse events that are not newer than its deletions.
"""

import datetime as dt
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType, TimestampType

from headrace.spark.batch import Batch
from headrace.spark.merge.bounds import comparable
from headrace.spark.merge.events import DELETED, SEQUENCE, column, sequence_type
from headrace.spark.merge.table import Table, TableFile, TableVersion
from headrace.spark.merge.upsert import Upsert
from headrace.spark.tables.attempts import attempts
from headrace.spark.tables.schema import TableUnavailable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELETED_AT: Final = "__deleted_at"
MOST_FILES: Final = 20  # more of them are merged
SMALL_BYTES: Final = 32 << 20


def tombstone_schema(events: StructType, upsert: Upsert) -> StructType:
    """Return the columns of tombstones: keys, sequence, and when the deletion arrived."""
    keys = StructType([StructField(name, events[name].dataType) for name in upsert.keys])
    return keys.add(SEQUENCE, sequence_type(events, upsert)).add(DELETED_AT, TimestampType())


def write_tombstones(
    table: Table, events: "DataFrame", batch: Batch, *, now: dt.datetime, keep: dt.timedelta
) -> TableVersion:
    """Add the deletions of a batch, unless they are there; forget expired ones; return the new version."""
    oldest = now - keep
    for _ in attempts():
        version = table.load()
        if version.has(batch):
            return version
        removed = [file for file in version.files.values() if _is_expired(file, oldest)]
        small = [file for file in version.files.values() if file.size < SMALL_BYTES and file not in removed]
        deletes = events.where(DELETED).withColumn(DELETED_AT, F.lit(now))
        rows = deletes.select(
            *(column(field.name).cast(field.dataType).alias(field.name) for field in version.schema.fields)
        )
        if len(small) > MOST_FILES:
            old = version.scan(events.sparkSession, small, version.schema.fieldNames())
            rows = rows.unionByName(old.where(column(DELETED_AT) >= F.lit(oldest)))
            removed += small
        added = version.write(rows.repartition(1))
        if version.replace(removed, added, batch):
            return table.load()
        newer = table.load()
        # Without a newer version this commit may still succeed, and its files are needed.
        if newer.files.keys() != version.files.keys() and not newer.contains(added):
            version.sink.remove(added)
    raise TableUnavailable(f"{table.label}: too many concurrent commits")


def _is_expired(file: TableFile, oldest: dt.datetime) -> bool:
    known, limit = file.bounds.get(DELETED_AT), comparable(oldest)
    if known is None or isinstance(known.high, str) or not isinstance(limit, int):
        return False
    return known.high < limit
