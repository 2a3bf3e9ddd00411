"""Compaction of a Delta table, beside other writers.

The commit succeeds only if every file that it replaces is part of the table in the version right before it.
Transactions of other writers that began before it and are not committed yet fail (see delta_log.py), so none
of them adds rows a second time. To avoid such failures, we do not compact a table that another program has
committed to recently: that program, or a job beside it, can.
"""

import json
import logging
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.spark.tables.attempts import attempts
from headrace.spark.tables.clustering import arranged
from headrace.spark.tables.delta.log import MARK, compaction_entry, put_if_absent
from headrace.spark.tables.delta.table import (
    WHAT,
    DeltaFile,
    commit_files,
    files_of,
    filesystem,
    has_any,
    identity,
    load_table,
    stored_schema,
)
from headrace.spark.tables.files import MERGED_BYTES, SMALL, Files, arrow_schema, read_rows, remove
from headrace.spark.tables.options import DeltaOptions, local_directory
from headrace.spark.tables.packages import needed
from headrace.spark.tables.partitions import as_text, directory
from headrace.spark.tables.schema import PARTITIONING, storable
from headrace.spark.tables.statistics import statistics

if TYPE_CHECKING:
    import pyarrow.fs
    from deltalake import DeltaTable

deltalake = needed("deltalake", WHAT)
LOOK_BACK: Final = 50  # commits, all of which have to be ours
# Features without requirements on a commit that replaces files by others with the same rows.
FEATURES: Final = frozenset(
    (
        *("appendOnly", "changeDataFeed", "checkConstraints", "domainMetadata", "generatedColumns"),
        *("invariants", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "variantType"),
    )
)
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./=-]+")  # paths that are not encoded in the log

logger = logging.getLogger(__name__)


class NotCompacted(Exception):
    """The compaction could not be committed. The table has not changed."""


class LeftToOthers(NotCompacted):
    """A query must not compact this table: an operator has to take care of it."""


def compact(options: DeltaOptions) -> None:
    """Merge small files. The batch is committed already, so an error is logged, and the next call retries."""
    try:
        before, after = merge(options)
    except Exception as error:  # noqa: BLE001  the batch is committed
        is_race = isinstance(error, NotCompacted) and not isinstance(error, LeftToOthers)
        logger.log(
            logging.INFO if is_race else logging.WARNING, "%s was not compacted: %s", options.path, error
        )
    else:
        logger.info("%s: %d files became %d", options.path, before, after)


def merge(options: DeltaOptions, *, cluster_by: Sequence[str] = ()) -> tuple[int, int]:
    """Return how many files were replaced, and by how many.

    Small files are merged. With `cluster_by` all files are rewritten, with their rows in that order.
    """
    table = load_table(options)
    _check(table, options)
    files = filesystem(options)
    old: list[Mapping[str, Any]] = []
    new: list[DeltaFile] = []
    committing = False
    try:
        for values, chosen in _files(table, options, is_clustered=bool(cluster_by)):
            columns = _merge_schema(table)
            # The columns of a file have to be columns of the table, with the types that we write.
            mergeable = [
                file
                for file in chosen
                if all(
                    field.name in columns.names and _same(field.type, columns.field(field.name).type)
                    for field in pq.read_schema(unquote(file["path"]), filesystem=files)
                )
            ]
            if len(mergeable) > 1 or (cluster_by and mergeable):
                new += _merged(table, files, values, mergeable, options, cluster_by=cluster_by)
                old += mergeable
        committing = True
        if old:
            _commit(table, options, old, new)
            # deltalake, whose default interval is 100, writes checkpoints only after its own commits.
            interval = int(table.metadata().configuration.get("delta.checkpointInterval", 100))
            if (table.version() + 1) % interval == 0:
                table.create_checkpoint()
    except BaseException as error:
        # After any other error of a commit the files may be part of the table.
        if isinstance(error, NotCompacted) or not committing:
            remove(files, [file.path for file in new])
        raise
    return len(old), len(new)


def _check(table: "DeltaTable", options: DeltaOptions) -> None:
    """Raise LeftToOthers if another program writes to the table, or if it has unknown features."""
    if unknown := sorted(set(table.protocol().writer_features or ()) - FEATURES):
        raise LeftToOthers(f"it has features that this sink does not support ({', '.join(unknown)})")
    types = {field.name: field.dataType for field in stored_schema(table).fields}
    for name in table.metadata().partition_columns:
        if not isinstance(types[name], PARTITIONING):
            raise LeftToOthers(f"it is partitioned by column {name!r}, a {types[name].simpleString()}")
    for commit in table.history(LOOK_BACK) if options.gives_way else ():
        if any(commit.get(name) != value for name, value in MARK.items()):
            raise LeftToOthers(
                f"version {commit.get('version')} is of another program ({commit.get('operation')}, "
                f"{commit.get('engineInfo')}): run OPTIMIZE in that program, or in a job"
            )


