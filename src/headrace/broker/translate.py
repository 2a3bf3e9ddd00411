"""What a failure is called on the wire: translated here, once, for every handler."""

from typing import Final

from headrace.coordination.errors import CoordinationError
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.storage.errors import StorageError

Failure = KafkaError | CoordinationError | StorageError
FAILURES = (KafkaError, CoordinationError, StorageError)
"""What a handler answers with a code. Anything else is a bug of ours and closes the connection."""


ERROR_MESSAGE_CHARS: Final = 300
"""A message names what it is about, and a name may have 32 KB: one for each partition would be gigabytes."""


def error_message(failure: Exception) -> str:
    """What a client is told of `failure`, in so many characters at most."""
    text = str(failure)
    return text if len(text) <= ERROR_MESSAGE_CHARS else f"{text[: ERROR_MESSAGE_CHARS - 3]}..."


def error_code(failure: Failure) -> ErrorCode:
    """The number for `failure`; clients retry those that may pass."""
    if isinstance(failure, KafkaError):
        return failure.code
    if isinstance(failure, StorageError):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.REQUEST_TIMED_OUT  # ZooKeeper is out of reach: nothing was promised, so ask again
