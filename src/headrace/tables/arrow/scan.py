"""A scan of topics: what is to be read of them, and the batches of rows."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Final, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from headrace.client.errors import BadSetting, NoSuchTopic, why_no_topic
from headrace.client.settings import Bootstrap, bootstrap_of, gather, whole
from headrace.client.wire.connection_settings import ConnectionSettings, registry_settings
from headrace.client.wire.security import Security
from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.tables.arrow import bounds
from headrace.tables.arrow.decoding import POLICIES, BatchDecoder, Decoder, Schema, decoders
from headrace.tables.arrow.parallel import in_parallel
from headrace.tables.reader.cluster import ClusterConnections
from headrace.tables.reader.columns import TARGET_ROWS, TYPES, Columns
from headrace.tables.reader.errors import DataLoss, Loss, OnLoss, ReadError, no_such_topic
from headrace.tables.reader.fetcher import FetchOptions
from headrace.tables.reader.offsets import EARLIEST, LATEST, Range
from headrace.tables.reader.reading import read_ranges
from headrace.tables.reader.tasks import combine
from headrace.tables.reader.topic_ids import show_topic_id

BOOTSTRAP: Final = "127.0.0.1:9092"
CLIENT_ID: Final = "headrace-arrow"
_ISOLATION: Final = {"read_committed": True, "read_uncommitted": False}
_DATA_LOSS: Final = ("fail", "skip")
_MOST_ROWS: Final = 10_000_000  # of a batch
_MOST_READERS: Final = 64

Progress = Callable[[int, int], None]
"""Called with the number of offsets that were read and of those to read."""


def connection_of(bootstrap: Bootstrap) -> ConnectionSettings:
    """Return how to connect; `bootstrap` is what a Producer takes, or None for that of commands."""
    if bootstrap is None:
        return ConnectionSettings(os.environ.get("HEADRACE_BOOTSTRAP") or BOOTSTRAP)
    if isinstance(bootstrap, ConnectionSettings):
        return bootstrap
    settings = gather(bootstrap, defaults={}, settings=None, named={})
    registry = registry_settings(bootstrap) if isinstance(bootstrap, Mapping) else ()
    return ConnectionSettings(bootstrap_of(settings), Security.of_resolved(settings), registry)


class ReadOptions(TypedDict, total=False):
    """Options that `read`, `stream`, `polars.scan` and `duckdb.relation` have in common.

    `schema` decodes: "registry", the URL of a registry or Registry(...) both keys and values, a pyarrow
    schema JSON values, "text" UTF-8. Rows that cannot be decoded are subject to `on_error`: "fail", "null" or
    "skip". `isolation` is "read_committed" or "read_uncommitted". `data_loss` says what to do if records at
    `start` do not exist any more: "fail" or "skip". `batch_rows` limits a batch. With more `readers`, threads
    read several partitions at a time: that is faster if brokers are far away.
    """

    schema: Schema
    on_error: str
    isolation: str
    data_loss: str
    batch_rows: int
    readers: int


@dataclass(frozen=True)
class Scan:
    """Topics to read, and how; BadSetting names the argument that is wrong."""

    connection: ConnectionSettings
    topics: tuple[str, ...]
    start: bounds.Bound = "earliest"
    end: bounds.Bound = "latest"
    schema: Schema = None
    isolation: str = "read_committed"
    on_error: str = "fail"
    data_loss: str = "fail"
    batch_rows: int = TARGET_ROWS
    readers: int = 1

    @classmethod
    def of(
        cls,
        topic: str | Sequence[str],
        bootstrap: Bootstrap,
        *,
        start: bounds.Bound,
        end: bounds.Bound = "latest",
        **options: Unpack[ReadOptions],
    ) -> "Scan":
        """Return the scan of a topic, or of several, at a cluster that is given as for a Producer."""
        if isinstance(topic, str):
            topic = [topic]
        if not isinstance(topic, Sequence) or not all(isinstance(name, str) for name in topic):
            raise BadSetting(f"a topic is a str, and several are a list of such, not {topic!r:.80}")
        return cls(connection_of(bootstrap), tuple(dict.fromkeys(topic)), start=start, end=end, **options)

    def __post_init__(self) -> None:
        if not self.topics:
            raise BadSetting("no topic is named")
        for topic in self.topics:
            if why_no_topic(topic):
                raise NoSuchTopic(topic)
        bounds.check(self.start, "start", self.topics)
        bounds.check(self.end, "end", self.topics)
        _check_choice("isolation", self.isolation, tuple(_ISOLATION))
        _check_choice("on_error", self.on_error, POLICIES)
        _check_choice("data_loss", self.data_loss, _DATA_LOSS)
        _check_number("batch_rows", self.batch_rows, _MOST_ROWS)
        _check_number("readers", self.readers, _MOST_READERS)

    # -- columns -------------------------------------------------------------------------------

    @cached_property
    def _decoder(self) -> BatchDecoder:
        return BatchDecoder(self._decoders, self.on_error)

    @cached_property
    def _decoders(self) -> dict[str, Decoder]:
        return decoders(self.schema, self.topics, self.connection)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """All columns; a registry is asked for the schemas of a topic, once."""
        decoded = {part: decoder.type for part, decoder in self._decoders.items()}
        return pa.schema([(name, decoded.get(name, kind)) for name, kind in TYPES.items()])

    def projected(self, columns: Sequence[str] | None) -> pa.Schema:
        """Return the schema of `columns`; BadSetting if there is no such column."""
        if columns is None:
            return self.arrow_schema
        for name in columns:
            if name not in TYPES:
                raise BadSetting(f"there is no column {name!r}, only {', '.join(TYPES)}")
        return pa.schema([self.arrow_schema.field(name) for name in columns])

    # -- ranges --------------------------------------------------------------------------------

    @property
    def read_committed(self) -> bool:
        return _ISOLATION[self.isolation]

    def open(self) -> ClusterConnections:
        """Return the cluster; Unreachable if no broker answers, Refused if one does not let us in."""
        self.connection.check()
        return ClusterConnections(self.connection.bootstrap, self.connection.security, client_id=CLIENT_ID)

    def ranges(self, cluster: ClusterConnections, filter_: pc.Expression | None) -> list[Range]:
        """Return the ranges to read, without those in which the filter holds for no row."""
        partitions = partitions_of(cluster, self.topics)
        find = partial(bounds.resolve, cluster=cluster, read_committed=self.read_committed)
        start = find(self.start, "start", partitions, otherwise=EARLIEST)
        end = find(self.end, "end", partitions, otherwise=LATEST)
        earliest = cluster.offsets(dict.fromkeys(partitions, EARLIEST))
        latest = cluster.offsets(dict.fromkeys(partitions, LATEST), read_committed=self.read_committed)
        found: list[Range] = []
        for each in partitions:
            wanted = Range(each, start[each], min(end[each], latest[each]))
            if wanted.size > 0 and wanted.first < earliest[each]:
                self.on_loss(f"{wanted} are wanted, and {each} begins at {earliest[each]}", Loss.DELETED)
                wanted = wanted._replace(first=earliest[each])
            found.append(wanted)
        found = [each for each in found if each.size > 0]
        if filter_ is None:
            return found
        from headrace.tables.reader.narrowing import Narrowing  # noqa: PLC0415  pyarrow.dataset imports pandas

        return Narrowing(filter_, self.arrow_schema).narrow(found, cluster.offsets)

    @property
    def on_loss(self) -> OnLoss:
        def lose(what: str, _loss: Loss) -> None:
            if self.data_loss == "fail":
                raise DataLoss(f'{what} (data_loss="skip" would read what is left)')

        return lose

    # -- rows ----------------------------------------------------------------------------------

    def batches(
        self,
        columns: Sequence[str] | None = None,
        filter_: pc.Expression | None = None,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows for which the filter holds, up to a limit. All is planned when this returns."""
        schema = self.projected(columns)
        cluster = self.open()
        try:
            ranges = self.ranges(cluster, filter_)
        except BaseException:
            cluster.close()
            raise
        # Arrow does not tell which fields a filter has, except by its text; a name too many does no harm.
        in_filter = [name for name in TYPES if filter_ is not None and name in str(filter_)]
        names = list(dict.fromkeys([*schema.names, *in_filter]))
        found = self.read(cluster, ranges, names, progress)
        return _limited(_closing(found, cluster), schema, filter_, limit)

    def read(
        self,
        cluster: ClusterConnections,
        ranges: Sequence[Range],
        columns: Sequence[str],
        progress: Progress | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the ranges, decoded, in batches of at most `batch_rows`."""
        read = self._decoder.needed(columns)
        topic_ids = {topic: show_topic_id(cluster.topic_id(topic)) for topic in self.topics}
        known = {topic: each for topic, each in topic_ids.items() if each is not None}
        leaders = {each.partition: cluster.known_leader(each.partition) for each in ranges}
        options = FetchOptions(read_committed=self.read_committed, on_loss=self.on_loss)
        led = {partition: leader for partition, leader in leaders.items() if leader is not None}

        def work(group: Sequence[Range]) -> Iterator[pa.RecordBatch]:
            yield from read_ranges(
                cluster,
                group,
                Columns(read, self.batch_rows),
                options,
                topic_ids=known,
                leader=led.get(group[0].partition),
            )

        groups = combine(ranges, led, at_least=self.readers)
        done, total = 0, sum(each.size for each in ranges)
        for batch in in_parallel([partial(work, each) for each in groups], self.readers):
            done += batch.num_rows
            if progress is not None:
                progress(done, total)
            for first in range(0, batch.num_rows, self.batch_rows):
                yield self._decoder.decode(batch.slice(first, self.batch_rows), columns)


def partitions_of(cluster: ClusterConnections, topics: Sequence[str]) -> list[TopicPartition]:
    """Return the partitions of topics; NoSuchTopic if one does not exist."""
    found = cluster.topics(topics)
    for topic in topics:
        if not found.get(topic):
            raise no_such_topic(topic)
    return list(
        chain.from_iterable((TopicPartition(topic, each) for each in found[topic]) for topic in topics)
    )


def _closing(found: Iterator[pa.RecordBatch], cluster: ClusterConnections) -> Iterator[pa.RecordBatch]:
    with closing(cluster):
        try:
            yield from found
        except KafkaError as error:  # a corrupt batch
            raise ReadError(str(error)) from error


def _limited(
    found: Iterator[pa.RecordBatch], schema: pa.Schema, filter_: pc.Expression | None, limit: int | None
) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in found if limit is None or limit > 0 else ():
        kept = (batch if filter_ is None else batch.filter(filter_)).select(schema.names)
        if left is not None:
            kept = kept.slice(0, left)
            left -= kept.num_rows
        if kept.num_rows:
            yield kept
        if left == 0:
            return


def _check_choice(name: str, given: object, choices: Sequence[str]) -> None:
    if given not in choices:
        raise BadSetting(f"{name} is one of {', '.join(choices)}, not {given!r:.80}")


def _check_number(name: str, given: object, most: int) -> None:
    number = None if isinstance(given, bool) else whole(given)
    if number is None or not 1 <= number <= most:
        raise BadSetting(f"{name} is a number from 1 to {most:,}, not {given!r:.80}")
