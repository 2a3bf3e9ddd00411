"""The exactly-once sink: tasks stage encoded records, and the driver writes them in one transaction.

The transaction also records the number of the batch. When Spark repeats a batch after a crash, the driver
reads this number, and does not write a batch that is committed already. See decision 0020.
"""

import logging
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext

from headrace.client.errors import ClientError
from headrace.spark.batch import Batch, Sink, current_batch
from headrace.spark.errors import SparkError, spark_errors
from headrace.spark.producer import BatchProducer
from headrace.spark.shared import shared_cluster
from headrace.spark.sink import encoded_batches
from headrace.spark.sink_options import SinkOptions
from headrace.spark.staging import Stage, StagedRecords, discard, read_staged
from headrace.spark.transaction import Transaction, last_batch
from headrace.tables.reader.cluster import ClusterConnections

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_TIMEOUT_MS: Final = 60_000
MOST_TIMEOUT_MS: Final = 900_000  # transaction.max.timeout.ms of a broker by default
SLOWEST_BYTES_PER_MS: Final = 10_000  # the rate of writing that the timeout allows for

logger = logging.getLogger(__name__)


class TransactionalSink(Sink):
    """All rows of a batch become visible once and together, when the driver commits it, or none."""

    def __init__(self, options: SinkOptions, *, is_stream: bool) -> None:
        self._options = options
        self._is_stream = is_stream
        self._unique = str(uuid.uuid4())

    def _name(self, batch: Batch | None) -> str:
        """Return the transactional id; a single write has an id of its own."""
        query_id = self._unique if batch is None else batch.query_id
        return self._options.transactional_id or f"headrace-spark-{query_id}"

    def write(self, batches: "Iterator[pa.RecordBatch]") -> list[StagedRecords]:
        batch = current_batch() if self._is_stream else self._options.batch
        return [stage_rows(self._options, self._name(batch), batches)]

    def commit(self, written: Sequence[StagedRecords], batch: Batch | None) -> None:
        write_transaction(self._options, self._name(batch), written, batch)
        self._discard(written, batch)

    def abort(self, written: Sequence[StagedRecords], batch: Batch | None, *, is_complete: bool) -> None:  # noqa: ARG002
        logger.warning("%s failed; unless it is found committed, it is written when repeated", batch)
        self._discard(written, batch)

    def _discard(self, staged: Sequence[StagedRecords], batch: Batch | None) -> None:
        """Delete staged records, which nobody needs any more; retention deletes them if this fails.

        A single write deletes its staging topic, which a query or an application uses again.
        """
        if not any(task.spilled for task in staged):
            return
        options = self._options
        with closing(
            ClusterConnections(options.bootstrap, options.security, client_id=options.client_id)
        ) as cluster:
            try:
                discard(cluster, _staging_topic(self._name(batch)), staged, for_good=batch is None)
            except ClientError as error:
                logger.warning("staged records are left to retention: %s", error)


@spark_errors()
def stage_rows(options: SinkOptions, name: str, batches: "Iterator[pa.RecordBatch]") -> StagedRecords:
    """Encode all rows, and keep them for the driver; runs on an executor."""
    context = TaskContext.get()
    task = context.partitionId() if context else 0
    cluster = shared_cluster(options.bootstrap, options.security, options.client_id, creates_topics=True)
    with closing(Stage(cluster, _staging_topic(name), task=task, compression=options.compression)) as stage:
        for batch in encoded_batches(cluster, options, batches):
            stage.add(batch)
        return stage.finish()


@spark_errors()
def write_transaction(
    options: SinkOptions, name: str, staged: Sequence[StagedRecords], batch: Batch | None
) -> bool:
    """Write staged records in one transaction; return False if the batch has been committed before.

    The order matters: InitProducerId ends the transaction of a driver that died, or fences one that is
    still alive, and only then is the number of the last batch final.
    """
    partitions = {partition for task in staged for partition in task.partitions}
    if not partitions:
        return False  # an empty batch can be repeated without effect
    with closing(
        ClusterConnections(options.bootstrap, options.security, client_id=options.client_id)
    ) as cluster:
        # All records have to be written within the timeout of the transaction.
        size = sum(task.size for task in staged)
        longest = min(MOST_TIMEOUT_MS, LEAST_TIMEOUT_MS + size // SLOWEST_BYTES_PER_MS)
        transaction = Transaction(cluster, name, options.transaction_timeout_ms or longest)
        if batch is not None and last_batch(cluster, name, batch.query_id) >= batch.batch_id:
            logger.info("%s has already been committed by transactional.id %s", batch, name)
            return False
        try:
            transaction.add_partitions(partitions)
            own, codec = transaction.producer, options.compression
            with closing(
                BatchProducer(cluster, producer=own, compression=codec, timeout_s=options.timeout_s)
            ) as producer:
                for task in staged:
                    for partition, body, records, timestamp_ms in read_staged(cluster, task):
                        producer.add(partition, body, records, timestamp_ms)
                ends = {partition: last + 1 for partition, (_, last) in producer.flush().items()}
            if batch is not None:
                # The first partition of every topic: a batch is recorded as long as one of its topics exists.
                first = {partition.topic: partition for partition in sorted(ends, reverse=True)}
                transaction.commit_batch(batch, {partition: ends[partition] for partition in first.values()})
        except BaseException as error:
            try:
                transaction.end(committed=False)
            except (ClientError, SparkError) as failure:  # the broker aborts at the transaction's timeout
                error.add_note(f"the transaction could not be aborted: {failure}")
            raise
        # If this fails, the outcome is unknown, and must not be changed: a repeated batch finds it out.
        transaction.end(committed=True)
    return True


def _staging_topic(name: str) -> str:
    return f"{name}-staging"
