"""Maintenance of a Delta table."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

from headrace.spark.tables.delta.compaction import NotCompacted, merge
from headrace.spark.tables.delta.log import MARK
from headrace.spark.tables.delta.table import WHAT, files_of, filesystem, load_table, stored_schema
from headrace.spark.tables.files import SMALL
from headrace.spark.tables.maintenance import (
    Expired,
    Maintained,
    NotMaintained,
    Removed,
    Status,
    check_retention,
)
from headrace.spark.tables.options import DeltaOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import TableUnavailable

deltalake = needed("deltalake", WHAT)
_SECONDS: Final = 3600


class DeltaMaintenance(Maintained):
    """A Delta table; TableUnavailable is raised if it does not exist."""

    def __init__(self, options: DeltaOptions) -> None:
        # An operator decides that the table is compacted, also beside other programs.
        self._options = replace(options, gives_way=False)

    def status(self) -> Status:
        table = self._table()
        files = files_of(table)
        rows = [file.get("num_records") for file in files]
        return Status(
            name=self._options.path,
            format="Delta",
            version=table.version(),
            versions=len(table.history()),
            files=len(files),
            small_files=sum(file["size_bytes"] <= self._options.target_file_bytes * SMALL for file in files),
            bytes=sum(file["size_bytes"] for file in files),
            rows=None if None in rows else sum(rows),  # type: ignore[arg-type]
            partitioned_by=list(table.metadata().partition_columns),
            columns={field.name: field.dataType.simpleString() for field in stored_schema(table).fields},
        )

    def merge(self, cluster_by: Sequence[str]) -> tuple[int, int]:
        self._table()
        try:
            return merge(self._options, cluster_by=cluster_by)
        except NotCompacted as error:
            what = "clustered" if cluster_by else "compacted"
            raise NotMaintained(f"{self._options.path} was not {what}: {error}") from error

    def vacuum(self, older_than: dt.timedelta, *, dry_run: bool) -> Removed:
        check_retention(older_than)
        table = self._table()
        hours = -(-int(older_than.total_seconds()) // _SECONDS)
        arguments: dict[str, Any] = {"enforce_retention_duration": False, "full": True}
        found = table.vacuum(hours, dry_run=True, **arguments)
        infos = filesystem(self._options).get_file_info([unquote(path) for path in found])
        sizes = {path: info.size or 0 for path, info in zip(found, infos, strict=True)}
        if not dry_run and found:
            properties = deltalake.CommitProperties(custom_metadata=MARK)
            found = table.vacuum(hours, dry_run=False, commit_properties=properties, **arguments)
        return Removed(files=sorted(found), bytes=sum(sizes.get(path, 0) for path in found), done=not dry_run)

    def expire(self, older_than: dt.timedelta, keep: int, *, dry_run: bool) -> Expired:  # noqa: ARG002
        raise NotMaintained(
            f"{self._options.path} is a Delta table, which has no snapshots to expire: entries of its log "
            "are removed after delta.logRetentionDuration, when a checkpoint is written"
        )

    def _table(self) -> Any:
        try:
            return load_table(self._options)
        except (deltalake.exceptions.DeltaError, OSError) as error:
            raise TableUnavailable(f"the table {self._options.path} cannot be opened: {error}") from error
