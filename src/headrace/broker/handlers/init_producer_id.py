"""InitProducerId (key 22), v0-v6.

Behaviour: returns a new producer id with epoch 0 for an idempotent producer, also if it has one already. For
           a transactional id it returns the producer id with a new epoch, which fences earlier instances of
           the producer; their ongoing transaction is aborted first, and the client gets
           CONCURRENT_TRANSACTIONS until that is done.
Versions:  v2 flexible; v3 the producer's current id and epoch; v4 PRODUCER_FENCED; v6 two-phase commit, as
           far as Kafka 4.3 has it: keepPreparedTxn is refused with UNSUPPORTED_VERSION. Kafka calls v6
           unstable: it needs unstable.api.versions.enable.
"""

from typing import Final

from headrace.broker.coordinators.transactions import fencing_code
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_topics, on_transactional_ids
from headrace.broker.translate import FAILURES
from headrace.coordination.errors import CoordinationError
from headrace.coordinators.decision import Producer
from headrace.coordinators.transaction.coordinator import InitProducerId
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.security.authorization import Operation, Permission, ResourceType

_FENCED = 4
_WRITE: Final = on_transactional_ids(Operation.WRITE)
_TWO_PHASE_COMMIT: Final = on_transactional_ids(Operation.TWO_PHASE_COMMIT)
_IDEMPOTENT_WRITE: Final = Permission(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
_WRITE_TOPIC: Final = on_topics(Operation.WRITE)


@handles(
    ApiKey.INIT_PRODUCER_ID, range(7), requires=(_WRITE, _TWO_PHASE_COMMIT, _IDEMPOTENT_WRITE, _WRITE_TOPIC)
)
async def init_producer_id(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    try:
        _authorize(request, context)
        if request.transactional_id is None:
            producer = Producer(await context.broker.producer_ids.take(), 0)
        else:
            has_producer = request.producer_id != -1 and request.producer_epoch != -1
            init = InitProducerId(
                request.transactional_id,
                request.transaction_timeout_ms,
                expected=Producer(request.producer_id, request.producer_epoch) if has_producer else None,
                two_phase_commit=request.enable2_pc,
                keep_prepared=request.keep_prepared_txn,
            )
            producer = await context.broker.transactions.write(
                init.transactional_id,
                lambda machine, now_ms, new_id: machine.init_producer_id(init, now_ms, new_id),
            )
    except CoordinationError:  # producers retry this error, but not REQUEST_TIMED_OUT
        return _refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    except FAILURES as error:
        return _refused(fencing_code(error, knows_fenced=context.version >= _FENCED))
    return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)


def _authorize(request: InitProducerIdRequest, context: Context) -> None:
    """Raise AuthorizationFailed if the principal may not have a producer id.

    Without a transactional id, who may write to any topic may have one (KIP-679).
    """
    if request.transactional_id is not None:
        context.require(_WRITE, request.transactional_id)
        if request.enable2_pc:
            context.require(_TWO_PHASE_COMMIT, request.transactional_id)
    elif not context.authorizer.may_on_any_resource(context.principal, context.address, *_WRITE_TOPIC):
        context.require(_IDEMPOTENT_WRITE)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
