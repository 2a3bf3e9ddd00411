"""What can go wrong on the wire: malformed bytes, and failures the protocol has a number for."""

from typing import ClassVar

from headrace.protocol.schema.error_codes import ErrorCode

__all__ = [
    "CorruptMessage",
    "ErrorCode",
    "InvalidRecord",
    "KafkaError",
    "ProtocolError",
    "UnsupportedCompressionType",
]


class ProtocolError(Exception):
    """The peer's bytes are not a message: nothing was done with them, and the connection is lost."""


class KafkaError(Exception):
    """A failure that the protocol has a number for; it becomes `code` in the reply."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR

    @property
    def retriable(self) -> bool:
        return self.code.retriable


class CorruptMessage(KafkaError):
    """The batch is damaged: its checksum, its size or its format does not hold."""

    code = ErrorCode.CORRUPT_MESSAGE


class InvalidRecord(KafkaError):
    """The batch arrived whole, but what it says cannot be."""

    code = ErrorCode.INVALID_RECORD


class UnsupportedCompressionType(KafkaError):
    """The attributes name a compression that does not exist."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE

    def __init__(self, number: int) -> None:
        super().__init__(f"compression type {number} is not one of 0 (none) to 4 (zstd)")
