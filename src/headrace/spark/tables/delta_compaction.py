"""Small files of a Delta table merged into larger ones, next to other writers.

The commit is made only if every file that it replaces is part of the table in the version right before it.
Transactions of others that began before it and are not committed yet fail (see delta_log.py): none of them
adds rows a second time. To let others fail seldom, we do not compact a table that another program has
committed to lately: that program, or a job beside it, can.
"""

import json
import logging
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.sql.types import StructType

from headrace.spark.tables.attempts import attempts
from headrace.spark.tables.delta_log import (
    MARK,
    checkpoint_if_due,
    compaction_entry,
    put_if_absent,
)
from headrace.spark.tables.delta_table import WHAT, DeltaFile, files_of, filesystem, has_any
from headrace.spark.tables.options import DeltaOptions, local_directory
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import PARTITIONING, storable

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs
    from deltalake import DeltaTable

SMALL: Final = 0.5  # of the size that files are to have
MERGED_BYTES: Final = 1 << 30  # on disk, in one go; what is left is merged next time
LOOK_BACK: Final = 50  # commits, in which no other program's is to be found
# Features that ask nothing of a commit that replaces files by others with the same rows.
FEATURES: Final = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "domainMetadata",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
_AS_IT_IS: Final = re.compile(r"[A-Za-z0-9_./=-]+")  # paths that every program writes to the log alike

logger = logging.getLogger(__name__)


class NotCompacted(Exception):
    """The files of a compaction could not be committed. The table is as it was."""


class LeftToOthers(NotCompacted):
    """The table is not one that a query may compact: somebody has to see to it."""


def compact(options: DeltaOptions) -> None:
    """Merge small files. The rows are safe already: what goes wrong here is logged, and done next time."""
    try:
        before, after = _merge(options)
    except Exception as error:  # noqa: BLE001  whatever it is, the batch is committed
        is_race = isinstance(error, NotCompacted) and not isinstance(error, LeftToOthers)
        logger.log(
            logging.INFO if is_race else logging.WARNING, "%s was not compacted: %s", options.path, error
        )
    else:
        logger.info("%s: %d files became %d", options.path, before, after)


def _merge(options: DeltaOptions) -> tuple[int, int]:
    """Return how many files were replaced, and by how many."""
    from headrace.spark.tables.files import remove  # noqa: PLC0415

    table = needed("deltalake", WHAT).DeltaTable(options.path, storage_options=dict(options.storage))
    _check(table)
    files = filesystem(options)
    old: list[Mapping[str, Any]] = []
    new: list[DeltaFile] = []
    committing = False
    try:
        for values, small in _small_files(table, options):
            mergeable = [each for each in small if _has_columns_of(table, files, each)]
            if len(mergeable) > 1:
                new += _merged(table, files, values, mergeable, options.target_file_bytes)
                old += mergeable
        committing = True
        if old:
            _commit(table, options, old, new)
            checkpoint_if_due(table)
    except BaseException as error:
        # After any other error of the commit the files may be part of the table.
        if isinstance(error, NotCompacted) or not committing:
            remove(files, [each.path for each in new])
        raise
    return len(old), len(new)


def _check(table: "DeltaTable") -> None:
    """Raise LeftToOthers if another program writes to the table, or commits need more than we know of."""
    if unknown := sorted(set(table.protocol().writer_features or ()) - FEATURES):
        raise LeftToOthers(f"it has features that this sink does not write ({', '.join(unknown)})")
    types = {each.name: each.dataType for each in _stored_schema(table).fields}
    for name in table.metadata().partition_columns:
        if not isinstance(types[name], PARTITIONING):
            raise LeftToOthers(f"it is divided by column {name!r}, a {types[name].simpleString()}")
    for commit in table.history(LOOK_BACK):
        if any(commit.get(name) != value for name, value in MARK.items()):
            raise LeftToOthers(
                f"version {commit.get('version')} is another program's ({commit.get('operation')}, "
                f"{commit.get('engineInfo')}): let that program, or a job of its own, run OPTIMIZE"
            )


