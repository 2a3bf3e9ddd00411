"""Errors of any coordinator, whatever it coordinates."""

from headrace.protocol.errors import ErrorCode, KafkaError


class CoordinatorError(KafkaError):
    """A coordinator refuses a request. The request has changed nothing."""


class CoordinatorLoading(CoordinatorError, code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
    """The coordinator is still reading its partition."""


class CoordinatorNotAvailable(CoordinatorError, code=ErrorCode.COORDINATOR_NOT_AVAILABLE):
    """The coordinator's partition cannot be read or written at the moment."""


class NotCoordinator(CoordinatorError, code=ErrorCode.NOT_COORDINATOR):
    """Another broker is the coordinator."""


class RecordsTooLarge(CoordinatorError):
    """The records of one decision do not fit in a batch of the internal topic."""


class InvalidRegularExpression(CoordinatorError, code=ErrorCode.INVALID_REGULAR_EXPRESSION):
    """RE2 cannot compile the expression of a client."""