def _files(
    table: "DeltaTable", options: DeltaOptions, *, is_clustered: bool
) -> Iterator[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Yield small files, oldest first, by partition; to be clustered, all files."""
    small: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    total = 0
    largest = math.inf if is_clustered else options.target_file_bytes * SMALL
    for file in sorted(files_of(table), key=lambda action: (action["modification_time"], action["path"])):
        path, is_local = file["path"], local_directory(options.path) is not None
        # Elsewhere deltalake writes the commit, and may encode other paths differently.
        is_below = not path.startswith("/") and "://" not in path and (is_local or _PLAIN.fullmatch(path))
        if file["size_bytes"] > largest or not is_below:
            continue
        small[repr(file.get("partition"))].append(file)
        total += file["size_bytes"]
        if total > MERGED_BYTES and not is_clustered:
            break
    for files in small.values():
        if is_clustered and sum(action["size_bytes"] for action in files) > MERGED_BYTES:
            raise NotCompacted(
                f"the files {files[0].get('partition') or ''} have more than {MERGED_BYTES >> 20} MiB, which "
                "cannot be sorted in memory"
            )
        yield files[0].get("partition") or {}, files


def _merge_schema(table: "DeltaTable") -> pa.Schema:
    """Return the columns of a file, all nullable: older files may lack some of them."""
    columns = arrow_schema(storable(stored_schema(table), variants=True))
    partitioned_by = table.metadata().partition_columns
    return pa.schema([column for column in columns if column.name not in partitioned_by])


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether two types are equal, except for nullability and the names of list elements."""
    types = pa.types
    if types.is_struct(one) and types.is_struct(other):
        return [field.name for field in one] == [field.name for field in other] and all(
            _same(mine.type, others.type) for mine, others in zip(one, other, strict=True)
        )
    if types.is_map(one) and types.is_map(other):
        return _same(one.key_type, other.key_type) and _same(one.item_type, other.item_type)
    if types.is_list(one) and types.is_list(other):
        return _same(one.value_type, other.value_type)
    return bool(one == other)


def _merged(
    table: "DeltaTable",
    filesystem_: "pa.fs.FileSystem",
    values: Mapping[str, Any],
    old: Sequence[Mapping[str, Any]],
    options: DeltaOptions,
    *,
    cluster_by: Sequence[str],
) -> list[DeltaFile]:
    """Write the rows of `old`, the files of the partition with these values, to new files."""
    partition = {name: as_text(values[name]) for name in table.metadata().partition_columns}
    schema = _merge_schema(table)
    files = Files(
        filesystem_,
        schema,
        partition_by=(),
        target_bytes=options.target_file_bytes,
        below=directory(tuple(partition), tuple(partition.values())),
    )
    count = 0

    def rows() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for file in old:
            for batch in read_rows(filesystem_, unquote(file["path"]), schema):
                count += batch.num_rows
                yield batch

    new = [
        DeltaFile(file.path, file.size, partition, statistics(file.footer, files.inner))
        for file in files.write(arranged(rows(), cluster_by))
    ]
    written = sum(json.loads(file.statistics)["numRecords"] for file in new)
    assert count == written, (count, written)
    return new


def _commit(
    table: "DeltaTable", options: DeltaOptions, old: Sequence[Mapping[str, Any]], new: Sequence[DeltaFile]
) -> None:
    """Replace `old` by `new`; raise NotCompacted, without a change, if other commits conflict."""
    read = identity(table)
    for _ in attempts():
        committed = _try_commit(table, options, old, new)
        table.update_incremental()
        if committed or has_any(table, new):  # the answer to a successful commit may be lost
            return
        _check(table, options)
        if identity(table) != read:
            raise NotCompacted("its metadata has been changed")
        if not {file["path"] for file in old} <= {file["path"] for file in files_of(table)}:
            raise NotCompacted("files of the compaction have been removed")
    raise NotCompacted("too many concurrent commits")


def _try_commit(
    table: "DeltaTable", options: DeltaOptions, old: Sequence[Mapping[str, Any]], new: Sequence[DeltaFile]
) -> bool:
    """Return False if another writer has committed the next version."""
    directory = local_directory(options.path)
    if directory is not None:
        try:
            return put_if_absent(directory, table.version() + 1, compaction_entry(table, old, new))
        except OSError as error:
            raise LeftToOthers(f"its log is not writable: {error}") from error
    try:  # deltalake supports any storage, but does not repeat the metadata
        commit_files(table, new, [(file["path"], file["size_bytes"]) for file in old], changes_data=False)
    except deltalake.exceptions.CommitFailedError:
        return False
    return True
