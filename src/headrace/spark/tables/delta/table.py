"""A Delta table: it is opened or created, and files are added in one commit with the batch id."""

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote

from pyspark.sql.types import StructType

from headrace.spark.batch import Batch
from headrace.spark.errors import InvalidOption
from headrace.spark.tables.attempts import ATTEMPTS, attempts
from headrace.spark.tables.delta.log import MARK
from headrace.spark.tables.evolution import Change, applied, changes
from headrace.spark.tables.options import DeltaOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import TableUnavailable, UnfitTable, check_partitioning, storable

if TYPE_CHECKING:
    import pyarrow.fs
    from deltalake import DeltaTable

WHAT: Final = 'format("headrace-delta")'
deltalake = needed("deltalake", WHAT)
arrow = needed("pyarrow", WHAT)
_ADD_COLUMN: Final = "with deltalake: DeltaTable(path).alter.add_columns([...])"
OPENINGS: Final = 5  # about a second
_UNSAFE: Final = frozenset(" ,;{}()\n\t=")  # characters that Delta does not allow in the names of columns
_RULES: Final = ("delta.invariants", "delta.generationExpression", "delta.identity")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """A file as the table's log describes it."""

    path: str  # relative to the table
    size: int
    partition: Mapping[str, str | None]
    statistics: str


def exists(options: DeltaOptions) -> bool:
    return bool(deltalake.DeltaTable.is_deltatable(options.path, dict(options.storage)))


def check_new(options: DeltaOptions, schema: StructType) -> None:
    """Raise UnfitTable or InvalidOption if the table cannot be created with this schema."""
    check_partitioning(options.partition_by, storable(schema, variants=True))
    for name in schema.fieldNames():
        if _UNSAFE.intersection(name):
            raise UnfitTable(f"column {name!r} has a character that Delta does not allow in names: rename it")


def open_table(options: DeltaOptions, schema: StructType) -> "DeltaTable":
    """Return the table, created or changed if necessary; UnfitTable if it cannot have rows of this schema."""
    stored = storable(schema, variants=True)
    try:
        if not exists(options):
            check_new(options, schema)
            deltalake.DeltaTable.create(
                options.path,
                deltalake.Schema.from_json(stored.json()),
                mode="ignore",  # another query may create it at the same time
                partition_by=list(options.partition_by),
                storage_options=dict(options.storage),
                commit_properties=deltalake.CommitProperties(custom_metadata=MARK),
            )
        table = load_table(options)
    except (deltalake.exceptions.DeltaError, OSError) as error:
        raise TableUnavailable(f"the table {options.path} cannot be opened: {error}") from error
    for attempt in attempts():
        found = check_table(table, schema, options)
        if not found:
            return table
        try:
            _change(table, found)
        except deltalake.exceptions.CommitFailedError:
            # Another writer was first; perhaps it has added the same columns.
            if attempt == ATTEMPTS:
                raise
        table = load_table(options)
    raise UnfitTable("other writers change the table's schema again and again, and the batch does not fit")


def load_table(options: DeltaOptions) -> "DeltaTable":
    """Open the table; a file of the log that is cleaned up meanwhile makes it try again."""
    for attempt in attempts():
        try:
            table: DeltaTable = deltalake.DeltaTable(options.path, storage_options=dict(options.storage))
        except deltalake.exceptions.TableNotFoundError:
            raise
        except deltalake.exceptions.DeltaError:
            if attempt == OPENINGS:
                raise
        else:
            return table
    raise AssertionError("unreachable")


def stored_schema(table: "DeltaTable") -> StructType:
    return StructType.fromJson(json.loads(table.schema().to_json()))


def identity(table: "DeltaTable") -> tuple[object, ...]:
    """Return what must not change between a read of the table and a commit that replaces its files."""
    metadata, protocol = table.metadata(), table.protocol()
    return metadata.id, metadata.configuration, metadata.partition_columns, table.schema().to_json(), protocol


def _change(table: "DeltaTable", found: Sequence[Change]) -> None:
    """Add columns, also to structs; deltalake merges the given columns into those of the table."""
    schema = applied(stored_schema(table), found)
    names = dict.fromkeys(change.path[0] for change in found)
    for change in found:
        if _UNSAFE.intersection(change.path[-1]):
            raise UnfitTable(f"column {change.path[-1]!r} has a character that Delta does not allow in names")
    table.alter.add_columns(
        [deltalake.Field.from_json(json.dumps(schema[name].jsonValue())) for name in names],
        commit_properties=deltalake.CommitProperties(custom_metadata=MARK),
    )
    logger.info("%s: %s", table.table_uri, ", ".join(map(str, found)))


