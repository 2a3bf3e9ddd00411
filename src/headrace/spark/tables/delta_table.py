"""A Delta table: opened or made, and added to in one commit that carries the batch's id."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.sql.types import StructType

from headrace.spark.errors import InvalidOption
from headrace.spark.tables.attempts import ATTEMPTS, attempts
from headrace.spark.tables.delta_log import MARK
from headrace.spark.tables.options import DeltaOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import TableUnavailable, UnfitTable, check_fit, check_partitioning, storable
from headrace.spark.tables.writers import Batch

if TYPE_CHECKING:
    import pyarrow.fs
    from deltalake import DeltaTable

WHAT: Final = 'format("headrace-delta")'
_ADD_COLUMN: Final = "with deltalake: DeltaTable(path).alter.add_columns([...])"
_UNSAFE: Final = frozenset(" ,;{}()\n\t=")  # Delta's readers do not take names of columns with these
_RULES: Final = ("delta.invariants", "delta.generationExpression", "delta.identity")


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """What the table's log says of a file."""

    path: str  # below the table's
    size: int
    partition: Mapping[str, str | None]
    statistics: str


def open_table(options: DeltaOptions, schema: StructType) -> "DeltaTable":
    """The table, made if there is none; UnfitTable if rows of that schema cannot be added to it."""
    deltalake = needed("deltalake", WHAT)
    stored = storable(schema)
    try:
        if not deltalake.DeltaTable.is_deltatable(options.path, dict(options.storage)):
            _create(options, stored)
        table: DeltaTable = deltalake.DeltaTable(options.path, storage_options=dict(options.storage))
    except (deltalake.exceptions.DeltaError, OSError) as error:
        raise TableUnavailable(f"the table {options.path} cannot be opened: {error}") from error
    _check(table, schema, options)
    return table


def _create(options: DeltaOptions, schema: StructType) -> None:
    deltalake = needed("deltalake", WHAT)
    check_partitioning(options.partition_by, schema)
    for name in schema.fieldNames():
        if _UNSAFE.intersection(name):
            raise UnfitTable(f"column {name!r} has a character that Delta does not allow in names: rename it")
    deltalake.DeltaTable.create(
        options.path,
        deltalake.Schema.from_json(schema.json()),
        mode="ignore",  # another query may make it at the same time
        partition_by=list(options.partition_by),
        storage_options=dict(options.storage),
        commit_properties=deltalake.CommitProperties(custom_metadata=MARK),
    )


def _check(table: "DeltaTable", schema: StructType, options: DeltaOptions) -> None:
    metadata, stored = table.metadata(), json.loads(table.schema().to_json())
    divided_by = tuple(metadata.partition_columns)
    if options.partition_by and options.partition_by != divided_by:
        raise InvalidOption(
            "partitionBy",
            f"the table is divided by {', '.join(divided_by) or 'nothing'}: leave the option out",
        )
    if missing := [name for name in divided_by if name not in schema.fieldNames()]:
        raise UnfitTable(f"column {missing[0]!r}, which divides the table, is missing here: add it")
    _check_rules(metadata.configuration, stored)
    check_fit(schema, StructType.fromJson(stored), add_column=_ADD_COLUMN)


def _check_rules(configuration: Mapping[str, str], schema: Mapping[str, Any]) -> None:
    """UnfitTable if rows would have to be looked at one by one, or columns had other names in files."""
    rules = [name for name in configuration if name.startswith("delta.constraints.")]
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        rules.append("delta.columnMapping.mode")
    rules += [
        f"{field['name']}: {rule}"
        for field in schema["fields"]
        for rule in _RULES
        if rule in field["metadata"]
    ]
    if rules:
        raise UnfitTable(
            f"the table has rules that this sink cannot keep ({', '.join(rules)}): write to another one"
        )


def filesystem(options: DeltaOptions) -> "pyarrow.fs.FileSystem":
    """The table's directory, wherever it is, to write and remove files in."""
    handler = needed("deltalake.fs", WHAT).DeltaStorageHandler(options.path, dict(options.storage))
    return needed("pyarrow.fs", WHAT).PyFileSystem(handler)


def files_of(table: "DeltaTable") -> list[Mapping[str, Any]]:
    """What the log says of every file of the table; paths are encoded as they are there."""
    actions = table.get_add_actions()
    found: list[Mapping[str, Any]] = needed("pyarrow", WHAT).table(actions).to_pylist()
    return found


def has_any(table: "DeltaTable", files: Sequence[DeltaFile]) -> bool:
    """Whether any of these files is part of the table."""
    paths = {each.path for each in files}
    return bool(paths) and any(unquote(each["path"]) in paths for each in files_of(table))


def add_files(
    table: "DeltaTable",
    files: Sequence[DeltaFile],
    *,
    reopen: "Callable[[], DeltaTable]",
    overwrite: bool = False,
    batch: Batch | None = None,
) -> bool:
    """Make the files part of the table, in one commit; False if this batch was in it before.

    With `overwrite` they replace everything that was there before. `reopen` loads the table anew, and checks
    that it can still take the files, when somebody else's commit does not allow this one.
    """
    failed = needed("deltalake.exceptions", WHAT).CommitFailedError
    for attempt in attempts():
        done = table.transaction_version(batch.query_id) if batch else None
        if batch and done is not None and done >= batch.batch_id:
            # After an attempt it may be this very commit, of which only the answer was lost.
            return attempt > 1
        if attempt > 1 and has_any(table, files):
            return True
        try:
            _commit(table, files, overwrite=overwrite, batch=batch)
        except failed:
            if attempt == ATTEMPTS:
                raise
            table = reopen()
        else:
            return True
    raise AssertionError("unreachable")


def _commit(table: "DeltaTable", files: Sequence[DeltaFile], *, overwrite: bool, batch: Batch | None) -> None:
    deltalake, transaction = needed("deltalake", WHAT), needed("deltalake.transaction", WHAT)
    now_ms = time.time_ns() // 1_000_000
    table.create_write_transaction(
        [
            transaction.AddAction(each.path, each.size, each.partition, now_ms, True, each.statistics)
            for each in files
        ],
        "overwrite" if overwrite else "append",
        table.schema(),
        list(table.metadata().partition_columns),
        commit_properties=deltalake.CommitProperties(
            custom_metadata=MARK,
            # deltalake would let an overwrite pass that does not remove what a compaction has just added.
            # Without retries it fails unless the table is in the version that was read.
            max_commit_retries=0 if overwrite else None,
            # Two drivers of one query cannot both succeed: Delta refuses the second commit of a version.
            # If a table is set to forget old transactions, Spark forgets those without a time at once.
            app_transactions=[deltalake.Transaction(batch.query_id, batch.batch_id, now_ms)]
            if batch
            else None,
        ),
    )
