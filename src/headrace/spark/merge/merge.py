"""A MERGE of one batch into a table, by copy-on-write.

1. The batch is reduced to the newest event of each key.
2. Its deletions become tombstones, which refuse late events from now on.
3. The files that may contain the keys, by their statistics, are joined with the keys. That gives the files
   that have to be replaced, and the events that are older than the row in the table.
4. Executors read those files, apply the events, and write new files.
5. One commit replaces the files, with the ids of the query and the batch. A repeated batch is skipped.

Rows do not pass the driver: it sees names, sizes and statistics of files, and bounds of the batch's keys.

If another commit comes in between and affects these files, or adds files that may contain these keys, the
merge is computed again from the new version. A commit elsewhere in the table does no harm.
"""

import datetime as dt
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812

from headrace.spark.batch import Batch
from headrace.spark.errors import InvalidOption, SparkError
from headrace.spark.merge import resolution
from headrace.spark.merge.bounds import may_contain
from headrace.spark.merge.events import (
    SEQUENCE,
    Facts,
    as_rows,
    checked,
    column,
    facts_of,
    newest,
    sequence_of,
    stored_schema,
)
from headrace.spark.merge.table import FILE, Table, TableFile, TableVersion
from headrace.spark.merge.tombstones import tombstone_schema, write_tombstones
from headrace.spark.merge.upsert import Upsert
from headrace.spark.tables.attempts import attempts
from headrace.spark.tables.files import MERGED_BYTES, SMALL
from headrace.spark.tables.options import COMPACT_EVERY, DeltaOptions, IcebergOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

EVENTS_PER_FILE: Final = 500_000
TOMBSTONES: Final = "_headrace_tombstones"  # a directory that Delta's readers and VACUUM ignore

logger = logging.getLogger(__name__)


