"""InitProducerId (key 22), v0-v6.

Behaviour: an id of its own, at epoch 0, for an idempotent producer; one that asks again with its id gets the
           next epoch, or a new id when its epochs are used up.
Versions:  v2 flexible; v3 the producer's present id and epoch; v6 two-phase commit.
Not yet:   transactional ids are refused with COORDINATOR_NOT_AVAILABLE.
"""

from headrace.broker.dispatch import Context, handles
from headrace.coordination.errors import CoordinationError
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_MAX_EPOCH = 2**15 - 1


@handles(ApiKey.INIT_PRODUCER_ID, range(7))
async def init_producer_id(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        return _refused(
            ErrorCode.COORDINATOR_NOT_AVAILABLE if request.transactional_id else ErrorCode.INVALID_REQUEST
        )
    if request.producer_id >= 0 and 0 <= request.producer_epoch < _MAX_EPOCH - 1:
        return InitProducerIdResponse(
            producer_id=request.producer_id, producer_epoch=request.producer_epoch + 1
        )
    try:
        producer_id = await context.broker.producer_ids.take()
    except CoordinationError:
        return _refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
