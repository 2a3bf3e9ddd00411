"""Maintenance of an Iceberg table. pyiceberg expires snapshots, but removes no files."""

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow.fs

from headrace.spark.tables.attempts import ATTEMPTS, attempts
from headrace.spark.tables.files import SMALL
from headrace.spark.tables.iceberg.compaction import merge
from headrace.spark.tables.iceberg.files import data_location
from headrace.spark.tables.iceberg.schema import spark_schema
from headrace.spark.tables.iceberg.spec import written
from headrace.spark.tables.iceberg.table import WHAT, known_batches, load_table, without_retries
from headrace.spark.tables.maintenance import (
    Expired,
    Maintained,
    NotMaintained,
    Removed,
    Status,
    check_retention,
)
from headrace.spark.tables.options import IcebergOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import TableUnavailable

if TYPE_CHECKING:
    from pyiceberg.table import Table

_DATA: Final = (".parquet", ".orc", ".avro", ".puffin")
_METADATA: Final = (".avro",)  # manifests and lists of them


class IcebergMaintenance(Maintained):
    """An Iceberg table; TableUnavailable is raised if it does not exist."""

    def __init__(self, options: IcebergOptions) -> None:
        self._options = options

    def status(self) -> Status:
        table = self._table()
        files = [task.file for task in table.scan().plan_files()]
        sizes = [file.file_size_in_bytes for file in files]
        snapshot = table.current_snapshot()
        return Status(
            name=self._options.table,
            format="Iceberg",
            version=snapshot.snapshot_id if snapshot else None,
            versions=len(table.snapshots()),
            files=len(files),
            small_files=sum(size <= self._options.target_file_bytes * SMALL for size in sizes),
            bytes=sum(sizes),
            rows=sum(file.record_count for file in files),
            partitioned_by=list(written(table)),
            columns={
                field.name: field.dataType.simpleString() for field in spark_schema(table.schema()).fields
            },
            queries=known_batches(table),
        )

    def merge(self, cluster_by: Sequence[str]) -> tuple[int, int]:
        failed = needed("pyiceberg.exceptions", WHAT).CommitFailedException
        try:
            return merge(self._table(), self._options.target_file_bytes, cluster_by=cluster_by)
        except failed as error:
            raise NotMaintained(f"{self._options.table} was not rewritten: {error}") from error

    def vacuum(self, older_than: dt.timedelta, *, dry_run: bool) -> Removed:
        check_retention(older_than)
        # The files are listed first. Those that are committed meanwhile are in the table that is read next.
        table = self._table()
        listed = {
            location: _listed(table, f"{location}/", suffixes)
            for location, suffixes in (
                (data_location(table), _DATA),
                (f"{table.location().rstrip('/')}/metadata", _METADATA),
            )
        }
        table.refresh()
        referenced = {_path(location) for location in _referenced(table)}
        paths, inside = (
            {path for files in listed.values() for path in files},
            _path(f"{data_location(table)}/"),
        )
        for task in table.scan().plan_files():
            path = _path(task.file.file_path)
            if path.startswith(inside) and path not in paths:
                # Paths are written differently in the table and in the storage: all would be orphans.
                raise NotMaintained(
                    f"{self._options.table} was not vacuumed: its file {path} is not among those in {inside}"
                )
        before = dt.datetime.now(dt.UTC) - older_than
        orphans = {
            path: info
            for found in listed.values()
            for path, info in found.items()
            if path not in referenced and info.mtime is not None and info.mtime < before
        }
        if not dry_run:
            for path in orphans:
                table.io.delete(path)
        return Removed(
            files=sorted(orphans), bytes=sum(info.size or 0 for info in orphans.values()), done=not dry_run
        )

    def expire(self, older_than: dt.timedelta, keep: int, *, dry_run: bool) -> Expired:
        failed = needed("pyiceberg.exceptions", WHAT).CommitFailedException
        for attempt in attempts():
            table = self._table()
            before_ms = (dt.datetime.now(dt.UTC) - older_than).timestamp() * 1000
            newest_first = sorted(table.snapshots(), key=lambda it: it.timestamp_ms, reverse=True)
            # The last ones stay, and those of branches and tags.
            needed_ids = {snapshot.snapshot_id for snapshot in newest_first[: max(1, keep)]}
            needed_ids |= {reference.snapshot_id for reference in table.metadata.refs.values()}
            old = [snapshot for snapshot in newest_first if snapshot.timestamp_ms < before_ms]
            chosen = [it.snapshot_id for it in old if it.snapshot_id not in needed_ids]
            kept = len(table.snapshots()) - len(chosen)
            if not dry_run and chosen:
                try:
                    without_retries(table).maintenance.expire_snapshots().by_ids(chosen).commit()
                except failed:
                    if attempt == ATTEMPTS:
                        raise
                    continue
            return Expired(snapshots=chosen, kept=kept, done=not dry_run)
        raise AssertionError("unreachable")

    def _table(self) -> "Table":
        try:
            return load_table(self._options)
        except Exception as error:  # catalogs are plugins with their own exceptions
            raise TableUnavailable(f"the table {self._options.table} cannot be opened: {error}") from error


def _listed(table: "Table", location: str, suffixes: tuple[str, ...]) -> dict[str, pyarrow.fs.FileInfo]:
    """Return the files in a directory and those below it, by their paths."""
    files = needed("pyiceberg.io.pyarrow", WHAT).PyArrowFileIO(dict(table.io.properties))
    scheme, host, path = files.parse_location(location)
    filesystem: Any = files.fs_by_scheme(scheme, host)
    selector = pyarrow.fs.FileSelector(path, allow_not_found=True, recursive=True)
    prefix = location[: len(location) - len(path)]
    return {
        _path(f"{prefix}{info.path}"): info
        for info in filesystem.get_file_info(selector)
        if info.is_file and info.path.endswith(suffixes)
    }


def _referenced(table: "Table") -> Iterator[str]:
    """Yield the locations of all files of all snapshots."""
    for snapshot in table.snapshots():
        yield snapshot.manifest_list
        for manifest in snapshot.manifests(table.io):
            yield manifest.manifest_path
    if table.snapshots():
        yield from table.inspect.all_files()["file_path"].to_pylist()
    for statistics in (*table.metadata.statistics, *table.metadata.partition_statistics):
        yield statistics.statistics_path


def _path(location: str) -> str:
    """Return a location in one form: file:///a, file:/a and /a are the same file, and so are s3:// and s3a://."""
    scheme, separator, rest = location.partition(":")
    if not separator or "/" in scheme:
        return location
    rest = f"/{rest.lstrip('/')}" if scheme == "file" else f"//{rest.lstrip('/')}"
    return rest if scheme == "file" else f"{'s3' if scheme in ('s3a', 's3n') else scheme}:{rest}"
