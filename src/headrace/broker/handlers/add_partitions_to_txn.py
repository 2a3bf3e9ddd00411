"""AddPartitionsToTxn (key 24), v0-v5.

Behaviour: adds partitions to a transaction, all or none. Brokers send v4 and later, for several transactions:
           to verify that the partition of a first batch is in its transaction, or to add it (KIP-890).
Versions:  v2 PRODUCER_FENCED; v3 flexible; v4 several transactions, verification; v5 TRANSACTION_ABORTABLE.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.broker.dispatch import Context, handles
from headrace.broker.requirements import on_cluster, on_topics, on_transactional_ids
from headrace.broker.slices import Turns
from headrace.broker.transactions import fencing_code
from headrace.broker.translate import FAILURES, error_code
from headrace.coordinator.decision import Producer
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation
from headrace.transaction.state import EPOCH_BUMP_VERSION

_FENCED, _BATCHED = 2, 4
_Errors = Mapping[TopicPartition, ErrorCode] | ErrorCode


@handles(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    range(6),
    requires=(
        on_transactional_ids(
            Operation.WRITE,
            lambda request: (
                [request.v3_and_below_transactional_id] if request.v3_and_below_transactional_id else ()
            ),
        ),
        on_topics(Operation.WRITE, lambda request: request.v3_and_below_topics),
        on_cluster(Operation.CLUSTER_ACTION, lambda request: bool(request.transactions)),
    ),
)
async def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: Context
) -> AddPartitionsToTxnResponse:
    if context.version < _BATCHED:
        one = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        errors = await _added(one, context)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(one.topics, errors))
    if not context.listener.is_inter_broker:
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results, turns = [], Turns()
    for each in request.transactions:
        errors = await (_verified if each.verify_only else _added)(each, context)
        results.append(
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id, topic_results=_results(each.topics, errors)
            )
        )
        await turns.next()
    return AddPartitionsToTxnResponse(results_by_transaction=results)


async def _added(transaction: AddPartitionsToTxnTransaction, context: Context) -> _Errors:
    partitions = _partitions(transaction.topics)
    topics = context.broker.image.topics
    unknown = {
        partition
        for partition in partitions
        if partition.topic not in topics or partition.partition not in topics[partition.topic].replicas
    }
    if unknown:
        return {
            partition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if partition in unknown
            else ErrorCode.OPERATION_NOT_ATTEMPTED
            for partition in partitions
        }
    version = EPOCH_BUMP_VERSION if context.version >= _BATCHED else 0
    added = frozenset(partitions)
    try:
        shard = context.broker.transactions.shard(transaction.transactional_id)
        await shard.write(
            lambda machine, now_ms: machine.add_partitions(
                transaction.transactional_id, _producer(transaction), added, version, now_ms
            )
        )
    except FAILURES as error:
        return fencing_code(error, knows_fenced=context.version >= _FENCED)
    return ErrorCode.NONE


async def _verified(transaction: AddPartitionsToTxnTransaction, context: Context) -> _Errors:
    """Return the errors of a verification; it waits until the partitions are committed to the log."""
    partitions = _partitions(transaction.topics)
    try:
        reply: asyncio.Future[Any] = context.broker.transactions.shard(transaction.transactional_id).write(
            lambda machine, now_ms: machine.verify_partitions(
                transaction.transactional_id, _producer(transaction), partitions, now_ms
            )
        )
        missing: Mapping[TopicPartition, KafkaError] = await reply
    except FAILURES as error:
        return error_code(error)
    return {partition: error.code for partition, error in missing.items()}


def _producer(transaction: AddPartitionsToTxnTransaction) -> Producer:
    return Producer(transaction.producer_id, transaction.producer_epoch)


def _partitions(topics: Sequence[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _results(
    topics: Sequence[AddPartitionsToTxnTopic], errors: _Errors
) -> list[AddPartitionsToTxnTopicResult]:
    def code(topic: str, index: int) -> ErrorCode:
        if isinstance(errors, ErrorCode):
            return errors
        return errors.get(TopicPartition(topic, index), ErrorCode.NONE)

    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=code(topic.name, index)
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
