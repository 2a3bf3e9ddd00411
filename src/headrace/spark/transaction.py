"""A transaction of the exactly-once sink, and the number of the last batch that a query has committed.

The requests are those of transaction version 1: partitions are added before records are written to them.
Brokers of every version accept them. A transaction begins with InitProducerId, so each has a producer epoch
of its own, and a delayed request of an earlier one cannot affect it.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from headrace.client.errors import ClientError, raise_for
from headrace.client.wire.connection import NEWEST
from headrace.client.wire.requests import CoordinatorType
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition, by_topic
from headrace.protocol.schema.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.protocol.schema.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from headrace.protocol.schema.end_txn import EndTxnRequest
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.protocol.schema.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from headrace.protocol.schema.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.spark.batch import Batch
from headrace.spark.errors import SparkError
from headrace.spark.producer import ProducerId
from headrace.tables.reader.cluster import ClusterConnections

NO_BATCH: Final = -1
ADD_PARTITIONS_VERSION: Final = 3  # the last one for clients
OFFSET_COMMIT_VERSION: Final = 4  # the last one of transaction version 1
END_VERSION: Final = 4  # the last one of transaction version 1
_FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


class Fenced(SparkError):
    """The transaction is over, and this producer did not end it."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__(
            f"transactional.id {transactional_id}: another driver has begun a transaction, or this one took "
            "longer than kafka.transaction.timeout.ms (PRODUCER_FENCED): see that the query runs only once, "
            "and start it again"
        )


class Transaction:
    """An open transaction. Creating it aborts or completes the last one of this transactional id."""

    def __init__(self, cluster: ClusterConnections, transactional_id: str, timeout_ms: int) -> None:
        self._cluster = cluster
        self._id = transactional_id
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
        answer = self._ask(request, lambda answer: answer.error_code)
        self.producer = ProducerId(
            id=answer.producer_id, epoch=answer.producer_epoch, transactional_id=transactional_id
        )

    def add_partitions(self, partitions: Collection[TopicPartition]) -> None:
        """Make the partitions part of the transaction; records may be written to them after that."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self.producer.id,
            v3_and_below_producer_epoch=self.producer.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                for topic, indexes in by_topic(sorted(partitions)).items()
            ],
        )

        def error_of(answer: Any) -> int:
            """Return why the partitions were not added; they are added together or not at all."""
            topics = answer.results_by_topic_v3_and_below
            codes = [
                partition.partition_error_code for topic in topics for partition in topic.results_by_partition
            ]
            return _first_error(code for code in codes if code != ErrorCode.OPERATION_NOT_ATTEMPTED)

        self._ask(request, error_of, max_version=ADD_PARTITIONS_VERSION)

    def commit_batch(self, batch: Batch, offsets: Mapping[TopicPartition, int]) -> None:
        """Record the batch as committed, in the metadata of these offsets, if the transaction commits."""
        own: dict[str, Any] = {"transactional_id": self._id, "group_id": self._id}
        own |= {"producer_id": self.producer.id, "producer_epoch": self.producer.epoch}
        self._ask(AddOffsetsToTxnRequest(**own), lambda answer: answer.error_code)
        metadata = json.dumps({"query": batch.query_id, "batch": batch.batch_id}, separators=(",", ":"))
        topics = []
        for partition, offset in offsets.items():
            committed = TxnOffsetCommitRequestPartition(
                partition_index=partition.partition, committed_offset=offset, committed_metadata=metadata
            )
            topics.append(TxnOffsetCommitRequestTopic(name=partition.topic, partitions=[committed]))
        self._ask(
            TxnOffsetCommitRequest(**own, topics=topics),
            lambda answer: _first_error(
                partition.error_code for topic in answer.topics for partition in topic.partitions
            ),
            coordinator=CoordinatorType.GROUP,
            max_version=OFFSET_COMMIT_VERSION,
        )

    def end(self, *, committed: bool) -> None:
        """Commit or abort the transaction; this may be repeated."""
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            committed=committed,
        )
        self._ask(request, lambda answer: answer.error_code, max_version=END_VERSION)

    def _ask(
        self,
        request: Any,
        error_of: Callable[[Any], int],
        *,
        coordinator: CoordinatorType = CoordinatorType.TRANSACTION,
        max_version: int = NEWEST,
    ) -> Any:
        """Return a coordinator's response, asked again after retriable errors; Fenced, or SparkError."""

        def ask() -> Any:
            answer = self._cluster.at_coordinator(coordinator, self._id, request, max_version=max_version)
            try:
                raise_for(error_of(answer), None, f"transactional.id {self._id}")
            except ClientError as error:
                if error.error_code in _FENCED:
                    raise Fenced(self._id) from error
                raise
            return answer

        return self._cluster.retry(ask)


def last_batch(cluster: ClusterConnections, transactional_id: str, query_id: str) -> int:
    """Return the number of the last batch that this query has committed; NO_BATCH if none is recorded.

    Offsets of a transaction that is still being committed make the coordinator answer with a retriable
    error (`require_stable`).
    """
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=transactional_id, topics=None)], require_stable=True
    )

    def ask() -> int:
        (group,) = cluster.at_coordinator(CoordinatorType.GROUP, transactional_id, request).groups
        raise_for(group.error_code, None, f"group {transactional_id}")
        newest = NO_BATCH
        for partition in [partition for topic in group.topics for partition in topic.partitions]:
            raise_for(partition.error_code, None, f"group {transactional_id}")
            try:
                committed = json.loads(partition.metadata or "")
            except ValueError:
                continue  # an offset that somebody else committed
            if isinstance(committed, dict) and committed.get("query") == query_id:
                batch = committed.get("batch")
                newest = max(newest, batch) if isinstance(batch, int) else newest
        return newest

    return cluster.retry(ask)


def _first_error(codes: Iterable[int]) -> int:
    return next((code for code in codes if code != ErrorCode.NONE), ErrorCode.NONE)
