"""Errors of the transaction coordinator, with Kafka's codes."""

from headrace.coordinators.errors import CoordinatorError
from headrace.protocol.errors import ErrorCode


class InvalidProducerIdMapping(CoordinatorError):
    """The transactional id is unknown, or has another producer id."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class ProducerFenced(CoordinatorError):
    """A newer instance of the producer, or the coordinator itself, has increased the producer epoch."""

    code = ErrorCode.PRODUCER_FENCED


class ConcurrentTransactions(CoordinatorError):
    """The previous transaction of the producer is not complete yet. The client retries."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class InvalidTransactionState(CoordinatorError):
    """The transaction is not in a state in which the request makes sense."""

    code = ErrorCode.INVALID_TXN_STATE


class InvalidTransactionTimeout(CoordinatorError):
    """The timeout is not positive, or exceeds transaction.max.timeout.ms."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class TransactionalIdNotFound(CoordinatorError):
    """There is no such transactional id."""

    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class TwoPhaseCommitDisabled(CoordinatorError):
    """The producer asks for two-phase commit, and transaction.two.phase.commit.enable is false."""

    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class KeepPreparedUnsupported(CoordinatorError):
    """The producer asks for its prepared transaction, which Kafka 4.3 refuses in the same way."""

    code = ErrorCode.UNSUPPORTED_VERSION


class InvalidTransactionalId(CoordinatorError):
    """The transactional id is empty."""

    code = ErrorCode.INVALID_REQUEST


class ProducerIdRequired(CoordinatorError):
    """The decision needs a new producer id: allocate one, and decide again with it."""
