"""The rows of a table after a batch, as functions of DataFrames that executors compute."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.window import Window

from headrace.spark.merge.events import (
    DELETED,
    SEQUENCE,
    column,
    is_unavailable,
    prefixed,
    same_key,
    unavailable_columns,
)
from headrace.spark.merge.table import FILE
from headrace.spark.merge.upsert import END_AT, START_AT, Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STALE: Final = "__stale"
_PREFIX: Final = "__other_"
_DATA: Final = "__data"
_KIND: Final = "__kind"
# What a sequence of a key's history is, in the order in which they are preferred.
_END, _ROW, _EVENT, _DELETE = range(4)


def located(events: "DataFrame", rows: "DataFrame", upsert: Upsert) -> "DataFrame":
    """Return the keys of events that are in the table, with the file, and whether the row is newer.

    `rows` has the keys, SEQUENCE and FILE of the rows of files.
    """
    others = prefixed(rows, _PREFIX)
    newer = column(f"{_PREFIX}{SEQUENCE}") > column(SEQUENCE)
    return events.join(others, same_key(upsert, _PREFIX)).select(
        *map(column, upsert.keys),
        column(f"{_PREFIX}{FILE}").alias(FILE),
        F.coalesce(newer, F.lit(False)).alias(STALE),
    )


def without_stale(events: "DataFrame", found: "DataFrame", upsert: Upsert) -> "DataFrame":
    """Return the events without those whose row in the table is newer; `found` is of `located`."""
    return events.join(prefixed(found.where(STALE), _PREFIX), same_key(upsert, _PREFIX), "left_anti")


def without_deleted(events: "DataFrame", tombstones: "DataFrame", upsert: Upsert) -> "DataFrame":
    """Return the events without those that are not newer than a deletion of their key.

    Deletes remain, as they do no harm: the tombstone may be their own, written before the batch is repeated.
    """
    refused = same_key(upsert, _PREFIX) & (column(f"{_PREFIX}{SEQUENCE}") >= column(SEQUENCE))
    others = prefixed(tombstones, _PREFIX, [*upsert.keys, SEQUENCE])
    return events.join(others, refused & ~column(DELETED), "left_anti")


def without_keys(rows: "DataFrame", events: "DataFrame", upsert: Upsert) -> "DataFrame":
    """Return the rows that no event is about."""
    return rows.join(prefixed(events, _PREFIX, upsert.keys), same_key(upsert, _PREFIX), "left_anti")


def with_keys(rows: "DataFrame", events: "DataFrame", upsert: Upsert) -> "DataFrame":
    """Return the rows that at least one event is about."""
    return rows.join(prefixed(events, _PREFIX, upsert.keys), same_key(upsert, _PREFIX), "left_semi")


def current_rows(
    rows: "DataFrame", events: "DataFrame", upsert: Upsert, *, fill: bool = False
) -> "DataFrame":
    """Return the new content of files with these rows: each event replaces or deletes the row of its key.

    With `fill`, an event with a placeholder keeps the value of the row.
    """
    upserts = events.where(~column(DELETED)).select(*map(column, rows.columns))
    unavailable = unavailable_columns(rows.schema, upsert) if fill else {}
    if unavailable:
        others = prefixed(rows, _PREFIX, [*upsert.keys, *unavailable])
        has_row = column(f"{_PREFIX}{upsert.keys[0]}").isNotNull()
        values = {
            name: F.when(is_so & has_row, column(f"{_PREFIX}{name}")).otherwise(column(name)).alias(name)
            for name, is_so in unavailable.items()
        }
        upserts = upserts.join(others, same_key(upsert, _PREFIX), "left").select(
            *(values.get(name, column(name)) for name in rows.columns)
        )
    return without_keys(rows, events, upsert).unionByName(upserts)


def history_rows(
    rows: "DataFrame",
    events: "DataFrame",
    tombstones: "DataFrame | None",
    upsert: Upsert,
    *,
    fill: bool = False,
) -> "DataFrame":
    """Return the new content of files that have the whole history of the keys of the events.

    The history of a key is a list of sequences: those of its rows and of its deletions. The end of a row is a
    deletion if no other row starts there. At the same sequence a deletion wins over an event, and an event
    over the row. Every row ends at the next sequence. With `fill`, a version with a placeholder has the value
    of the version before it.
    """
    data = [name for name in rows.columns if name not in (*upsert.keys, START_AT, END_AT)]
    changed = with_keys(rows, events, upsert)
    keys = [column(name) for name in upsert.keys]
    empty = F.lit(None).cast(rows.select(F.struct(*map(column, data)).alias(_DATA)).schema[_DATA].dataType)
    points = [
        changed.select(
            *keys,
            column(START_AT).alias(SEQUENCE),
            F.lit(_ROW).alias(_KIND),
            F.struct(*map(column, data)).alias(_DATA),
        ),
        changed.where(column(END_AT).isNotNull()).select(
            *keys, column(END_AT).alias(SEQUENCE), F.lit(_END).alias(_KIND), empty.alias(_DATA)
        ),
        events.select(
            *keys,
            SEQUENCE,
            F.when(column(DELETED), _DELETE).otherwise(_EVENT).alias(_KIND),
            F.struct(*map(column, data)).alias(_DATA),
        ),
    ]
    if tombstones is not None:
        deleted = tombstones.select(*keys, SEQUENCE, F.lit(_DELETE).alias(_KIND), empty.alias(_DATA))
        points.append(with_keys(deleted, events, upsert))
    history = points[0]
    for more in points[1:]:
        history = history.unionByName(more)
    kinds = history.groupBy(*keys, column(SEQUENCE)).agg(
        F.max(_KIND).alias(_KIND),
        F.bool_or(column(_KIND) == _ROW).alias("__row"),
        F.bool_or(column(_KIND) == _END).alias("__end"),
        F.max_by(_DATA, _KIND).alias(_DATA),
    )
    deletes = (column(_KIND) == _DELETE) | (column("__end") & ~column("__row"))
    following = F.lead(SEQUENCE).over(Window.partitionBy(*keys).orderBy(SEQUENCE))
    versions = kinds.select(
        *keys, _DATA, column(SEQUENCE).alias(START_AT), following.alias(END_AT), deletes.alias(DELETED)
    )
    values = {name: F.col(_DATA).getField(name) for name in data}
    so_far = Window.partitionBy(*keys).orderBy(START_AT).rowsBetween(Window.unboundedPreceding, 0)
    for name in unavailable_columns(rows.schema, upsert) if fill else ():
        if name not in values:
            continue
        is_so = is_unavailable(values[name], rows.schema[name].dataType, upsert.unavailable)
        assert is_so is not None, name
        value = F.struct(values[name].alias(name))
        known = F.last(F.when(~F.coalesce(is_so, F.lit(False)), value), ignorenulls=True).over(so_far)
        values[name] = F.coalesce(known, value).getField(name)
    current = versions.where(~column(DELETED))
    recomputed = current.select(
        *keys, *(value.alias(name) for name, value in values.items()), START_AT, END_AT
    )
    return without_keys(rows, events, upsert).unionByName(recomputed.select(*map(column, rows.columns)))
