"""ListTransactions (key 66), v0-v2.

Behaviour: returns the transactional ids whose coordinator is this broker; clients send the request to every
           broker. Transactional ids that the principal may not describe are left out.
Versions:  v1 filter by duration; v2 filter by a regular expression, in RE2's syntax as in Kafka.
"""

from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_transactional_ids
from headrace.broker.slices import STEP, Steps, keyed
from headrace.broker.translate import FAILURES, error_code
from headrace.coordinators.topics import compile_expression
from headrace.coordinators.transaction.state import Transaction, TransactionState
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from headrace.protocol.schema.list_transactions import TransactionState as ListedTransaction
from headrace.security.authorization import Operation

_STATES: Final = {state.kafka_name: state for state in TransactionState}
_OTHERS: Final = frozenset({"Dead", "PrepareEpochFence"})  # Kafka's, in which no transaction is listed
_DESCRIBE: Final = on_transactional_ids(Operation.DESCRIBE)


@handles(ApiKey.LIST_TRANSACTIONS, range(3), requires=_DESCRIBE)
def list_transactions(request: ListTransactionsRequest, context: Context) -> Steps[ListTransactionsResponse]:
    runtime = context.broker.transactions
    names = yield from keyed(str, request.state_filters)
    unknown = [name for name in names if name not in _STATES and name not in _OTHERS]
    try:
        runtime.ensure_all_ready()
        pattern = (
            compile_expression(request.transactional_id_pattern) if request.transactional_id_pattern else None
        )
    except FAILURES as error:
        return ListTransactionsResponse(
            error_code=error_code(error), unknown_state_filters=unknown, transaction_states=()
        )
    states = {state for name, state in _STATES.items() if name in names}
    producer_ids = frozenset(request.producer_id_filters)
    now_ms = context.broker.now_ms()

    def is_listed(transaction: Transaction) -> bool:
        if producer_ids and transaction.producer_id not in producer_ids:
            return False
        if request.state_filters and transaction.state not in states:
            return False
        if 0 <= request.duration_filter >= now_ms - transaction.start_ms:
            return False
        return pattern is None or pattern.fullmatch(transaction.transactional_id) is not None

    listed = []
    for shard in runtime.shards:
        for number, transaction in enumerate(list(shard.machine.transactions.values())):
            if not number % STEP:
                yield
            if is_listed(transaction) and context.may(_DESCRIBE, transaction.transactional_id):
                listed.append(
                    ListedTransaction(
                        transactional_id=transaction.transactional_id,
                        producer_id=transaction.producer_id,
                        transaction_state=transaction.state.kafka_name,
                    )
                )
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=listed)
