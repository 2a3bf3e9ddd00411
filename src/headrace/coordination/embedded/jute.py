"""Jute, ZooKeeper's encoding: big-endian numbers, strings and buffers preceded by an int32 length.

No length is trusted: each is compared with the remaining bytes before anything is sliced or allocated.
"""

from collections.abc import Callable, Iterable
from struct import Struct
from typing import Final, TypeVar

from headrace.coordination.embedded.errors import MalformedRequest

MAX_BUFFER: Final = 0xFFFFF
"""The longest frame of a client: ZooKeeper's default of `jute.maxbuffer`."""

INT: Final = Struct(">i")
LONG: Final = Struct(">q")
NULL: Final = INT.pack(-1)

T = TypeVar("T")


class Reader:
    """Reads fields from `buffer` in order; raises MalformedRequest if one is incomplete."""

    __slots__ = ("_buffer", "position")

    def __init__(self, buffer: bytes, position: int = 0) -> None:
        self._buffer = buffer
        self.position = position

    @property
    def left(self) -> int:
        return len(self._buffer) - self.position

    def unpack(self, layout: Struct) -> tuple[int, ...]:
        position = self.position
        if position + layout.size > len(self._buffer):
            raise MalformedRequest(f"{layout.size} bytes wanted, {self.left} left")
        self.position = position + layout.size
        return layout.unpack_from(self._buffer, position)

    def int32(self) -> int:
        return self.unpack(INT)[0]

    def int64(self) -> int:
        return self.unpack(LONG)[0]

    def uint8(self) -> int:
        if self.left < 1:
            raise MalformedRequest("a byte wanted, nothing left")
        self.position += 1
        return self._buffer[self.position - 1]

    def boolean(self) -> bool:
        return self.uint8() != 0

    def buffer(self) -> bytes | None:
        """Read bytes preceded by their length; None for a length of -1."""
        length = self.unpack(INT)[0]
        start = self.position
        if length < 0:
            if length != -1:
                raise MalformedRequest(f"a length of {length}")
            return None
        if length > len(self._buffer) - start:
            raise MalformedRequest(f"{length} bytes announced, {self.left} left")
        self.position = start + length
        return self._buffer[start : start + length]

    def string(self) -> str:
        """Read a string; a null one reads as empty, which is how kazoo sends an empty string."""
        found = self.buffer()
        if not found:
            return ""
        try:
            return found.decode()
        except UnicodeDecodeError as error:
            raise MalformedRequest(str(error)) from None

    def vector(self, item: Callable[["Reader"], T]) -> list[T]:
        """Read a vector; a null one reads as empty."""
        count = self.unpack(INT)[0]
        if count > self.left // 4:  # an item has at least four bytes
            raise MalformedRequest(f"{count} items announced in {self.left} bytes")
        return [item(self) for _ in range(count)]


def buffer(value: bytes | None) -> bytes:
    return NULL if value is None else INT.pack(len(value)) + value


def string(value: str) -> bytes:
    encoded = value.encode()
    return INT.pack(len(encoded)) + encoded


def vector(encoded_items: Iterable[bytes]) -> bytes:
    items = list(encoded_items)
    return INT.pack(len(items)) + b"".join(items)


def frame(*parts: bytes) -> bytes:
    """Return the parts as one message, preceded by its length."""
    body = b"".join(parts)
    return INT.pack(len(body)) + body
