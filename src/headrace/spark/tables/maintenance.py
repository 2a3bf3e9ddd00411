"""What operators do with tables of both formats: status, compaction, clustering, vacuum and expiry.

Every operation is safe beside running queries. Rewritten files are committed only if the files that they
replace are still in the table. Files are removed only if no retained version or snapshot has them and they
are older than the retention: younger files may belong to a batch that is not committed yet.
"""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headrace.spark.errors import SparkError

LEAST_RETENTION: Final = dt.timedelta(days=1)  # longer than any batch takes
KEPT_SNAPSHOTS: Final = 10


class NotMaintained(SparkError):
    """An operation was refused, or given up because of other writers. The table has not changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of a table."""

    name: str
    format: str
    version: int | None  # of a Delta table; the id of the current snapshot of an Iceberg table
    versions: int  # that can be read: entries of the log, or snapshots
    files: int
    small_files: int
    bytes: int
    rows: int | None
    partitioned_by: list[str]
    columns: dict[str, str]
    queries: dict[str, int] = field(default_factory=dict)  # the last batch of each that has written to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The result of a compaction or a clustering."""

    files_before: int
    files_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """The files that a vacuum has removed, or would remove."""

    files: list[str]
    bytes: int
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """The snapshots that an expiry has removed, or would remove."""

    snapshots: list[int]
    kept: int
    done: bool


class Maintained(ABC):
    """A table that can be maintained."""

    @abstractmethod
    def status(self) -> Status: ...

    @abstractmethod
    def merge(self, cluster_by: Sequence[str]) -> tuple[int, int]:
        """Return how many files were replaced, and by how many; NotMaintained if other commits conflict."""

    def optimize(self) -> Rewritten:
        """Merge small files. A pass merges a limited number of bytes, and the last one nothing."""
        passes: list[tuple[int, int]] = []
        while not passes or passes[-1][0] > passes[-1][1]:
            passes.append(self.merge(()))
        befores, afters = zip(*passes, strict=True)
        return Rewritten(files_before=sum(befores), files_after=sum(afters))

    def cluster(self, columns: Sequence[str]) -> Rewritten:
        """Rewrite all files with their rows in the order of the columns."""
        before, after = self.merge(columns)
        return Rewritten(files_before=before, files_after=after)

    @abstractmethod
    def vacuum(self, older_than: dt.timedelta, *, dry_run: bool) -> Removed:
        """Remove files that no version or snapshot has, and that are older."""

    @abstractmethod
    def expire(self, older_than: dt.timedelta, keep: int, *, dry_run: bool) -> Expired:
        """Remove older snapshots, but the last `keep`."""


def check_retention(older_than: dt.timedelta) -> None:
    """Raise NotMaintained for a retention in which a batch may not be committed yet."""
    if older_than < LEAST_RETENTION:
        raise NotMaintained(
            f"a retention of {older_than} is too short: younger files may belong to a batch that is not "
            f"committed yet; expected at least {LEAST_RETENTION}"
        )


def delta(given: Mapping[str, str]) -> Maintained:
    """Return a Delta table by the options of its format."""
    from headrace.spark.tables.delta.maintenance import DeltaMaintenance  # noqa: PLC0415  slow to import
    from headrace.spark.tables.options import DeltaOptions  # noqa: PLC0415

    return DeltaMaintenance(DeltaOptions.of(given))


def iceberg(given: Mapping[str, str]) -> Maintained:
    """Return an Iceberg table by the options of its format."""
    from headrace.spark.tables.iceberg.maintenance import IcebergMaintenance  # noqa: PLC0415  slow to import
    from headrace.spark.tables.options import IcebergOptions  # noqa: PLC0415

    return IcebergMaintenance(IcebergOptions.of(given))
