"""`format("headrace")`: Spark's data source, which plans on the driver and reads on the executors."""

import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructField, StructType

from headrace.client.wire.connection import Address
from headrace.protocol.ids import TopicPartition
from headrace.spark.batch import BatchWriter, StreamWriter
from headrace.spark.errors import InvalidOption, SparkError, spark_errors
from headrace.spark.filters import narrow
from headrace.spark.garbage import freeze_modules
from headrace.spark.group_commits import GroupCommits
from headrace.spark.offsets import admit, to_json
from headrace.spark.options import SourceOptions
from headrace.spark.planner import Planner
from headrace.spark.position import INITIAL, Position, is_initial
from headrace.spark.shared import shared_cluster
from headrace.spark.sink import TopicSink
from headrace.spark.sink_options import SinkOptions, check_schema
from headrace.spark.transactional_sink import TransactionalSink
from headrace.tables.reader.offsets import Offsets, Range, split
from headrace.tables.reader.reading import read_ranges
from headrace.tables.reader.tasks import combine, records_per_task

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA: Final = StructType(
    [
        StructField("key", T.BinaryType()),
        StructField("value", T.BinaryType()),
        StructField("topic", T.StringType()),
        StructField("partition", T.IntegerType()),
        StructField("offset", T.LongType()),
        StructField("timestamp", T.TimestampType()),
        StructField("timestampType", T.IntegerType()),
    ]
)
HEADERS: Final = StructField(
    "headers", T.ArrayType(StructType().add("key", T.StringType()).add("value", T.BinaryType()))
)


class SchemaMismatch(SparkError):
    """The user's schema has a column or type that topics do not have."""


class HeadraceSource(DataSource):
    """A topic, or several, as a table of records: the columns and options of Spark's Kafka source."""

    @classmethod
    def name(cls) -> str:
        return "headrace"

    def schema(self) -> StructType:
        wants_headers = self.options.get("includeHeaders", "false").strip().lower() == "true"
        return StructType([*SCHEMA.fields, *([HEADERS] if wants_headers else [])])

    def reader(self, schema: StructType) -> "BatchReader":
        return BatchReader(SourceOptions.of(self.options, streaming=False), columns_of(schema))

    def streamReader(self, schema: StructType) -> "StreamReader":  # noqa: N802  Spark's name
        return StreamReader(SourceOptions.of(self.options, streaming=True), columns_of(schema))

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        if overwrite:
            raise InvalidOption("mode", 'records are only appended to a topic: use mode("append")')
        options = self._sink_options(schema)
        sink = TransactionalSink(options, is_stream=False) if options.exactly_once else TopicSink(options)
        return BatchWriter(sink, options.batch)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802  Spark's name
        freeze_modules()  # Spark calls this with every batch, in two workers: before it and at its commit
        if overwrite:
            raise InvalidOption("outputMode", "complete would write all results with every batch: use append")
        options = self._sink_options(schema)
        if options.batch is not None:
            raise InvalidOption("txnAppId", "a streaming query has the number of its batch: leave it out")
        return StreamWriter(
            TransactionalSink(options, is_stream=True) if options.exactly_once else TopicSink(options)
        )

    def _sink_options(self, schema: StructType) -> SinkOptions:
        options = SinkOptions.of(self.options)
        check_schema(schema, options)
        return options


def columns_of(schema: StructType) -> tuple[str, ...]:
    """Return the columns to read; SchemaMismatch if one does not exist, or has another type."""
    known = {field.name: field.dataType for field in [*SCHEMA.fields, HEADERS]}
    for field in schema.fields:
        if field.name not in known:
            raise SchemaMismatch(f"column {field.name!r} is not among those of a topic: {', '.join(known)}")
        if field.dataType != known[field.name]:
            right, given = known[field.name].simpleString(), field.dataType.simpleString()
            raise SchemaMismatch(
                f"column {field.name!r} is {right} in a topic, not {given}: read it so, then decode it"
            )
    return tuple(schema.fieldNames())


class Task(InputPartition):
    """Ranges that one task reads, and what the driver knows of them: their leader and the ids of topics."""

    def __init__(
        self, ranges: Sequence[Range], topic_ids: Mapping[str, str], leader: Address | None = None
    ) -> None:
        super().__init__(tuple(map(tuple, ranges)))
        self.ranges = tuple(ranges)
        self.topic_ids = {
            topic: topic_ids[topic] for topic, *_ in (part.partition for part in ranges) if topic in topic_ids
        }
        self.leader = leader  # None: it is not known


