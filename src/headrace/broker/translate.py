"""Translation of exceptions to error codes and messages of the protocol."""

from typing import Any, Final

from headrace.coordination.errors import CoordinationError
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.storage.errors import StorageError

Failure = KafkaError | CoordinationError | StorageError
FAILURES = (KafkaError, CoordinationError, StorageError)
"""The exceptions that a handler answers with an error code. Any other is a bug and closes the connection."""

ERROR_MESSAGE_CHARS: Final = 300
"""The limit bounds a response with a message per partition: a name in a message may have 32 KB."""


def error_message(failure: Exception) -> str:
    """Return the message of `failure`, cut to ERROR_MESSAGE_CHARS."""
    text = str(failure)
    return text if len(text) <= ERROR_MESSAGE_CHARS else f"{text[: ERROR_MESSAGE_CHARS - 3]}..."


def error_fields(failure: Failure) -> dict[str, Any]:
    """Return the error code and the message of `failure`, as fields of a response."""
    return {"error_code": error_code(failure), "error_message": error_message(failure)}


def error_code(failure: Failure) -> ErrorCode:
    """Return the error code of `failure`."""
    if isinstance(failure, KafkaError):
        return failure.code
    if isinstance(failure, StorageError):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.REQUEST_TIMED_OUT  # ZooKeeper is unavailable: the request can be retried
