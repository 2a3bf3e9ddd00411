"""DescribeTransactions (key 65), v0.

Behaviour: returns the state, the producer, the start and the partitions of transactions that this broker
           coordinates. Topics that the principal may not describe are left out.
"""

from collections import defaultdict
from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.repeats import bounded_repeats
from headrace.broker.requests.requirements import on_topics, on_transactional_ids
from headrace.broker.slices import Turns, in_slices
from headrace.broker.translate import FAILURES, error_code
from headrace.coordinators.transaction.state import Transaction
from headrace.protocol.schema.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_DESCRIBE: Final = on_transactional_ids(Operation.DESCRIBE)
_DESCRIBE_TOPIC: Final = on_topics(Operation.DESCRIBE)


@handles(ApiKey.DESCRIBE_TRANSACTIONS, range(1), requires=(_DESCRIBE, _DESCRIBE_TOPIC))
async def describe_transactions(
    request: DescribeTransactionsRequest, context: Context
) -> DescribeTransactionsResponse:
    states, turns = [], Turns()
    for transactional_id in await in_slices(bounded_repeats(request.transactional_ids)):
        states.append(await _describe(transactional_id, context))
        await turns.next()
    return DescribeTransactionsResponse(transaction_states=states)


async def _describe(transactional_id: str, context: Context) -> TransactionState:
    try:
        context.require(_DESCRIBE, transactional_id)
        shard = context.broker.transactions.shard(transactional_id)
        found = shard.machine.describe(transactional_id)
        committed = shard.barrier()
        if committed is not None:
            await committed
    except FAILURES as error:
        return TransactionState(
            error_code=error_code(error),
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=(),
        )
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.kafka_name,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=_topics(found, context),
    )


def _topics(transaction: Transaction, context: Context) -> list[TopicData]:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(transaction.partitions):
        by_topic[topic].append(partition)
    return [
        TopicData(topic=topic, partitions=partitions)
        for topic, partitions in by_topic.items()
        if context.may(_DESCRIBE_TOPIC, topic)
    ]
