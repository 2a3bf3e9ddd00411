"""EndTxn (key 26), v0-v5.

Behaviour: commits or aborts a transaction. The response is sent when the outcome is committed in
           __transaction_state; the markers are written afterwards.
Versions:  v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE; v5 the epoch is bumped with every
           transaction (KIP-890), and the response has the producer id and epoch of the next one.
"""

from headrace.broker.coordinators.transactions import fencing_code
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_transactional_id
from headrace.broker.translate import FAILURES
from headrace.coordination.errors import CoordinationError
from headrace.coordinators.decision import Producer
from headrace.coordinators.transaction.coordinator import EndTransaction
from headrace.coordinators.transaction.state import EPOCH_BUMP_VERSION
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.end_txn import EndTxnRequest, EndTxnResponse
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_FENCED, _EPOCH_BUMP = 2, 5


@handles(ApiKey.END_TXN, range(6), requires=on_transactional_id(Operation.WRITE))
async def end_txn(request: EndTxnRequest, context: Context) -> EndTxnResponse:
    end = EndTransaction(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        commit=request.committed,
        client_version=EPOCH_BUMP_VERSION if context.version >= _EPOCH_BUMP else 0,
    )
    try:
        producer = await context.broker.transactions.write(
            request.transactional_id, lambda machine, now_ms, new_id: machine.end(end, now_ms, new_id)
        )
    except CoordinationError:  # there is no producer id at the moment
        return EndTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    except FAILURES as error:
        return EndTxnResponse(error_code=fencing_code(error, knows_fenced=context.version >= _FENCED))
    return EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)