def read_task(
    options: SourceOptions, columns: Sequence[str], partition: InputPartition
) -> "Iterator[pa.RecordBatch]":
    """Yield the records of a task's ranges as Arrow batches; runs on an executor."""
    if not isinstance(partition, Task):
        return  # Spark creates its own partition for a query with nothing to read
    # numba and pyarrow are imported only on executors: planning does not need them.
    from headrace.tables.reader.columns import Columns  # noqa: PLC0415

    freeze_modules()
    with spark_errors():
        yield from read_ranges(
            shared_cluster(options.bootstrap, options.security, options.client_id),
            partition.ranges,
            Columns(columns),
            options.fetching,
            topic_ids=partition.topic_ids,
            leader=partition.leader,
        )


def _tasks(planner: Planner, ranges: Iterable[Range], topic_ids: Mapping[str, str]) -> list[InputPartition]:
    """Return the tasks of a batch: large ranges split, small ones combined."""
    options = planner.options
    pieces = split(ranges, at_least=options.min_partitions, at_most_records=options.max_records)
    leaders = planner.leaders(piece.partition for piece in pieces)
    limit = records_per_task(sum(piece.size for piece in pieces), os.cpu_count() or 1)
    groups = combine(
        pieces,
        leaders,
        at_least=options.min_partitions,
        at_most_records=min(limit, options.max_records or limit),
    )
    return [Task(group, topic_ids, leaders.get(group[0].partition)) for group in groups]


