"""The at-least-once sink: executors write rows to topics as record batches, and the driver counts them.

Each task returns a `TaskResult` to the driver. There are no transactions, so a record counts as soon as it is
acknowledged, and nothing is left to do at the driver's commit. `transactional_sink` writes exactly once.
"""

import logging
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from headrace.protocol.compression import compress
from headrace.protocol.ids import TopicPartition
from headrace.spark.batch import Batch, Sink
from headrace.spark.errors import spark_errors
from headrace.spark.producer import BatchProducer, EncodedBatch, ProducerId, Sequences
from headrace.spark.shared import shared_cluster
from headrace.spark.sink_options import SinkOptions
from headrace.tables.reader.cluster import ClusterConnections

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

# The producer of the last task of this process, whose records are all acknowledged, for the next task.
_sequences: WeakKeyDictionary[ClusterConnections, Sequences] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The producer of a task, and the offsets of its records."""

    producer: ProducerId
    records: int
    offsets: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)


@spark_errors()
def write_batches(options: SinkOptions, batches: "Iterator[pa.RecordBatch]") -> TaskResult:
    """Write all rows, and return when all are acknowledged; runs on an executor."""
    records = 0
    cluster = shared_cluster(options.bootstrap, options.security, options.client_id, creates_topics=True)
    before = _sequences.pop(cluster, None)
    with closing(
        BatchProducer(
            cluster,
            acks=options.acks,
            idempotent=options.idempotent,
            before=before if options.idempotent else None,
            compression=options.compression,
            timeout_s=options.timeout_s,
        )
    ) as producer:
        try:
            for partition, body, count, now_ms in encoded_batches(cluster, options, batches):
                producer.add(partition, body, count, now_ms)
                records += count
            offsets = producer.flush()
        except BaseException:
            cluster.forget_partition_counts()
            raise
        if options.idempotent:
            _sequences[cluster] = producer.sequences()
    return TaskResult(producer.producer, records, offsets)


def encoded_batches(
    cluster: ClusterConnections, options: SinkOptions, batches: "Iterator[pa.RecordBatch]"
) -> Iterator[EncodedBatch]:
    """Yield the rows as encoded and compressed records of their partitions."""
    # numba and pyarrow are imported only on executors: planning does not need them.
    from headrace.spark.rows import RowEncoder  # noqa: PLC0415

    encoder = RowEncoder(cluster, options.topic, options.batch_bytes, turn=secrets.randbelow(1 << 16))
    for batch in batches:
        now_ms = time.time_ns() // 1_000_000
        for partition, body, count in encoder.encoded(batch):
            yield EncodedBatch(partition, compress(options.compression, body), count, now_ms)


class TopicSink(Sink):
    """Records of a batch that Spark repeats are written again: at least once."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, batches: "Iterator[pa.RecordBatch]") -> list[TaskResult]:
        return [write_batches(self._options, batches)]

    def commit(self, written: Sequence[TaskResult], batch: Batch | None) -> None:
        logger.info("%s: %d records were written", batch, sum(task.records for task in written))

    def abort(self, written: Sequence[TaskResult], batch: Batch | None, *, is_complete: bool) -> None:  # noqa: ARG002
        count = sum(task.records for task in written)
        logger.warning("the write of %s failed; %d of its records are in their topics", batch, count)
