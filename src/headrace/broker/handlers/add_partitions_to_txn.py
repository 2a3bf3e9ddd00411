"""AddPartitionsToTxn (key 24), v0-v5.

Behaviour: adds partitions to a transaction, all or none. Brokers send v4 and later, for several transactions:
           to verify that the partition of a first batch is in its transaction, or to add it (KIP-890).
Versions:  v2 PRODUCER_FENCED; v3 flexible; v4 several transactions, verification; v5 TRANSACTION_ABORTABLE.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from headrace.broker.coordinators.transactions import fencing_code
from headrace.broker.image import TopicImage
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster, on_topics, on_transactional_ids
from headrace.broker.slices import Steps, Turns, in_slices
from headrace.broker.slices import each as each_of
from headrace.broker.translate import FAILURES, error_code
from headrace.coordinators.decision import Producer
from headrace.coordinators.transaction.state import EPOCH_BUMP_VERSION
from headrace.protocol.errors import ErrorCode
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
from headrace.security.authorization import AuthorizationFailed, Operation
from headrace.storage.topics import INTERNAL_TOPICS

_FENCED, _BATCHED = 2, 4
_SLICE = 256  # partitions between two turns of other requests


_WRITE: Final = on_transactional_ids(Operation.WRITE)
_WRITE_TOPIC: Final = on_topics(Operation.WRITE)


class _Outcome(NamedTuple):
    """The error codes of some partitions, and that of all others."""

    others: ErrorCode
    codes: Mapping[TopicPartition, ErrorCode] = MappingProxyType({})


@handles(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    range(6),
    requires=(
        _WRITE,
        _WRITE_TOPIC,
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
        outcome = await _authorized(one, context)
        results = await in_slices(_results(one.topics, outcome))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
    if not context.accepts_brokers:
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    answers, turns = [], Turns()
    for each in request.transactions:
        outcome = await (_verified if each.verify_only else _added)(each, context)
        results = await in_slices(_results(each.topics, outcome))
        answers.append(
            AddPartitionsToTxnResult(transactional_id=each.transactional_id, topic_results=results)
        )
        await turns.next()
    return AddPartitionsToTxnResponse(results_by_transaction=answers)


async def _authorized(transaction: AddPartitionsToTxnTransaction, context: Context) -> _Outcome:
    """Add the partitions for a client, if it may write to all of them."""
    try:
        context.require(_WRITE, transaction.transactional_id)
    except AuthorizationFailed as error:
        return _Outcome(error.code)
    denied: dict[TopicPartition, ErrorCode] = {}
    turns = Turns()
    for topic in transaction.topics:
        if topic.name in INTERNAL_TOPICS or not context.may(_WRITE_TOPIC, topic.name):
            code = context.denied(_WRITE_TOPIC, topic.name).code
            for index in topic.partitions:
                denied[TopicPartition(topic.name, index)] = code
                await turns.next()
        await turns.next()
    return await _added(transaction, context, denied)


async def _added(
    transaction: AddPartitionsToTxnTransaction,
    context: Context,
    denied: Mapping[TopicPartition, ErrorCode] = MappingProxyType({}),
) -> _Outcome:
    partitions = await in_slices(_partitions(transaction.topics))
    unknown = await in_slices(_unknown(partitions, context.broker.image.topics))
    if unknown or denied:
        return _Outcome(ErrorCode.OPERATION_NOT_ATTEMPTED, {**unknown, **denied})
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
        return _Outcome(fencing_code(error, knows_fenced=context.version >= _FENCED))
    return _Outcome(ErrorCode.NONE)


async def _verified(transaction: AddPartitionsToTxnTransaction, context: Context) -> _Outcome:
    """Return the errors of a verification; it waits until the partitions are committed to the log."""
    partitions = await in_slices(_partitions(transaction.topics))
    try:
        reply: asyncio.Future[Any] = context.broker.transactions.shard(transaction.transactional_id).write(
            lambda machine, now_ms: machine.ongoing_partitions(
                transaction.transactional_id, _producer(transaction), now_ms
            )
        )
        ongoing: frozenset[TopicPartition] = await reply
    except FAILURES as error:
        return _Outcome(error_code(error))
    return _Outcome(ErrorCode.NONE, await in_slices(_missing(partitions, ongoing)))


def _producer(transaction: AddPartitionsToTxnTransaction) -> Producer:
    return Producer(transaction.producer_id, transaction.producer_epoch)


def _partitions(topics: Sequence[AddPartitionsToTxnTopic]) -> Steps[dict[TopicPartition, None]]:
    """Return each partition of the request once, in steps: a request may repeat it as often as it likes."""
    found: dict[TopicPartition, None] = {}
    for topic in topics:
        yield
        for first in range(0, len(topic.partitions), _SLICE):
            yield
            some = topic.partitions[first : first + _SLICE]
            found.update(dict.fromkeys(TopicPartition(topic.name, index) for index in some))
    return found


def _unknown(
    partitions: Iterable[TopicPartition], topics: Mapping[str, TopicImage]
) -> Steps[dict[TopicPartition, ErrorCode]]:
    """Return the error of each partition that does not exist."""
    found = {}
    for number, partition in enumerate(partitions):
        if not number % _SLICE:
            yield
        topic = topics.get(partition.topic)
        if topic is None or partition.partition not in topic.replicas:
            found[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return found


def _missing(
    partitions: Iterable[TopicPartition], ongoing: frozenset[TopicPartition]
) -> Steps[dict[TopicPartition, ErrorCode]]:
    """Return the error of each partition that is not part of the transaction. The client can only abort."""
    found = {}
    for number, partition in enumerate(partitions):
        if not number % _SLICE:
            yield
        if partition not in ongoing:
            found[partition] = ErrorCode.TRANSACTION_ABORTABLE
    return found


def _results(
    topics: Sequence[AddPartitionsToTxnTopic], outcome: _Outcome
) -> Steps[list[AddPartitionsToTxnTopicResult]]:
    results = []
    for topic in topics:

        def result(index: int, name: str = topic.name) -> AddPartitionsToTxnPartitionResult:
            code = outcome.codes.get(TopicPartition(name, index), outcome.others)
            return AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)

        yield
        partitions = yield from each_of(result, topic.partitions)
        results.append(AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=partitions))
    return results
