"""AddOffsetsToTxn (key 25), v0-v4.

Behaviour: adds a group's partition of __consumer_offsets to a transaction, before TxnOffsetCommit. Clients
           with TxnOffsetCommit v5 do not send it: there the group coordinator adds the partition.
Versions:  v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE.
"""

from headrace.broker.coordinators.transactions import fencing_code
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_group, on_transactional_id
from headrace.broker.translate import FAILURES
from headrace.coordinators.decision import Producer
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation
from headrace.storage.topics import OFFSETS_TOPIC

_FENCED = 2


@handles(
    ApiKey.ADD_OFFSETS_TO_TXN,
    range(5),
    requires=(on_transactional_id(Operation.WRITE), on_group(Operation.READ)),
)
async def add_offsets_to_txn(request: AddOffsetsToTxnRequest, context: Context) -> AddOffsetsToTxnResponse:
    broker = context.broker
    producer = Producer(request.producer_id, request.producer_epoch)
    try:
        await broker.groups.topic.ensure()
        partition = TopicPartition(OFFSETS_TOPIC, broker.groups.partition_for(request.group_id))
        await broker.transactions.shard(request.transactional_id).write(
            lambda machine, now_ms: machine.add_partitions(
                request.transactional_id, producer, frozenset([partition]), 0, now_ms
            )
        )
    except FAILURES as error:
        return AddOffsetsToTxnResponse(
            error_code=fencing_code(error, knows_fenced=context.version >= _FENCED)
        )
    return AddOffsetsToTxnResponse()
