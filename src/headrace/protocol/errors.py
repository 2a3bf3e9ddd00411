"""What can go wrong on the wire: malformed bytes, and failures the protocol has a number for."""

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
    """The peer's bytes are not a message: nothing was done with them, and the connection is lost."""


class KafkaError(Exception):
    """A failure that the protocol has a number for; it becomes `code` in the reply."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR
    record_errors: Sequence[tuple[int, str]] = ()  # batch index of each invalid record, and why it is invalid

    @property
    def retriable(self) -> bool:
        return self.code.retriable


class CorruptMessage(KafkaError):
    """The batch is damaged: its checksum, its size or its format does not hold."""

    code = ErrorCode.CORRUPT_MESSAGE


class InvalidRecord(KafkaError):
    """The batch arrived whole, but what it says cannot be."""

    code = ErrorCode.INVALID_RECORD

    def __init__(self, why: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(why)
        self.record_errors = record_errors


class InvalidRecords(InvalidRecord):
    """Some records of a batch are invalid, `record_errors` of them at least; the whole batch is refused."""

    def __init__(self, record_errors: Sequence[tuple[int, str]], *, count: int | None = None) -> None:
        count = len(record_errors) if count is None else count
        index, why = record_errors[0]
        others = f" (and {count - 1} more invalid records)" if count > 1 else ""
        super().__init__(f"record {index} of the batch: {why}{others}", record_errors)


class UnsupportedCompressionType(KafkaError):
    """The attributes name a compression that does not exist."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE

    def __init__(self, number: int) -> None:
        super().__init__(f"compression type {number} is not one of 0 (none) to 4 (zstd)")
