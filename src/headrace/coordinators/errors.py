"""Errors of any coordinator, whatever it coordinates."""

from headrace.protocol.errors import ErrorCode, KafkaError


class CoordinatorError(KafkaError):
    """A coordinator refuses a request. The request has changed nothing."""


class CoordinatorLoading(CoordinatorError):
    """The coordinator is still reading its partition."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class CoordinatorNotAvailable(CoordinatorError):
    """The coordinator's partition cannot be read or written at the moment."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class NotCoordinator(CoordinatorError):
    """Another broker is the coordinator."""

    code = ErrorCode.NOT_COORDINATOR


class RecordsTooLarge(CoordinatorError):
    """The records of one decision do not fit in a batch of the internal topic."""


class InvalidRegularExpression(CoordinatorError):
    """RE2 cannot compile the expression of a client."""

    code = ErrorCode.INVALID_REGULAR_EXPRESSION