class MergeConflict(SparkError):
    """Other programs have changed the same files in every attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Merges batches into one table. Tombstones are written only if there are deletes."""

    table: Table
    tombstones: Table | None
    upsert: Upsert
    target_file_bytes: int
    compact_every: int
    now: Callable[[], dt.datetime] = field(default=lambda: dt.datetime.now(dt.UTC))

    def apply(self, frame: "DataFrame", batch: Batch) -> bool:
        """Merge the batch; MergeConflict after too many attempts.

        Return False, without having looked at its rows, if it has been merged before.
        """
        version = self.table.load()
        if version.has(batch):
            logger.info("%s has already been committed to %s", batch, self.table.label)
            return False
        events = newest(checked(frame, self.upsert), self.upsert).persist()
        try:
            facts = facts_of(events, self.upsert)
            if not facts.count:
                return True
            if facts.unavailable:
                events.unpersist()
                events = newest(checked(frame, self.upsert), self.upsert, fill=True).persist()
            for _ in attempts():
                if version.has(batch) or self._attempt(version, events, facts, batch):
                    return True
                version = self.table.load()
        finally:
            events.unpersist()
        raise MergeConflict(
            f"{self.table.label}: batch {batch.batch_id} conflicts with other commits in every attempt. "
            "Run fewer programs that write to the same keys"
        )

    def _attempt(self, version: TableVersion, frame: "DataFrame", facts: Facts, batch: Batch) -> bool:
        """Merge into this version; return False after a conflict."""
        is_compaction_due = self.compact_every > 0 and (batch.batch_id + 1) % self.compact_every == 0
        with ExitStack() as cached:
            events = as_rows(frame, version.schema, self.upsert)
            tombstones = None
            if self.tombstones is not None and facts.deletes:
                now = self.now()
                # As precise as Delta's statistics.
                now = now.replace(microsecond=now.microsecond // 1000 * 1000)
                keep = self.upsert.tombstones_for
                tombstones = write_tombstones(self.tombstones, events, batch, now=now, keep=keep)
            elif self.tombstones is not None:
                tombstones = self.tombstones.load()
            attempt = _Attempt(self, version, tombstones, facts, cached)
            removed, rows = attempt.plan(events, compact=is_compaction_due)
            added = version.write(self._arranged(rows, removed, facts, version))
        if not removed and not added and not facts.deletes:
            return True  # all events were late
        return attempt.commit(removed, added, batch)

    def _arranged(
        self, rows: "DataFrame", removed: Iterable[TableFile], facts: Facts, version: TableVersion
    ) -> "DataFrame":
        """Return the rows in as many tasks as there will be files, each with a range of keys.

        Narrow ranges let later batches ignore files by their statistics.
        """
        by_size = sum(file.size for file in removed) / self.target_file_bytes
        files = max(1, math.ceil(by_size), math.ceil(facts.count / EVENTS_PER_FILE))
        order = [*version.partition_order(), *map(column, self.upsert.keys)]
        spread = rows.repartition(1) if files == 1 else rows.repartitionByRange(files, *order)
        return spread.sortWithinPartitions(*order)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A merge into one version of the table and of its tombstones."""

    merge: Merge
    version: TableVersion
    tombstones: TableVersion | None
    facts: Facts
    cached: ExitStack

    def plan(self, events: "DataFrame", *, compact: bool) -> "tuple[list[TableFile], DataFrame]":
        """Return the files to replace, and the rows that replace theirs."""
        upsert, version, spark = self.merge.upsert, self.version, events.sparkSession
        stored = version.scan(spark, _candidates(version, self.facts), upsert.required, name=True)
        # With history all rows of a key are computed again, so none of them makes an event obsolete.
        known = F.lit(None) if upsert.history else sequence_of(upsert)
        found = self._persisted(resolution.located(events, stored.withColumn(SEQUENCE, known), upsert))
        wanted = found if upsert.history else found.where(~column(resolution.STALE))
        names = {row[FILE] for row in wanted.select(FILE).distinct().collect()}
        if compact:
            names |= set(small_files(version.files.values(), self.merge.target_file_bytes))
        removed = [version.files[name] for name in sorted(names)]
        rows = version.scan(spark, removed, version.schema.fieldNames())
        tombstones = None
        if self.tombstones is not None and (deleted := _candidates(self.tombstones, self.facts)):
            tombstones = self.tombstones.scan(spark, deleted, [*upsert.keys, SEQUENCE])
        fill = self.facts.unavailable > 0
        if upsert.history:
            return removed, resolution.history_rows(rows, events, tombstones, upsert, fill=fill)
        effective = resolution.without_stale(events, found, upsert)
        if tombstones is not None:
            effective = resolution.without_deleted(effective, tombstones, upsert)
        return removed, resolution.current_rows(rows, self._persisted(effective), upsert, fill=fill)

    def _persisted(self, frame: "DataFrame") -> "DataFrame":
        kept = frame.persist()
        self.cached.callback(kept.unpersist)
        return kept

    def commit(self, removed: Sequence[TableFile], added: Sequence[Any], batch: Batch) -> bool:
        """Replace the files; return False, and remove the new ones, if other commits conflict."""
        version = self.version
        for _ in attempts():
            if version.replace(removed, added, batch):
                return True
            version = self.merge.table.load()
            if version.contains(added):
                return True  # the answer to the commit was lost
            if version.has(batch) or self._conflicts(removed, version):
                self.version.sink.remove(added)
                return version.has(batch)
        # The last commit may have succeeded although its answer was lost, so the files are kept.
        raise MergeConflict(f"{self.merge.table.label}: batch {batch.batch_id} could not be committed")

    def _conflicts(self, removed: Iterable[TableFile], newer: TableVersion) -> bool:
        """Return whether the merge might have another result in the newer version."""
        return (
            self.version.definition != newer.definition
            or any(file.name not in newer.files for file in removed)
            or self._has_new_keys(self.version, newer)
            or (
                self.tombstones is not None
                and self.merge.tombstones is not None
                and self._has_new_keys(self.tombstones, self.merge.tombstones.load())
            )
        )

    def _has_new_keys(self, older: TableVersion, newer: TableVersion) -> bool:
        return any(file.name not in older.files for file in _candidates(newer, self.facts))


def _candidates(version: TableVersion, facts: Facts) -> list[TableFile]:
    return [file for file in version.files.values() if may_contain(file.bounds, facts.bounds)]


def small_files(files: Iterable[TableFile], target_file_bytes: int) -> list[str]:
    """Return the names of files to merge, the smallest first, of partitions that have several of them."""
    limit = target_file_bytes * SMALL
    small = sorted((file for file in files if file.size < limit), key=lambda file: (file.size, file.name))
    total = accumulate(file.size for file in small)
    chosen = [file for file, bytes_ in zip(small, total, strict=True) if bytes_ <= MERGED_BYTES]
    of_partition = Counter(file.partition for file in chosen)
    return [file.name for file in chosen if of_partition[file.partition] > 1]


def merge_into(format_: str, given: Mapping[str, str], upsert: Upsert, events: "StructType") -> Merge:
    """Return the merge of events with this schema into a table, by the format and options of `df.write`."""
    stored, deleted = stored_schema(events, upsert), tombstone_schema(events, upsert)
    options: DeltaOptions | IcebergOptions
    match format_:
        case "headrace-delta":
            from headrace.spark.merge.delta import delta_table  # noqa: PLC0415

            options = DeltaOptions.of(given).requiring(upsert.columns_of_table)
            if "compactevery" not in {name.lower() for name in given}:
                # By default only directories are compacted, because appends cannot do it safely elsewhere.
                options = replace(options, compact_every=COMPACT_EVERY)
            beside = replace(options, path=f"{options.path.rstrip('/')}/{TOMBSTONES}", partition_by=())
            table = delta_table(options, stored)
            tombstones = delta_table(beside.requiring(deleted.fieldNames()), deleted)
        case "headrace-iceberg":
            from headrace.spark.merge.iceberg import iceberg_table  # noqa: PLC0415

            options = IcebergOptions.of(given).requiring(upsert.columns_of_table)
            other = replace(options, table=f"{options.table}__tombstones", partition_by=())
            table = iceberg_table(options, stored)
            tombstones = iceberg_table(other.requiring(deleted.fieldNames()), deleted)
        case _:
            expected = "expected headrace-delta or headrace-iceberg"
            raise InvalidOption("format", f"{format_!r} has no upserts; {expected}")
    return Merge(
        table=table,
        tombstones=None if upsert.deletes is None else tombstones,
        upsert=upsert,
        target_file_bytes=options.target_file_bytes,
        compact_every=options.compact_every,
    )


def merge_batch(
    format_: str, options: Mapping[str, str], upsert: Upsert, frame: "DataFrame", batch: Batch
) -> bool:
    """Merge a batch into a table; return False if it has been merged before."""
    return merge_into(format_, options, upsert, frame.schema).apply(frame, batch)


def upsert_batches(
    format_: str, options: Mapping[str, str], upsert: Upsert
) -> "Callable[[DataFrame, int], None]":
    """Return a function for `writeStream.foreachBatch` that merges each batch into the table."""

    def merge(frame: "DataFrame", batch_id: int) -> None:
        query_id = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        assert query_id is not None, "upserts are for foreachBatch of a streaming query"
        merge_batch(format_, options, upsert, frame, Batch(query_id, batch_id))

    return merge
