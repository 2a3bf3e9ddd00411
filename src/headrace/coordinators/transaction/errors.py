"""Errors of the transaction coordinator, with Kafka's codes."""

from headrace.coordinators.errors import CoordinatorError
from headrace.protocol.errors import ErrorCode


class InvalidProducerIdMapping(CoordinatorError, code=ErrorCode.INVALID_PRODUCER_ID_MAPPING):
    """The transactional id is unknown, or has another producer id."""


class ProducerFenced(CoordinatorError, code=ErrorCode.PRODUCER_FENCED):
    """A newer instance of the producer, or the coordinator itself, has increased the producer epoch."""


class ConcurrentTransactions(CoordinatorError, code=ErrorCode.CONCURRENT_TRANSACTIONS):
    """The previous transaction of the producer is not complete yet. The client retries."""


class InvalidTransactionState(CoordinatorError, code=ErrorCode.INVALID_TXN_STATE):
    """The transaction is not in a state in which the request makes sense."""


class InvalidTransactionTimeout(CoordinatorError, code=ErrorCode.INVALID_TRANSACTION_TIMEOUT):
    """The timeout is not positive, or exceeds transaction.max.timeout.ms."""


class TransactionalIdNotFound(CoordinatorError, code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
    """There is no such transactional id."""


class TwoPhaseCommitDisabled(CoordinatorError, code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
    """The producer asks for two-phase commit, and transaction.two.phase.commit.enable is false."""


class KeepPreparedUnsupported(CoordinatorError, code=ErrorCode.UNSUPPORTED_VERSION):
    """The producer asks for its prepared transaction, which Kafka 4.3 refuses in the same way."""


class InvalidTransactionalId(CoordinatorError, code=ErrorCode.INVALID_REQUEST):
    """The transactional id is empty."""


class ProducerIdRequired(CoordinatorError):
    """The decision needs a new producer id: allocate one, and decide again with it."""
