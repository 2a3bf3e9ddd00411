"""AddPartitionsToTxn (key 24), v0-v5.

Behaviour: adds partitions to a transaction, all or none. Brokers send v4 and later, for several transactions:
           to verify that the partition of a first batch is in its transaction, or to add it (KIP-890).
Versions:  v2 PRODUCER_FENCED; v3 flexible; v4 several transactions, verification; v5 TRANSACTION_ABORTABLE.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from headrace.broker.coordinators.transactions import fencing_code
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.repeats import partitions_once
from headrace.broker.requests.requirements import on_cluster, on_topics, on_transactional_ids
from headrace.broker.slices import STEP, Steps, Turns, in_slices, one_by_one
from headrace.broker.slices import each as each_of
from headrace.broker.translate import FAILURES, error_code
from headrace.coordinators.decision import Producer
from headrace.coordinators.transaction.state import EPOCH_BUMP_VERSION
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema import add_partitions_to_txn as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import AuthorizationFailed, Operation
from headrace.storage.topics import INTERNAL_TOPICS

_FENCED, _BATCHED = 2, 4
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
    request: api.AddPartitionsToTxnRequest, context: Context
) -> api.AddPartitionsToTxnResponse:
    if context.version < _BATCHED:
        one = api.AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        outcome = await _authorized(one, context)
        results = await in_slices(_results(one.topics, outcome))
        return api.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
    if not context.accepts_brokers:
        return api.AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    async def answer(transaction: api.AddPartitionsToTxnTransaction) -> api.AddPartitionsToTxnResult:
        outcome = await (_verified if transaction.verify_only else _added)(transaction, context)
        results = await in_slices(_results(transaction.topics, outcome))
        return api.AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id, topic_results=results
        )

    return api.AddPartitionsToTxnResponse(
        results_by_transaction=await one_by_one(answer, request.transactions)
    )


async def _authorized(transaction: api.AddPartitionsToTxnTransaction, context: Context) -> _Outcome:
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
    transaction: api.AddPartitionsToTxnTransaction,
    context: Context,
    denied: Mapping[TopicPartition, ErrorCode] = MappingProxyType({}),
) -> _Outcome:
    partitions = await in_slices(_partitions(transaction))
    exists = context.broker.image.has_partition
    unknown = await in_slices(
        _refused(partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lambda id_: exists(*id_))
    )
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


async def _verified(transaction: api.AddPartitionsToTxnTransaction, context: Context) -> _Outcome:
    """Return the errors of a verification; it waits until the partitions are committed to the log.

    If a partition is not part of the transaction, the client can only abort.
    """
    partitions = await in_slices(_partitions(transaction))
    try:
        ongoing: frozenset[TopicPartition] = await context.broker.transactions.shard(
            transaction.transactional_id
        ).write(
            lambda machine, now_ms: machine.ongoing_partitions(
                transaction.transactional_id, _producer(transaction), now_ms
            )
        )
    except FAILURES as error:
        return _Outcome(error_code(error))
    missing = _refused(partitions, ErrorCode.TRANSACTION_ABORTABLE, ongoing.__contains__)
    return _Outcome(ErrorCode.NONE, await in_slices(missing))


def _producer(transaction: api.AddPartitionsToTxnTransaction) -> Producer:
    return Producer(transaction.producer_id, transaction.producer_epoch)


def _partitions(transaction: api.AddPartitionsToTxnTransaction) -> Steps[dict[TopicPartition, None]]:
    return partitions_once((topic.name, topic.partitions) for topic in transaction.topics)


def _refused(
    partitions: Iterable[TopicPartition], code: ErrorCode, is_accepted: Callable[[TopicPartition], bool]
) -> Steps[dict[TopicPartition, ErrorCode]]:
    """Return `code` for each partition that is not accepted."""
    refused = {}
    for number, partition in enumerate(partitions):
        if not number % STEP:
            yield
        if not is_accepted(partition):
            refused[partition] = code
    return refused


def _results(
    topics: Sequence[api.AddPartitionsToTxnTopic], outcome: _Outcome
) -> Steps[list[api.AddPartitionsToTxnTopicResult]]:
    results = []
    for topic in topics:

        def result(index: int, name: str = topic.name) -> api.AddPartitionsToTxnPartitionResult:
            code = outcome.codes.get(TopicPartition(name, index), outcome.others)
            return api.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)

        yield
        partitions = yield from each_of(result, topic.partitions)
        results.append(api.AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=partitions))
    return results
