"""InitProducerId (key 22), v0-v6.

Behaviour: returns a new producer id with epoch 0 for an idempotent producer, also if it has one already.
Versions:  v2 flexible; v3 the producer's current id and epoch; v6 two-phase commit.
Not yet:   transactional ids are refused with CLUSTER_AUTHORIZATION_FAILED, which is fatal for every producer.
"""

from headrace.broker.dispatch import Context, handles
from headrace.broker.requirements import on_cluster, on_transactional_ids
from headrace.broker.translate import FAILURES
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.security.authorization import Operation


@handles(
    ApiKey.INIT_PRODUCER_ID,
    range(7),
    requires=(
        on_transactional_ids(
            Operation.WRITE, lambda request: [request.transactional_id] if request.transactional_id else ()
        ),
        on_cluster(Operation.IDEMPOTENT_WRITE, lambda request: request.transactional_id is None),
    ),
)
async def init_producer_id(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    transactional_id = request.transactional_id
    if transactional_id == "":
        return _refused(ErrorCode.INVALID_REQUEST)
    if transactional_id is not None:
        refusal = context.broker.transactions.refusal(transactional_id, context.client_id, context.address)
        return _refused(refusal.code)
    try:
        producer_id = await context.broker.producer_ids.take()
    except FAILURES:  # producers retry COORDINATOR_NOT_AVAILABLE, whatever the failure was
        return _refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
