"""Errors on the wire: malformed bytes, and failures with a Kafka error code."""

from collections.abc import Sequence
from typing import ClassVar

from headrace.protocol.schema.error_codes import ErrorCode

__all__ = [
    "CorruptMessage",
    "ErrorCode",
    "InvalidRecord",
    "InvalidRecords",
    "KafkaError",
    "ProtocolError",
    "UnsupportedCompressionType",
]


class ProtocolError(Exception):
    """The peer's bytes are not a valid message: they had no effect, and the connection is closed."""


class KafkaError(Exception):
    """A failure with a Kafka error code, which is sent in the response."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR
    record_errors: Sequence[tuple[int, str]] = ()  # the batch index of each invalid record, and the reason

    @property
    def retriable(self) -> bool:
        return self.code.retriable


class CorruptMessage(KafkaError):
    """The batch is damaged: its checksum, size or format is wrong."""

    code = ErrorCode.CORRUPT_MESSAGE


class InvalidRecord(KafkaError):
    """The batch is complete, but its content is invalid."""

    code = ErrorCode.INVALID_RECORD

    def __init__(self, why: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(why)
        self.record_errors = record_errors


class InvalidRecords(InvalidRecord):
    """Some records of a batch are invalid, at least `record_errors`; the whole batch is refused."""

    def __init__(self, record_errors: Sequence[tuple[int, str]], *, count: int | None = None) -> None:
        count = len(record_errors) if count is None else count
        index, why = record_errors[0]
        others = f" (and {count - 1} more invalid records)" if count > 1 else ""
        super().__init__(f"record {index} of the batch: {why}{others}", record_errors)


class UnsupportedCompressionType(KafkaError):
    """The attributes of the batch name an unknown compression type."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE

    def __init__(self, number: int) -> None:
        super().__init__(f"compression type {number} is not one of 0 (none) to 4 (zstd)")
