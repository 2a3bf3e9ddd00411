"""Changes to the schema of an Iceberg table, which needs no rewriting: columns have ids."""

import logging
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from headrace.spark.tables.attempts import ATTEMPTS, attempts
from headrace.spark.tables.evolution import Change, Rules, changes
from headrace.spark.tables.iceberg.schema import iceberg_type, spark_schema, widened
from headrace.spark.tables.iceberg.table import WHAT, without_retries
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import UnfitTable

if TYPE_CHECKING:
    from pyiceberg.table import Table

_ADD_COLUMN: Final = "with pyiceberg: table.update_schema().add_column(...)"

logger = logging.getLogger(__name__)


def needed_changes(table: "Table", schema: StructType, rules: Rules) -> list[Change]:
    """Return the changes that the table needs; UnfitTable if rows of this schema do not fit."""
    found = changes(widened(schema), spark_schema(table.schema()), rules, add_column=_ADD_COLUMN)
    sources = {each.source_id for each in table.spec().fields}
    for each in found:
        if each.kind == "drop" and table.schema().find_field(each.path[0]).field_id in sources:
            raise UnfitTable(f"column {each.path[0]!r} cannot be dropped: the table is partitioned by it")
    return found


def evolve(table: "Table", schema: StructType, rules: Rules) -> None:
    """Change the table until rows of this schema fit. Another writer may change it at the same time."""
    failed = needed("pyiceberg.exceptions", WHAT).CommitFailedException
    for attempt in attempts():
        found = needed_changes(table, schema, rules)
        if not found:
            return
        # pyiceberg finds columns by their names before the update: other changes need another update.
        names = [each for each in found if each.kind in ("rename", "drop")]
        try:
            with without_retries(table).update_schema() as update:
                for change in names or found:
                    if change.kind == "rename":
                        assert change.name is not None, change
                        update.rename_column(change.path, change.name)
                    elif change.kind == "drop":
                        update.delete_column(change.path)
                    elif change.type is not None:
                        act = update.add_column if change.kind == "add" else update.update_column
                        act(change.path, iceberg_type(change.type))
        except failed:
            if attempt == ATTEMPTS:
                raise
            table.refresh()
        else:
            logger.info("%s: %s", ".".join(table.name()), ", ".join(map(str, names or found)))
    raise UnfitTable("other writers change the table's schema again and again, and the batch does not fit")
