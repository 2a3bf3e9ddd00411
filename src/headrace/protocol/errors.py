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
    """A failure with a Kafka error code, which is sent in the response: `class X(KafkaError, code=...)`."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR
    record_errors: Sequence[tuple[int, str]] = ()  # the batch index of each invalid record, and the reason

    def __init_subclass__(cls, code: ErrorCode | None = None) -> None:
        super().__init_subclass__()
        if code is not None:
            cls.code = code

    @property
    def retriable(self) -> bool:
        return self.code.retriable


class CorruptMessage(KafkaError, code=ErrorCode.CORRUPT_MESSAGE):
    """The batch is damaged: its checksum, size or format is wrong."""


class InvalidRecord(KafkaError, code=ErrorCode.INVALID_RECORD):
    """The batch is complete, but its content is invalid."""

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


class UnsupportedCompressionType(KafkaError, code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
    """The attributes of the batch name an unknown compression type."""

    def __init__(self, number: int) -> None:
        super().__init__(f"compression type {number} is not one of 0 (none) to 4 (zstd)")