class _PushFilters:
    """A `pushFilters` that Spark takes for its own default.

    Spark refuses readers that override `pushFilters`, which it finds by `__func__`, while
    `spark.sql.python.filterPushdown.enabled` has its default, false.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: "BatchReader") -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        self._reader.filters = filters
        return filters  # Spark applies them again: a range may have records that do not match


class BatchReader(DataSourceReader):
    """`spark.read.format("headrace")`."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = columns
        self.filters: Sequence[Filter] = ()

    @property
    def pushFilters(self) -> Any:  # noqa: N802  Spark's name
        return _PushFilters(self)

    @spark_errors()
    def partitions(self) -> list[InputPartition]:
        planner = Planner(self._options)
        try:
            ranges = planner.whole_batch()
            if self.filters:
                ranges = narrow(self.filters, ranges, planner.cluster.offsets)
            return _tasks(planner, ranges, planner.topic_ids(each.partition.topic for each in ranges))
        finally:
            planner.close()

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return read_task(self._options, self._columns, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream.format("headrace")`: one reader lives on the driver for as long as the query does.

    Executors get a copy without its planner.
    """

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = columns
        self._known: Planner | None = None
        self._groups: GroupCommits | None = None
        self._target: dict[TopicPartition, int] | None = None  # of a query with trigger(availableNow=True)
        self._begins: Position | None = None  # the start of a new query, once it is looked up
        self._latest: Offsets = {}
        self._batch_s = -math.inf  # when the last batch started, for minOffsetsPerTrigger

    def __getstate__(self) -> Mapping[str, Any]:
        return self.__dict__ | {"_known": None, "_groups": None}

    @property
    def _planner(self) -> Planner:
        if self._known is None:
            self._known = Planner(self._options)
        return self._known

    # -- offsets -------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Return a placeholder for the start of a new query, whose offsets `latestOffset` looks up once.

        Spark calls this until the first batch is committed, after every restart too, and stores no answer. It
        stores the end of a batch, so the end of the first batch also contains where that batch begins.
        """
        return dict(INITIAL)

    @spark_errors()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        is_first = is_initial(start)
        if is_first:
            known = self._begins = self._begins or self._planner.initial()
        else:
            known = Position.from_json(start)
        self._commit_for_group(known.offsets)  # Spark plans a batch when the batch before is complete
        # The first batch of a query that begins at the end is empty: its offsets are in the checkpoint before
        # anything else can go wrong.
        begins_at_end = is_first and self._options.initial is None and self._options.starting.is_latest
        latest = known if begins_at_end else self._latest_of(known)
        self._latest = latest.offsets
        read = known.without(self._planner.check_recreated(known, latest.topic_ids)).offsets
        self._planner.check_gone(read, latest.offsets)
        available = latest.offsets if self._target is None else self._up_to_target(read)
        since = {**self._of_new_partitions(read, available), **read}
        if self._is_too_little(since, available) and not is_first:
            return self._nothing_new(start)
        ends = admit(since, available, limit.max_rows) if isinstance(limit, ReadMaxRows) else available
        if not is_first and all(read.get(partition) == end for partition, end in ends.items()):
            return self._nothing_new(start)
        initial_offsets = known.offsets if is_first else None
        return Position(offsets=ends, topic_ids=latest.topic_ids, initial_offsets=initial_offsets).to_json()

    def _nothing_new(self, start: dict[str, Any]) -> dict[str, Any]:
        """Return the start as the end, so that there is no batch."""
        if self._groups is not None and self._target is not None:
            self._groups.flush()  # Spark ends the query now, and this process without a warning
        return start

    def _latest_of(self, known: Position) -> Position:
        """Return the current ends of all partitions.

        A broker with stale metadata may report less than we have read, or an older topic of the same name, so
        such an answer is checked by retries.
        """
        for attempt in range(self._options.retries + 1):
            if attempt:
                time.sleep(self._options.retry_s)
            partitions = self._planner.partitions()
            topic_ids = self._planner.topic_ids(partition.topic for partition in partitions)
            latest = self._planner.latest(partitions)
            is_behind = any(latest.get(partition, -1) < offset for partition, offset in known.offsets.items())
            if not is_behind and not known.recreated(topic_ids):
                break
        return Position(offsets=latest, topic_ids=topic_ids)

    def _up_to_target(self, known: Offsets) -> dict[TopicPartition, int]:
        assert self._target is not None
        # A partition that is older than this run of the query is read to where it was when the run began.
        # A query that is new may begin after that: records have been written since the run began.
        return {
            partition: min(end, max(self._target.get(partition, 0), known.get(partition, 0)))
            for partition, end in self._latest.items()
            if partition in self._target or partition in known
        }

    def _of_new_partitions(self, known: Offsets, available: Offsets) -> dict[TopicPartition, int]:
        """Return the start of partitions that were added since: offset 0."""
        return {partition: 0 for partition in available if partition not in known}

    def _is_too_little(self, since: Offsets, available: Offsets) -> bool:
        """Whether a batch waits for minOffsetsPerTrigger, up to maxTriggerDelay."""
        least = self._options.min_offsets
        if least is None or self._target is not None:
            return False
        waiting = sum(max(0, end - since.get(partition, end)) for partition, end in available.items())
        is_late = time.monotonic() - self._batch_s > self._options.max_delay_s
        if waiting < least and not is_late:
            return True
        if waiting:
            self._batch_s = time.monotonic()
        return False

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    @spark_errors()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        self._target = self._planner.latest(self._planner.partitions())

    @spark_errors()
    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802  Spark's name
        return to_json(self._latest) if self._latest else None

    # -- a batch -------------------------------------------------------------------------------

    @spark_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        ends = Position.from_json(end)
        begins = self._begin_of_batch(start, ends)
        recreated = self._recreated_since(ends)  # the next batch reads the new topic
        begins, ends = begins.without(recreated), ends.without(recreated)
        since = {**self._of_new_partitions(begins.offsets, ends.offsets), **begins.offsets}
        return _tasks(self._planner, self._planner.ranges(since, ends.offsets), ends.topic_ids)

    def _begin_of_batch(self, start: dict[str, Any], ends: Position) -> Position:
        if not is_initial(start):
            known = Position.from_json(start)
            return known.without(known.recreated(ends.topic_ids))  # `latestOffset` has reported the loss
        if ends.initial_offsets is not None:
            return Position(offsets=ends.initial_offsets)
        return Position(offsets=self._planner.initial_unrecorded(ends.offsets))

    def _recreated_since(self, ends: Position) -> list[str]:
        """Return the topics that were recreated since; DataLoss if failOnDataLoss is set."""
        for attempt in range(self._options.retries + 1):
            if attempt:
                time.sleep(self._options.retry_s)
            topic_ids = self._planner.current_ids(ends.topic_ids, afresh=attempt > 0)
            if not ends.recreated(topic_ids):
                break
        return self._planner.check_recreated(ends, topic_ids)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return read_task(self._options, self._columns, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Commit for the group; Spark calls this late, and never for the last batch."""
        self._commit_for_group(Position.from_json(end).offsets)

    def _commit_for_group(self, offsets: Offsets) -> None:
        group = self._options.client.get("group.id")
        if group is not None:
            if self._groups is None:
                self._groups = GroupCommits(group, self._planner.for_groups.commit)
            self._groups.submit(offsets)

    def stop(self) -> None:
        if self._groups is not None:
            self._groups.close()
        if self._known is not None:
            self._known.close()
