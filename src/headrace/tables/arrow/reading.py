"""`headrace.arrow.read` and `headrace.arrow.stream`."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from headrace.client.settings import Bootstrap, check_seconds
from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.tables.arrow import bounds
from headrace.tables.arrow.scan import ReadOptions, Scan, partitions_of
from headrace.tables.reader.cluster import ClusterConnections
from headrace.tables.reader.errors import Loss, ReadError
from headrace.tables.reader.offsets import EARLIEST, LATEST, Range

POLL_S: Final = 0.2  # between two looks at the ends of partitions without new records


def read(
    topic: str | Sequence[str],
    bootstrap: Bootstrap = None,
    *,
    start: bounds.Bound = "earliest",
    end: bounds.Bound = "latest",
    columns: Sequence[str] | None = None,
    filter: pc.Expression | None = None,  # noqa: A002  pyarrow's name
    limit: int | None = None,
    **options: Unpack[ReadOptions],
) -> pa.RecordBatchReader:
    """Return the records between two bounds as a reader of Arrow batches, which fetches while it is read.

    `bootstrap` is what a Producer takes: HOST:PORT, a dict of settings, or ConnectionSettings; by default it
    is HEADRACE_BOOTSTRAP, or 127.0.0.1:9092. A bound is "earliest", "latest", an offset of all partitions, a
    dict of offsets by partition, or a datetime: the first record with a timestamp from then on. The ends are
    those at the time of the call. A filter on topic, partition, offset or timestamp makes the read shorter.
    Rows of a partition are in order.

    `options` are those of `ReadOptions`: schema, on_error, isolation, data_loss, batch_rows and readers.
    """
    scan = Scan.of(topic, bootstrap, start=start, end=end, **options)
    return pa.RecordBatchReader.from_batches(scan.projected(columns), scan.batches(columns, filter, limit))


def stream(
    topic: str | Sequence[str],
    bootstrap: Bootstrap = None,
    *,
    start: bounds.Bound = "latest",
    columns: Sequence[str] | None = None,
    idle_s: float | None = None,
    **options: Unpack[ReadOptions],
) -> Iterator[pa.RecordBatch]:
    """Yield the records from a bound on, and new ones as they arrive, as Arrow batches.

    New partitions are read from their first record. With `idle_s` the stream ends after so long without a
    record. Nothing is committed: a caller who wants to continue keeps the last offset of each partition, and
    passes the next ones as `start`. The other arguments are those of `read`.
    """
    check_seconds(idle_s=idle_s)
    scan = Scan.of(topic, bootstrap, start=start, **options)
    names = scan.projected(columns).names
    cluster = scan.open()
    try:
        partitions = partitions_of(cluster, scan.topics)
        position = bounds.resolve(
            start, "start", partitions, cluster, otherwise=EARLIEST, read_committed=scan.read_committed
        )
    except BaseException:
        cluster.close()
        raise
    return _follow(scan, cluster, position, names, idle_s)


def _follow(
    scan: Scan,
    cluster: ClusterConnections,
    position: dict[TopicPartition, int],
    columns: Sequence[str],
    idle_s: float | None,
) -> Iterator[pa.RecordBatch]:
    last_s = time.monotonic()
    with closing(cluster):
        while True:
            ranges = _new_records(scan, cluster, position)
            if ranges:
                try:
                    yield from scan.read(cluster, ranges, columns)
                except KafkaError as error:  # a corrupt batch
                    raise ReadError(str(error)) from error
                position |= {each.partition: each.last for each in ranges}
                last_s = time.monotonic()
            elif idle_s is not None and time.monotonic() - last_s >= idle_s:
                return
            else:
                time.sleep(POLL_S)


def _new_records(scan: Scan, cluster: ClusterConnections, position: dict[TopicPartition, int]) -> list[Range]:
    """Return the ranges after `position`; partitions that are new are read from their first record."""
    partitions = partitions_of(cluster, scan.topics)
    added = [partition for partition in partitions if partition not in position]
    if added:
        position |= cluster.offsets(dict.fromkeys(added, EARLIEST))
    ends = cluster.offsets(dict.fromkeys(partitions, LATEST), read_committed=scan.read_committed)
    for each, end in ends.items():
        if end < position[each]:
            scan.on_loss(
                f"{each} was read up to offset {position[each]} and ends at {end} now", Loss.RECREATED
            )
            position[each] = 0
    return [Range(each, position[each], end) for each, end in ends.items() if end > position[each]]
