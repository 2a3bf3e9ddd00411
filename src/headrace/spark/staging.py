"""Records that tasks have encoded and the driver writes later, in one transaction.

Few records are part of the task's message to the driver. More are written to a staging topic, as the same
record batches that the driver writes to their target partitions.
"""

import contextlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from headrace.client.errors import TopicExists
from headrace.protocol.batch import HEADER_SIZE
from headrace.protocol.compression import Compression
from headrace.protocol.ids import TopicPartition
from headrace.spark.errors import SparkError
from headrace.spark.producer import BatchProducer, EncodedBatch
from headrace.tables.reader.cluster import ClusterConnections
from headrace.tables.reader.fetcher import Fetcher
from headrace.tables.reader.offsets import Range

MESSAGE_BYTES: Final = 256 * 1024  # of each task; the messages of all tasks are in the driver's memory
PARTITIONS: Final = 16  # so that tasks that run at the same time seldom share one
CONFIGS: Final = {
    "cleanup.policy": "delete",
    "retention.ms": str(24 * 3600 * 1000),  # longer than a batch takes; the sink deletes records it has read
    "message.timestamp.type": "CreateTime",
    "compression.type": "producer",
    "max.message.bytes": str(64 * 1024 * 1024),
}


@dataclass(frozen=True, slots=True)
class Spilled:
    """The record batches of one producer in a range of the staging topic, and their target partitions."""

    range: Range
    producer_id: int
    targets: tuple[TopicPartition, ...]
    order: "array[int]"  # for each batch, the index of its target


@dataclass(slots=True)
class StagedRecords:
    """What a task tells the driver: its records, or where in the staging topic they are."""

    records: int
    size: int  # in bytes
    partitions: tuple[TopicPartition, ...]
    inline: list[EncodedBatch] = field(default_factory=list)
    spilled: Spilled | None = None


class Stage:
    """Collects the records of one task."""

    def __init__(
        self,
        cluster: ClusterConnections,
        topic: str,
        *,
        task: int,
        compression: Compression = Compression.NONE,
        max_bytes: int = MESSAGE_BYTES,
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._task = task
        self._max_bytes = max_bytes
        self._compression = compression
        self._inline: list[EncodedBatch] = []
        self._size = self._records = 0
        self._targets: dict[TopicPartition, int] = {}
        self._order = array("i")
        self._producer: BatchProducer | None = None
        self._partition = TopicPartition(topic, 0)

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()

    def add(self, batch: EncodedBatch) -> None:
        self._records += batch.records
        self._size += len(batch.body)
        self._order.append(self._targets.setdefault(batch.partition, len(self._targets)))
        if self._producer is not None:
            self._spill(self._producer, batch)
            return
        self._inline.append(batch._replace(body=bytes(batch.body)))
        if self._size > self._max_bytes:
            with contextlib.suppress(TopicExists):  # another task has created it
                self._cluster.retry(
                    lambda: self._cluster.admin.create(self._topic, partitions=PARTITIONS, configs=CONFIGS)
                )
            count = self._cluster.partition_count(self._topic)
            self._partition = TopicPartition(self._topic, self._task % count)
            self._producer = BatchProducer(self._cluster, compression=self._compression)
            for waiting in self._inline:
                self._spill(self._producer, waiting)
            self._inline.clear()

    def finish(self) -> StagedRecords:
        """Return the message to the driver, after all records in the staging topic are acknowledged."""
        staged = StagedRecords(self._records, self._size, tuple(self._targets), self._inline)
        if self._producer is not None:
            first, last = self._producer.flush()[self._partition]
            staged.spilled = Spilled(
                Range(self._partition, first, last + 1),
                self._producer.producer.id,
                tuple(self._targets),
                self._order,
            )
        return staged

    def _spill(self, producer: BatchProducer, batch: EncodedBatch) -> None:
        producer.add(self._partition, batch.body, batch.records, batch.timestamp_ms)


def read_staged(cluster: ClusterConnections, staged: StagedRecords) -> Iterator[EncodedBatch]:
    """Yield the batches of a task in the order in which it has added them."""
    yield from staged.inline
    spilled = staged.spilled
    if spilled is None:
        return
    found = 0
    for data, header in Fetcher(cluster, spilled.range):
        if header.producer_id != spilled.producer_id:
            continue  # another task writes to this partition, too
        target = spilled.targets[spilled.order[found]]
        yield EncodedBatch(target, data[HEADER_SIZE:], header.records_count, header.base_timestamp)
        found += 1
    if found != len(spilled.order):
        raise SparkError(f"{spilled.range}: {found} of {len(spilled.order)} staged batches are there")


def discard(
    cluster: ClusterConnections, topic: str, staged: Iterable[StagedRecords], *, for_good: bool
) -> None:
    """Delete staged records from the topic, or the topic itself `for_good`."""
    ends: dict[int, int] = {}
    for task in staged:
        if task.spilled is not None:
            index = task.spilled.range.partition.partition
            ends[index] = max(ends.get(index, 0), task.spilled.range.last)
    if ends and for_good:
        cluster.admin.delete(topic)
    elif ends:
        cluster.admin.delete_records(topic, ends)
