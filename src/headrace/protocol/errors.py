"""What can go wrong on the wire: malformed bytes, and failures the protocol has a number for."""

from typing import ClassVar

from headrace.protocol.schema.error_codes import ErrorCode

__all__ = ["ErrorCode", "KafkaError", "ProtocolError"]


class ProtocolError(Exception):
    """The peer's bytes are not a message: nothing was done with them, and the connection is lost."""


class KafkaError(Exception):
    """A failure that the protocol has a number for; it becomes `code` in the reply."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR

    @property
    def retriable(self) -> bool:
        return self.code.retriable
