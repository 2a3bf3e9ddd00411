"""Jute, ZooKeeper's encoding: big-endian numbers, strings and buffers led by an int32 length.

Nothing here trusts a length: each is compared with what is left before anything is sliced or built.
"""

from collections.abc import Callable, Iterable
from struct import Struct
from typing import Final, TypeVar

from headrace.coordination.embedded.errors import MalformedRequest

MAX_BUFFER: Final = 0xFFFFF
"""The longest frame a client may send: ZooKeeper's default for `jute.maxbuffer`."""

INT: Final = Struct(">i")
LONG: Final = Struct(">q")
NULL: Final = INT.pack(-1)

T = TypeVar("T")


class Reader:
    """Reads one field after another from `buffer`; MalformedRequest when there is no such field."""

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
        """Bytes led by their length; None for a length of -1."""
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
        """A string; an absent one reads as empty, which is how kazoo sends an empty one."""
        found = self.buffer()
        if not found:
            return ""
        try:
            return found.decode()
        except UnicodeDecodeError as error:
            raise MalformedRequest(str(error)) from None

    def vector(self, item: Callable[["Reader"], T]) -> list[T]:
        """As many items as announced; an absent vector reads as empty."""
        count = self.unpack(INT)[0]
        if count > self.left // 4:  # no item takes fewer bytes than a length of its own
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
    """The parts as one message, led by its length."""
    body = b"".join(parts)
    return INT.pack(len(body)) + body