def check_table(table: "DeltaTable", schema: StructType, options: DeltaOptions) -> list[Change]:
    """Return the changes that the table needs; UnfitTable if rows of this schema do not fit."""
    storable(schema, variants=True)
    partitioned_by = tuple(table.metadata().partition_columns)
    if options.partition_by and options.partition_by != partitioned_by:
        raise InvalidOption(
            "partitionBy",
            f"the table is partitioned by {', '.join(partitioned_by) or 'nothing'}: leave the option out",
        )
    if missing := [name for name in partitioned_by if name not in schema.fieldNames()]:
        raise UnfitTable(
            f"column {missing[0]!r}, which the table is partitioned by, is missing in the DataFrame: add it"
        )
    configuration, fields = table.metadata().configuration, json.loads(table.schema().to_json())["fields"]
    # Constraints on rows, and other names of columns in files.
    rules = [name for name in configuration if name.startswith("delta.constraints.")]
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        rules.append("delta.columnMapping.mode")
    rules += [f"{field['name']}: {rule}" for field in fields for rule in _RULES if rule in field["metadata"]]
    if rules:
        raise UnfitTable(
            f"the table has rules that this sink cannot enforce ({', '.join(rules)}): write to another one"
        )
    found = changes(schema, stored_schema(table), options.evolve, add_column=_ADD_COLUMN)
    for change in found:
        if change.kind == "widen":
            raise UnfitTable(
                f"the table cannot {change}: a Delta table has wider types only with the feature "
                "typeWidening, which deltalake neither reads nor writes. Cast the column, or copy the table"
            )
    return found


def filesystem(options: DeltaOptions) -> "pyarrow.fs.FileSystem":
    """Return the directory of the table, local or remote."""
    handler = needed("deltalake.fs", WHAT).DeltaStorageHandler(options.path, dict(options.storage))
    return needed("pyarrow.fs", WHAT).PyFileSystem(handler)


def files_of(table: "DeltaTable") -> list[Mapping[str, Any]]:
    """Return the add actions of the log for all files of the table, with encoded paths."""
    actions: list[Mapping[str, Any]] = arrow.table(table.get_add_actions()).to_pylist()
    return actions


def has_any(table: "DeltaTable", files: Sequence[DeltaFile]) -> bool:
    """Return whether any of these files is part of the table."""
    paths = {file.path for file in files}
    return bool(paths) and any(unquote(action["path"]) in paths for action in files_of(table))


def add_files(
    table: "DeltaTable",
    files: Sequence[DeltaFile],
    *,
    reopen: "Callable[[], DeltaTable]",
    overwrite: bool = False,
    batch: Batch | None = None,
) -> bool:
    """Add the files to the table in one commit; return False if the batch has been committed before.

    With `overwrite` they replace all other files. `reopen` loads the table again, and checks that it still
    fits, after a conflict with another commit.
    """
    # Not only conflicts: reading the log fails while somebody cleans it up. A commit that has succeeded in
    # spite of an error is found by its transaction or its files.
    failed = (needed("deltalake.exceptions", WHAT).DeltaError, FileNotFoundError)
    for attempt in attempts():
        try:
            done = table.transaction_version(batch.query_id) if batch else None
            if batch and done is not None and done >= batch.batch_id:
                # After an attempt it may be this very commit, whose answer was lost.
                return attempt > 1
            if attempt > 1 and has_any(table, files):
                return True
            # With retries, an overwrite would keep the files of a concurrent compaction.
            mode, retries = ("overwrite", 0) if overwrite else ("append", None)
            commit_files(table, files, mode=mode, batch=batch, retries=retries)  # type: ignore[arg-type]
        except failed:
            if attempt == ATTEMPTS:
                raise
            table = reopen()
        else:
            return True
    raise AssertionError("unreachable")


def commit_files(
    table: "DeltaTable",
    added: Iterable[DeltaFile],
    removed: Iterable[tuple[str, int]] = (),
    *,
    mode: Literal["append", "overwrite"] = "append",
    changes_data: bool = True,
    batch: Batch | None = None,
    retries: int | None = 0,
) -> None:
    """Make the next version; CommitFailedError if another commit did, and a retry finds a conflict.

    `removed` has the paths and sizes of files. Delta refuses the second commit of a transaction version, so
    only one of two drivers of a query succeeds.
    """
    transaction = needed("deltalake.transaction", WHAT)
    now_ms = time.time_ns() // 1_000_000
    actions = [transaction.RemoveAction(path, changes_data, now_ms, size) for path, size in removed]
    actions += [
        transaction.AddAction(file.path, file.size, file.partition, now_ms, changes_data, file.statistics)
        for file in added
    ]
    # Spark expires transactions without a time if the table limits their retention.
    transactions = [deltalake.Transaction(batch.query_id, batch.batch_id, now_ms)] if batch else None
    properties = deltalake.CommitProperties(
        custom_metadata=MARK, max_commit_retries=retries, app_transactions=transactions
    )
    partition_by = list(table.metadata().partition_columns)
    table.create_write_transaction(actions, mode, table.schema(), partition_by, commit_properties=properties)