def _small_files(
    table: "DeltaTable", options: DeltaOptions
) -> Iterator[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Yield small files, oldest first, by the values of the columns that divide the table."""
    small: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    total = 0
    for file in sorted(files_of(table), key=lambda each: (each["modification_time"], each["path"])):
        if file["size_bytes"] > options.target_file_bytes * SMALL or not _is_below(options, file["path"]):
            continue
        small[repr(file.get("partition"))].append(file)
        total += file["size_bytes"]
        if total > MERGED_BYTES:
            break
    for files in small.values():
        yield files[0].get("partition") or {}, files


def _is_below(options: DeltaOptions, path: str) -> bool:
    """Whether a file is in the table's directory, and can be named in a commit as the log names it."""
    if local_directory(options.path) is None and not _AS_IT_IS.fullmatch(path):
        return False  # deltalake writes that commit, and may encode the path in another way
    return not path.startswith("/") and "://" not in path


def _stored_schema(table: "DeltaTable") -> StructType:
    return StructType.fromJson(json.loads(table.schema().to_json()))


def _merge_schema(table: "DeltaTable") -> "pa.Schema":
    """The columns of a file, all of which may be null: older files need not have them all."""
    from headrace.spark.tables.arrow import arrow_schema  # noqa: PLC0415

    columns = arrow_schema(storable(_stored_schema(table)))
    divided_by = table.metadata().partition_columns
    return needed("pyarrow", WHAT).schema([each for each in columns if each.name not in divided_by])


def _has_columns_of(table: "DeltaTable", files: "pa.fs.FileSystem", file: Mapping[str, Any]) -> bool:
    """Whether a file has no other columns than the table, and these in the types that we write."""
    wanted = _merge_schema(table)
    found = needed("pyarrow.parquet", WHAT).read_schema(unquote(file["path"]), filesystem=files)
    return all(each.name in wanted.names and _same(each.type, wanted.field(each.name).type) for each in found)


def _same(one: "pa.DataType", other: "pa.DataType") -> bool:
    """Whether two types are the same but for the names of lists' elements, and what may be null."""
    types = needed("pyarrow", WHAT).types
    if types.is_struct(one) and types.is_struct(other):
        return [each.name for each in one] == [each.name for each in other] and all(
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
    target_bytes: int,
) -> list[DeltaFile]:
    """Write the rows of `old`, which have these values in the columns that divide the table, to new files."""
    from headrace.spark.tables.files import Files  # noqa: PLC0415
    from headrace.spark.tables.partitions import as_text, directory  # noqa: PLC0415
    from headrace.spark.tables.statistics import statistics  # noqa: PLC0415

    partition = {name: as_text(values[name]) for name in table.metadata().partition_columns}
    schema = _merge_schema(table)
    files = Files(
        filesystem_,
        schema,
        partition_by=(),
        target_bytes=target_bytes,
        below=directory(tuple(partition), tuple(partition.values())),
    )
    count = 0

    def rows() -> "Iterator[pa.RecordBatch]":
        nonlocal count
        parquet = needed("pyarrow.parquet", WHAT)
        for each in old:
            with parquet.ParquetFile(unquote(each["path"]), filesystem=filesystem_) as opened:
                for batch in opened.iter_batches():
                    count += batch.num_rows
                    yield _completed(batch, schema)

    new = [
        DeltaFile(each.path, each.size, partition, statistics(each.footer, files.inner))
        for each in files.write(rows())
    ]
    written = sum(json.loads(each.statistics)["numRecords"] for each in new)
    assert count == written, (count, written)
    return new


def _completed(batch: "pa.RecordBatch", schema: "pa.Schema") -> "pa.RecordBatch":
    """The batch with nulls in the columns that it does not have."""
    arrow = needed("pyarrow", WHAT)
    columns = [
        batch.column(each.name) if each.name in batch.schema.names else arrow.nulls(batch.num_rows, each.type)
        for each in schema
    ]
    return arrow.RecordBatch.from_arrays(columns, names=schema.names)


def _commit(
    table: "DeltaTable", options: DeltaOptions, old: Sequence[Mapping[str, Any]], new: Sequence[DeltaFile]
) -> None:
    """Replace `old` by `new`; raise NotCompacted, with nothing done, if other commits do not allow it."""
    read = _identity(table)
    for _ in attempts():
        committed = _try_commit(table, options, old, new)
        table.update_incremental()
        if committed or has_any(table, new):  # a commit may succeed without its answer reaching us
            return
        _check(table)
        if _identity(table) != read:
            raise NotCompacted("its metadata has changed meanwhile")
        if not {each["path"] for each in old} <= {each["path"] for each in files_of(table)}:
            raise NotCompacted("files that were to be merged have been removed meanwhile")
    raise NotCompacted("others commit all the time")


def _identity(table: "DeltaTable") -> tuple[object, ...]:
    metadata, protocol = table.metadata(), table.protocol()
    return metadata.id, metadata.configuration, metadata.partition_columns, table.schema().to_json(), protocol


def _try_commit(
    table: "DeltaTable", options: DeltaOptions, old: Sequence[Mapping[str, Any]], new: Sequence[DeltaFile]
) -> bool:
    """Return False if somebody else has committed the version after the table's."""
    directory = local_directory(options.path)
    if directory is None:
        return _commit_unfenced(table, old, new)
    try:
        return put_if_absent(directory, table.version() + 1, compaction_entry(table, old, new))
    except OSError as error:
        raise LeftToOthers(f"its log cannot be written to: {error}") from error


def _commit_unfenced(table: "DeltaTable", old: Sequence[Mapping[str, Any]], new: Sequence[DeltaFile]) -> bool:
    """The same by deltalake, which reaches any store, and does not repeat the metadata."""
    deltalake, transaction = needed("deltalake", WHAT), needed("deltalake.transaction", WHAT)
    now_ms = time.time_ns() // 1_000_000
    try:
        table.create_write_transaction(
            [
                *(transaction.RemoveAction(each["path"], False, now_ms, each["size_bytes"]) for each in old),
                *(
                    transaction.AddAction(
                        each.path, each.size, each.partition, now_ms, False, each.statistics
                    )
                    for each in new
                ),
            ],
            "append",
            table.schema(),
            list(table.metadata().partition_columns),
            # Without retries it fails if the table is no longer in the version that was read.
            commit_properties=deltalake.CommitProperties(custom_metadata=MARK, max_commit_retries=0),
        )
    except deltalake.exceptions.CommitFailedError:
        return False
    return True
