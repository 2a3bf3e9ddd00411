"""Delta tables whose files a merge replaces.

deltalake makes the commit, without its own retries: it creates the next version of the log only if that
version does not exist, in a directory and in an object store. Its removals say that they change data, so a
compaction or an overwrite of another program that began before fails.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from pyspark.sql.types import StructType

from headrace.spark.batch import Batch
from headrace.spark.merge.bounds import bounds_of, known
from headrace.spark.merge.events import column
from headrace.spark.merge.table import Table, TableFile, TableVersion
from headrace.spark.tables.delta.compaction import FEATURES
from headrace.spark.tables.delta.sink import DeltaSink
from headrace.spark.tables.delta.table import (
    WHAT,
    DeltaFile,
    commit_files,
    files_of,
    filesystem,
    has_any,
    identity,
    open_table,
    stored_schema,
)
from headrace.spark.tables.options import DeltaOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import UnfitTable

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import Column

deltalake = needed("deltalake", WHAT)
_UNENCODED: Final = "!$&'()+,-./:;=@_~"  # characters that deltalake writes to paths as they are
_SLACK_US: Final = 1000  # bounds of times are cut to milliseconds

logger = logging.getLogger(__name__)


def delta_table(options: DeltaOptions, schema: StructType) -> Table:
    """Return a table at a path, created for rows of `schema` if it does not exist."""
    return Table(f"Delta table {options.path}", lambda: DeltaVersion(options, open_table(options, schema)))


class DeltaVersion(TableVersion):
    def __init__(self, options: DeltaOptions, table: "DeltaTable") -> None:
        self._table = table
        self.files = rewritable_files(table)
        self.schema = stored_schema(table)
        self.sink = DeltaSink(options, self.schema, overwrite=False)
        self.filesystem = partial(filesystem, options)

    def partition_order(self) -> "list[Column]":
        return list(map(column, self._table.metadata().partition_columns))

    def has(self, batch: Batch) -> bool:
        done = self._table.transaction_version(batch.query_id)
        return done is not None and done >= batch.batch_id

    @property
    def definition(self) -> object:
        return identity(self._table)

    def replace(self, removed: Sequence[TableFile], added: Sequence[DeltaFile], batch: Batch) -> bool:
        try:
            commit_files(self._table, added, [(file.path, file.size) for file in removed], batch=batch)
        except deltalake.exceptions.CommitFailedError as error:
            logger.info("%s was not committed: %s", batch, error)
            return False
        return True

    def contains(self, added: Sequence[DeltaFile]) -> bool:
        return has_any(self._table, added)


def rewritable_files(table: "DeltaTable") -> dict[str, TableFile]:
    """Return the files of a table; UnfitTable if its rows cannot be moved to other files, or be deleted."""
    protocol, configuration = table.protocol(), table.metadata().configuration
    if unknown := sorted(set(protocol.writer_features or ()) - FEATURES):
        raise UnfitTable(f"upserts do not support features of the table: {', '.join(unknown)}")
    for name in ("delta.appendOnly", "delta.enableChangeDataFeed"):
        if configuration.get(name, "").lower() == "true":
            raise UnfitTable(f"upserts do not support tables with {name}: unset it, or use another table")
    return {action["path"]: _file(action) for action in files_of(table)}


def _file(action: Mapping[str, Any]) -> TableFile:
    path = unquote(action["path"])
    if path.startswith("/") or "://" in path or quote(path, safe=_UNENCODED) != action["path"]:
        raise UnfitTable(
            f"upserts cannot replace the file {action['path']}: its path is absolute, or encoded in an "
            "unusual way. OPTIMIZE in the program that has written it may help"
        )
    low, high, constants = action.get("min") or {}, action.get("max") or {}, action.get("partition") or {}
    of_values = ((name, bounds_of(low[name], high.get(name), slack_us=_SLACK_US)) for name in low)
    of_partition = ((name, bounds_of(value, value)) for name, value in constants.items())
    return TableFile(
        name=action["path"],
        path=path,
        size=action["size_bytes"],
        bounds=known([*of_values, *of_partition]),
        constants=constants,
        partition=tuple(constants.items()),
    )
