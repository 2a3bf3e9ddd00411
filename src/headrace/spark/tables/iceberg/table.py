"""An Iceberg table: it is opened or created, and files are added in one commit with the batch id."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from headrace.spark.batch import Batch
from headrace.spark.errors import InvalidOption
from headrace.spark.tables.attempts import ATTEMPTS, attempts
from headrace.spark.tables.options import IcebergOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import TableUnavailable, UnfitTable, storable

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from headrace.spark.tables.evolution import Change

WHAT: Final = 'format("headrace-iceberg")'
QUERY_ID: Final = "headrace.query-id"
BATCH_ID: Final = "headrace.batch-id"
# Followed by a query's id: the property with the last batch of the query.
BATCH_OF: Final = "headrace.batch-id-of."
_PROPERTIES: Final = {
    # Each commit writes a new metadata file: without this all of them would be kept.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.parquet.compression-codec": "zstd",
}


def open_table(options: IcebergOptions, schema: StructType) -> "Table":
    """Return the table, created or changed if necessary; UnfitTable if it cannot have rows of this schema."""
    needed("pyiceberg.io.pyarrow", WHAT)
    from headrace.spark.tables.iceberg.schema import evolve, iceberg_schema, widened  # noqa: PLC0415
    from headrace.spark.tables.iceberg.spec import check_spec, fields_of, new_spec  # noqa: PLC0415

    stored = iceberg_schema(widened(storable(schema)))
    try:
        catalog = needed("pyiceberg.catalog", WHAT).load_catalog(options.catalog_name, **options.catalog)
        if not catalog.table_exists(options.table):
            catalog.create_namespace_if_not_exists(options.table.rpartition(".")[0])
            spec = new_spec(options.partition_by, stored)
            catalog.create_table_if_not_exists(
                options.table, stored, partition_spec=spec, properties=_PROPERTIES
            )
        table: Table = catalog.load_table(options.table)
    except InvalidOption:
        raise
    except Exception as error:  # catalogs are plugins with their own exceptions
        raise TableUnavailable(f"the table {options.table} cannot be opened: {error}") from error
    check_spec(table, options.partition_by)
    evolve(table, schema, options.evolve)
    fields_of(table)
    return table


def exists(options: IcebergOptions) -> bool:
    try:
        catalog = needed("pyiceberg.catalog", WHAT).load_catalog(options.catalog_name, **options.catalog)
        return bool(catalog.table_exists(options.table))
    except Exception as error:  # catalogs are plugins with their own exceptions
        raise TableUnavailable(f"the catalog of {options.table} cannot be reached: {error}") from error


def load_table(options: IcebergOptions) -> "Table":
    """Return an existing table, without a check."""
    needed("pyiceberg.io.pyarrow", WHAT)
    catalog = needed("pyiceberg.catalog", WHAT).load_catalog(options.catalog_name, **options.catalog)
    table: Table = catalog.load_table(options.table)
    return table


def check_table(table: "Table", schema: StructType, options: IcebergOptions) -> "list[Change]":
    """Return the changes that the table needs; UnfitTable if rows of this schema do not fit."""
    from headrace.spark.tables.iceberg.schema import needed_changes  # noqa: PLC0415
    from headrace.spark.tables.iceberg.spec import check_spec, fields_of  # noqa: PLC0415

    storable(schema)
    check_spec(table, options.partition_by)
    fields_of(table)
    return needed_changes(table, schema, options.evolve)


def check_new(options: IcebergOptions, schema: StructType) -> None:
    """Raise UnfitTable or InvalidOption if the table cannot be created with this schema."""
    needed("pyiceberg.io.pyarrow", WHAT)
    from headrace.spark.tables.iceberg.schema import iceberg_schema, widened  # noqa: PLC0415
    from headrace.spark.tables.iceberg.spec import new_spec  # noqa: PLC0415

    new_spec(options.partition_by, iceberg_schema(widened(storable(schema))))


def add_files(
    table: "Table", files: Sequence["DataFile"], *, overwrite: bool = False, batch: Batch | None = None
) -> bool:
    """Add the files to the table in one commit; return False if the batch has been committed before.

    With `overwrite` they replace all other files. UnfitTable is raised if the table's partitioning is no
    longer that of the files.
    """
    failed = needed("pyiceberg.exceptions", WHAT).CommitFailedException
    for attempt in attempts():
        if batch and is_in(table, batch):
            # After an attempt it may be this very commit, whose answer was lost.
            return attempt > 1
        if any(file.spec_id != table.spec().spec_id for file in files):
            raise UnfitTable(
                "the table's partitioning has been changed while the batch was written: restart the query, "
                "which repeats the batch"
            )
        try:
            with without_retries(table).transaction() as transaction:
                summary = {QUERY_ID: batch.query_id, BATCH_ID: str(batch.batch_id)} if batch else {}
                if batch:
                    transaction.set_properties({f"{BATCH_OF}{batch.query_id}": str(batch.batch_id)})
                if overwrite and table.current_snapshot() is not None:
                    transaction.delete(needed("pyiceberg.expressions", WHAT).AlwaysTrue())
                with transaction.update_snapshot(snapshot_properties=summary).fast_append() as snapshot:
                    for file in files:
                        snapshot.append_data_file(file)
        except failed:  # another writer was first, perhaps another driver with the same batch
            if attempt == ATTEMPTS:
                raise
            table.refresh()
        else:
            return True
    raise AssertionError("unreachable")


def is_in(table: "Table", batch: Batch) -> bool:
    """Return whether the table has this batch, or a later one of the query."""
    return known_batches(table).get(batch.query_id, -1) >= batch.batch_id


def known_batches(table: "Table") -> dict[str, int]:
    """Return the last batch of every query that has written to the table.

    They are properties of the table, which remain when snapshots expire.
    """
    return {
        name.removeprefix(BATCH_OF): int(value)
        for name, value in table.properties.items()
        if name.startswith(BATCH_OF)
    }


def without_retries(table: "Table") -> "Table":
    """Return the table, with a next commit that fails after a concurrent one.

    By default pyiceberg retries, without a check whether the other commit was the same batch. It reads the
    number of retries from the properties; a change in memory is not sent to the catalog.
    """
    table.metadata.properties["commit.retry.num-retries"] = "0"
    return table
