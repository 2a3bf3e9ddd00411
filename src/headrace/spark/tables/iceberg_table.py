"""An Iceberg table: opened or made, and added to in one commit that carries the batch's id."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from headrace.spark.tables.attempts import ATTEMPTS, attempts
from headrace.spark.tables.options import IcebergOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import TableUnavailable, UnfitTable, check_fit, storable
from headrace.spark.tables.writers import Batch

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table, Transaction

WHAT: Final = 'format("headrace-iceberg")'
QUERY_ID: Final = "headrace.query-id"
BATCH_ID: Final = "headrace.batch-id"
BATCH_OF: Final = "headrace.batch-id-of."  # and a query's id: the property with the query's last batch
LOOK_BACK: Final = 100_000  # snapshots; the table's metadata has them all in memory anyway
_ADD_COLUMN: Final = "with pyiceberg: table.update_schema().add_column(...)"
_PROPERTIES: Final = {
    # Each commit writes the table's metadata anew: without this they would all be kept.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.parquet.compression-codec": "zstd",
}


def open_table(options: IcebergOptions, schema: StructType) -> "Table":
    """The table, made if there is none; UnfitTable if rows of that schema cannot be added to it."""
    needed("pyiceberg.io.pyarrow", WHAT)
    from headrace.spark.tables.arrow import arrow_schema  # noqa: PLC0415
    from headrace.spark.tables.iceberg_schema import spark_schema, widened  # noqa: PLC0415

    stored = widened(storable(schema))
    try:
        catalog = needed("pyiceberg.catalog", WHAT).load_catalog(options.catalog_name, **options.catalog)
        if not catalog.table_exists(options.table):
            catalog.create_namespace_if_not_exists(options.table.rpartition(".")[0])
            catalog.create_table_if_not_exists(options.table, arrow_schema(stored), properties=_PROPERTIES)
        table: Table = catalog.load_table(options.table)
    except Exception as error:  # catalogs are plugins, with errors of their own
        raise TableUnavailable(f"the table {options.table} cannot be opened: {error}") from error
    if not table.spec().is_unpartitioned():
        raise UnfitTable(f"the table {options.table} is divided ({table.spec()}): write to one that is not")
    check_fit(widened(schema), spark_schema(table.schema()), add_column=_ADD_COLUMN)
    return table


def add_files(
    table: "Table", files: Sequence["DataFile"], *, overwrite: bool = False, batch: Batch | None = None
) -> bool:
    """Make the files part of the table, in one commit; False if this batch was in it before.

    With `overwrite` they replace everything that was there before.
    """
    failed = needed("pyiceberg.exceptions", WHAT).CommitFailedException
    for attempt in attempts():
        if batch and is_in(table, batch):
            # After an attempt it may be this very commit, of which only the answer was lost.
            return attempt > 1
        try:
            with without_retries(table).transaction() as transaction:
                _add(transaction, files, overwrite=overwrite, batch=batch)
        except failed:  # somebody else was first; it may have been another driver with this very batch
            if attempt == ATTEMPTS:
                raise
            table.refresh()
        else:
            return True
    raise AssertionError("unreachable")


def is_in(table: "Table", batch: Batch) -> bool:
    """Whether the table has this batch, or a later one of the query."""
    return known_batches(table).get(batch.query_id, -1) >= batch.batch_id


def known_batches(table: "Table") -> dict[str, int]:
    """The last batch of every query that has written to the table.

    The table's properties have it, which stay when snapshots expire. Versions of Headrace that did not write
    them have left it in the summaries of snapshots: of the batch's own, and of compactions.
    """
    snapshots = needed("pyiceberg.table.snapshots", WHAT).ancestors_of(
        table.current_snapshot(), table.metadata
    )
    found: dict[str, int] = {}
    for snapshot in itertools.islice(snapshots, LOOK_BACK):
        said = snapshot.summary.additional_properties if snapshot.summary else {}
        if QUERY_ID in said:
            found.setdefault(said[QUERY_ID], int(said[BATCH_ID]))
        for name, value in said.items():
            if name.startswith(BATCH_OF):
                found.setdefault(name.removeprefix(BATCH_OF), int(value))
    for query, batch in batch_properties(table).items():
        found[query] = max(batch, found.get(query, batch))
    return found


def batch_properties(table: "Table") -> dict[str, int]:
    """The last batch of each query, by the table's properties."""
    return {
        name.removeprefix(BATCH_OF): int(value)
        for name, value in table.properties.items()
        if name.startswith(BATCH_OF)
    }


def without_retries(table: "Table") -> "Table":
    """The table, whose next commit fails if another came first.

    By itself pyiceberg would try again, and not look whether the other was the same batch. It reads how often
    from the properties, and these, in memory, are not sent to the catalog.
    """
    table.metadata.properties["commit.retry.num-retries"] = "0"
    return table


def _add(
    transaction: "Transaction", files: Sequence["DataFile"], *, overwrite: bool, batch: Batch | None
) -> None:
    said = {QUERY_ID: batch.query_id, BATCH_ID: str(batch.batch_id)} if batch else {}
    if batch:
        transaction.set_properties({f"{BATCH_OF}{batch.query_id}": str(batch.batch_id)})
    if overwrite and transaction.table_metadata.current_snapshot() is not None:
        transaction.delete(needed("pyiceberg.expressions", WHAT).AlwaysTrue())
    with transaction.update_snapshot(snapshot_properties=said).fast_append() as snapshot:
        for file in files:
            snapshot.append_data_file(file)
