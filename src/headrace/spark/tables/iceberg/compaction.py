"""Compaction of an Iceberg table, which pyiceberg does not offer.

The snapshot has the operation `overwrite`, although it changes no row. It is committed only if every file
that it replaces is part of the snapshot right before it. Other programs have the same guarantee: the catalog
refuses a commit if the table has a newer snapshot than the one that the program has read.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.spark.tables.attempts import ATTEMPTS, attempts
from headrace.spark.tables.clustering import NotClustered, arranged
from headrace.spark.tables.files import MERGED_BYTES, SMALL, remove
from headrace.spark.tables.iceberg.files import (
    data_filesystem,
    data_location,
    described,
    file_schema,
    is_readable,
    rows,
)
from headrace.spark.tables.iceberg.partitions import PartitionedFiles
from headrace.spark.tables.iceberg.sink import IcebergFile
from headrace.spark.tables.iceberg.spec import fields_of
from headrace.spark.tables.iceberg.table import WHAT, without_retries
from headrace.spark.tables.packages import needed

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs
    from pyiceberg.manifest import DataFile as ManifestEntry
    from pyiceberg.table import Table


logger = logging.getLogger(__name__)


def compact(table: "Table", target_bytes: int) -> None:
    """Merge small files. The batch is committed already, so an error is logged, and the next call retries."""
    try:
        table.refresh()
        before, after = merge(table, target_bytes)
    except Exception as error:  # noqa: BLE001  the batch is committed
        logger.warning("%s was not compacted: %s", ".".join(table.name()), error)
    else:
        logger.info("%s: %d files became %d", ".".join(table.name()), before, after)


def merge(table: "Table", target_bytes: int, *, cluster_by: Sequence[str] = ()) -> tuple[int, int]:
    """Return how many files were replaced, and by how many; CommitFailedException if other commits conflict.

    Small files are merged. With `cluster_by` all files are rewritten, with their rows in that order.
    """
    filesystem = data_filesystem(table)
    old = list(_mergeable(table, filesystem, target_bytes, is_clustered=bool(cluster_by)))
    if not old:
        return 0, 0
    schema = file_schema(table, [field.name for field in table.schema().fields])
    files = PartitionedFiles(filesystem, schema, fields_of(table), target_bytes=target_bytes)
    batches = (batch for file in old for batch in rows(table, filesystem, _path(table, file) or ""))
    spec_id = table.spec().spec_id
    written = [IcebergFile(file, spec_id) for file in files.write(arranged(batches, cluster_by))]
    before, after = sum(e.record_count for e in old), sum(e.file.footer.num_rows for e in written)
    assert before == after, (before, after)
    try:
        _commit(table, old, described(table, written))
    except needed("pyiceberg.exceptions", WHAT).CommitFailedException:
        remove(filesystem, [entry.file.path for entry in written])
        raise
    return len(old), len(written)


def _commit(table: "Table", old: "Sequence[ManifestEntry]", new: "Sequence[ManifestEntry]") -> None:
    """Replace `old` by `new`; CommitFailedException, without a change, if other commits conflict."""
    failed = needed("pyiceberg.exceptions", WHAT).CommitFailedException
    read = table.schema(), table.spec()
    for attempt in attempts():
        try:
            with (
                without_retries(table).transaction() as transaction,
                transaction.update_snapshot().overwrite() as snapshot,
            ):
                for entry in old:
                    snapshot.delete_data_file(entry)
                for entry in new:
                    snapshot.append_data_file(entry)
        except failed:  # another writer has committed first
            table.refresh()
            gone = {file.file_path for file in old} - set(_whole_files(table))
            if gone or (table.schema(), table.spec()) != read or attempt == ATTEMPTS:
                raise
        else:
            return


def _whole_files(table: "Table") -> "dict[str, ManifestEntry]":
    """Return the files of the table without deleted rows."""
    tasks = table.scan().plan_files()
    return {task.file.file_path: task.file for task in tasks if not task.delete_files}


def _mergeable(
    table: "Table", filesystem: "pa.fs.FileSystem", target_bytes: int, *, is_clustered: bool
) -> "Iterator[ManifestEntry]":
    """Yield files below half the target size, of the current spec, of partitions with several of them.

    To be clustered, yield all files of the current spec.
    """
    total = 0
    by_partition: dict[tuple[object, ...], list[ManifestEntry]] = defaultdict(list)
    for file in _whole_files(table).values():
        path = _path(table, file)
        is_small = is_clustered or file.file_size_in_bytes <= target_bytes * SMALL
        if path is None or not is_small or file.spec_id != table.spec().spec_id:
            continue
        if is_readable(table, filesystem, path):
            total += file.file_size_in_bytes
            by_partition[tuple(file.partition[n] for n in range(len(table.spec().fields)))].append(file)
        if total > MERGED_BYTES:
            if is_clustered:
                raise NotClustered(
                    f"the table has more than {MERGED_BYTES >> 20} MiB, which cannot be sorted in memory"
                )
            break
    for files in by_partition.values():
        if len(files) > 1 or is_clustered:
            yield from files


def _path(table: "Table", file: "ManifestEntry") -> str | None:
    """Return the path relative to the table's directory, None if the file is elsewhere."""
    inside = f"{data_location(table)}/"
    return file.file_path.removeprefix(inside) if file.file_path.startswith(inside) else None
