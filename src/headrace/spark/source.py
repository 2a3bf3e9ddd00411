"""`format("headrace")`: what Spark calls on the driver to plan a read, and on the executors to do it."""

import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

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
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.protocol.ids import TopicPartition
from headrace.spark.errors import InvalidOption, SparkError
from headrace.spark.filters import Narrowing
from headrace.spark.offsets import Offsets, Range, admit, split, to_json
from headrace.spark.options import SourceOptions
from headrace.spark.planning import Planner
from headrace.spark.position import INITIAL, Position, is_initial
from headrace.spark.sink import BatchWriter, StreamWriter
from headrace.spark.sink_options import SinkOptions, check_schema

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
SCHEMA: Final = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
HEADERS: Final = StructField("headers", ArrayType(_HEADER))


class SchemaMismatch(SparkError):
    """A schema of the user's that a topic does not have."""


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
            raise InvalidOption("mode", 'a topic is only ever added to: use mode("append")')
        return BatchWriter(self._sink(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802  Spark's name
        if overwrite:
            raise InvalidOption("outputMode", "complete would write all results again and again: use append")
        return StreamWriter(self._sink(schema))

    def _sink(self, schema: StructType) -> SinkOptions:
        options = SinkOptions.of(self.options)
        check_schema(schema, options)
        return options


def columns_of(schema: StructType) -> tuple[str, ...]:
    """The columns to build; SchemaMismatch if one of them is not a topic's, or of another type."""
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
    """A range of one partition, read by one task."""

    def __init__(self, wanted: Range, topic_id: str | None = None) -> None:
        super().__init__(tuple(wanted))
        self.wanted = wanted
        self.topic_id = topic_id  # None: it is not known


def read_range(
    options: SourceOptions, columns: Sequence[str], partition: InputPartition
) -> "Iterator[pa.RecordBatch]":
    """The records of a task's range as Arrow batches; on an executor."""
    if not isinstance(partition, Task):
        return  # Spark makes one of its own for a query with nothing to read
    # numba and pyarrow are for executors: planning does not wait for them.
    from headrace.spark.cluster import Cluster  # noqa: PLC0415
    from headrace.spark.columns import Columns  # noqa: PLC0415
    from headrace.spark.fetching import Fetching  # noqa: PLC0415

    wanted = Range(TopicPartition(*partition.wanted.place), *partition.wanted[1:])
    gathered = Columns(
        columns, wanted.place.topic, wanted.place.partition, first=wanted.first, last=wanted.last
    )
    cluster = Cluster(options.bootstrap, options.security, client_id=options.client_id)
    try:
        for data, header in Fetching(
            cluster,
            wanted,
            topic_id=partition.topic_id,
            read_committed=options.read_committed,
            fail_on_data_loss=options.fail_on_data_loss,
            settings=options.client,
        ):
            gathered.add(data, header)
            if gathered.is_full:
                yield gathered.take()
        if gathered.rows:
            yield gathered.take()
    finally:
        cluster.close()


def _tasks(
    options: SourceOptions, ranges: Iterable[Range], topic_ids: Mapping[str, str]
) -> list[InputPartition]:
    pieces = split(ranges, at_least=options.min_partitions, at_most_records=options.max_records)
    return [Task(each, topic_ids.get(each.place.topic)) for each in pieces]


class _PushFilters:
    """`pushFilters`, which Spark calls if filters may be pushed down, and mistakes for its own if not.

    It refuses readers with a `pushFilters` of their own where `spark.sql.python.filterPushdown.enabled` is
    false, as it is unless somebody sets it, and looks at `__func__` to tell.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: "BatchReader") -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        self._reader.narrowing = Narrowing(filters)
        return filters  # Spark applies them all again: records in a range are not all alike


class BatchReader(DataSourceReader):
    """`spark.read.format("headrace")`."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = columns
        self.narrowing = Narrowing(())

    @property
    def pushFilters(self) -> Any:  # noqa: N802  Spark's name
        return _PushFilters(self)

    def partitions(self) -> list[InputPartition]:
        planner = Planner(self._options)
        try:
            ranges = planner.whole_batch()
            if self.narrowing:
                ranges = self.narrowing.narrow(ranges, planner.cluster.offsets)
            return _tasks(self._options, ranges, planner.topic_ids(each.place.topic for each in ranges))
        finally:
            planner.close()

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return read_range(self._options, self._columns, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream.format("headrace")`: one of them lives on the driver for as long as the query does.

    It is also sent to executors to read; what it has learned of the cluster stays behind.
    """

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = columns
        self._known: Planner | None = None
        self._target: dict[TopicPartition, int] | None = None  # of a query that reads what is there and ends
        self._begins: Position | None = None  # where a new query begins, once it is known
        self._latest: Offsets = {}
        self._told: Offsets = {}  # what the consumer group has been told, if there is one
        self._batch_s = -math.inf  # when the last batch was let go, for minOffsetsPerTrigger

    def __getstate__(self) -> Mapping[str, Any]:
        return self.__dict__ | {"_known": None}

    @property
    def _planner(self) -> Planner:
        if self._known is None:
            self._known = Planner(self._options)
        return self._known

    # -- offsets -------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Where a new query begins, without offsets: these are looked up once, by `latestOffset`.

        Spark asks until the first batch is committed, after every restart, and keeps no answer. It does keep
        the end of a batch, so the end of the first one says where that begins.
        """
        return dict(INITIAL)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        is_first = is_initial(start)
        known = self._initial if is_first else Position.from_json(start)
        self._tell_group(known.offsets)  # Spark asks for a batch once it has done with the one before
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
            return start
        ends = admit(since, available, limit.max_rows) if isinstance(limit, ReadMaxRows) else available
        if not is_first and all(read.get(place) == end for place, end in ends.items()):
            return start  # nothing is new: then there is no batch
        initial_offsets = known.offsets if is_first else None
        return Position(offsets=ends, topic_ids=latest.topic_ids, initial_offsets=initial_offsets).to_json()

    @property
    def _initial(self) -> Position:
        if self._begins is None:
            self._begins = self._planner.initial()
        return self._begins

    def _latest_of(self, known: Position) -> Position:
        """How far the partitions go now, new ones among them, and those that are gone not.

        A broker that lags behind may know less than we have read, or another topic of the same name: it is
        asked again before that is believed.
        """
        for attempt in range(self._options.retries + 1):
            if attempt:
                time.sleep(self._options.retry_s)
            places = self._planner.places()
            topic_ids = self._planner.topic_ids(place.topic for place in places)
            latest = self._planner.latest(places)
            is_behind = any(latest.get(place, -1) < offset for place, offset in known.offsets.items())
            if not is_behind and not known.recreated(topic_ids):
                break
        return Position(offsets=latest, topic_ids=topic_ids)

    def _up_to_target(self, known: Offsets) -> dict[TopicPartition, int]:
        assert self._target is not None
        # A partition that is older than this run of the query is read to where it was when the run began.
        # A query that is new may begin after that: records have been written since the run began.
        return {
            place: min(end, max(self._target.get(place, 0), known.get(place, 0)))
            for place, end in self._latest.items()
            if place in self._target or place in known
        }

    def _of_new_partitions(self, known: Offsets, available: Offsets) -> dict[TopicPartition, int]:
        """A partition that has come since is read from its first record on, or from what is left of it."""
        return {place: 0 for place in available if place not in known}

    def _is_too_little(self, since: Offsets, available: Offsets) -> bool:
        """Whether a batch had better wait for more, up to maxTriggerDelay."""
        least = self._options.min_offsets
        if least is None or self._target is not None:
            return False
        waiting = sum(max(0, end - since.get(place, end)) for place, end in available.items())
        is_late = time.monotonic() - self._batch_s > self._options.max_delay_s
        if waiting < least and not is_late:
            return True
        if waiting:
            self._batch_s = time.monotonic()
        return False

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        self._target = self._planner.latest(self._planner.places())

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802  Spark's name
        return to_json(self._latest) if self._latest else None

    # -- a batch -------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        ends = Position.from_json(end)
        begins = self._begin_of_batch(start, ends)
        recreated = self._recreated_since(ends)  # the next batch begins with what is there now
        begins, ends = begins.without(recreated), ends.without(recreated)
        since = {**self._of_new_partitions(begins.offsets, ends.offsets), **begins.offsets}
        return _tasks(self._options, self._planner.ranges(since, ends.offsets), ends.topic_ids)

    def _begin_of_batch(self, start: dict[str, Any], ends: Position) -> Position:
        if not is_initial(start):
            known = Position.from_json(start)
            return known.without(known.recreated(ends.topic_ids))  # `latestOffset` has told
        if ends.initial_offsets is not None:
            return Position(offsets=ends.initial_offsets)
        return Position(offsets=self._planner.initial_unrecorded(ends.offsets))

    def _recreated_since(self, ends: Position) -> list[str]:
        """The topics that were deleted and recreated since; DataLoss unless that may be."""
        for attempt in range(self._options.retries + 1):
            if attempt:
                time.sleep(self._options.retry_s)
            topic_ids = self._planner.current_ids(ends.topic_ids, afresh=attempt > 0)
            if not ends.recreated(topic_ids):
                break
        return self._planner.check_recreated(ends, topic_ids)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return read_range(self._options, self._columns, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark has done with everything before `end`. It says so late, and not at all of a last batch."""
        self._tell_group(Position.from_json(end).offsets)

    def _tell_group(self, offsets: Offsets) -> None:
        group = self._options.group
        if group is None or offsets == self._told:
            return
        try:
            self._planner.for_groups.commit(group, offsets)
            self._told = offsets
        except SparkError as error:  # the checkpoint is what counts; this is for people who look
            logger.warning("group %s was not told how far the query is: %s", group, error)

    def stop(self) -> None:
        if self._known is not None:
            self._known.close()
