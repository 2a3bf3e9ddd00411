"""DescribeTransactions (key 65), v0.

Behaviour: returns the state, the producer, the start and the partitions of transactions that this broker
           coordinates. Topics that the principal may not describe are left out.
"""

from collections import defaultdict
from functools import partial
from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.repeats import bounded_repeats
from headrace.broker.requests.requirements import on_topics, on_transactional_ids
from headrace.broker.slices import in_slices, one_by_one
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.schema import describe_transactions as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_DESCRIBE: Final = on_transactional_ids(Operation.DESCRIBE)
_DESCRIBE_TOPIC: Final = on_topics(Operation.DESCRIBE)


@handles(ApiKey.DESCRIBE_TRANSACTIONS, range(1), requires=(_DESCRIBE, _DESCRIBE_TOPIC))
async def describe_transactions(
    request: api.DescribeTransactionsRequest, context: Context
) -> api.DescribeTransactionsResponse:
    ids = await in_slices(bounded_repeats(request.transactional_ids))
    states = await one_by_one(partial(_describe, context=context), ids)
    return api.DescribeTransactionsResponse(transaction_states=states)


async def _describe(transactional_id: str, context: Context) -> api.TransactionState:
    try:
        context.require(_DESCRIBE, transactional_id)
        shard = context.broker.transactions.shard(transactional_id)
        transaction = shard.machine.describe(transactional_id)
        committed = shard.barrier()
        if committed is not None:
            await committed
    except FAILURES as error:
        return api.TransactionState(
            error_code=error_code(error),
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=(),
        )
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(transaction.partitions):
        by_topic[topic].append(partition)
    return api.TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.kafka_name,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            api.TopicData(topic=topic, partitions=partitions)
            for topic, partitions in by_topic.items()
            if context.may(_DESCRIBE_TOPIC, topic)
        ],
    )
