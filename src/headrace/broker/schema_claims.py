"""What a record's bytes say of its schema: which it is, and which of a Protobuf file's messages. Pure.

    00 00000007 …          schema 7, then the data
    00 00000007 04 02 00 … the same of Protobuf: two steps (zigzag), to message 1 and to message 0 within it

A path of one step to message 0, which most are, is written as a zero.
"""

from typing import Final

PREFIX: Final = 5  # bytes of a zero and an id
MOST_STEPS: Final = 100  # of a path: messages within messages
_BITS: Final = range(0, 35, 7)  # of a number in a path, which has at most five bytes
_FIRST: Final = (0,)


class NoPath(ValueError):
    """No path to a message is where one has to be. The message goes on where "its value" began."""


def schema_id(data: bytes) -> int | None:
    """The id at the beginning of the data, if there is one."""
    if len(data) < PREFIX or data[0] != 0:
        return None
    return int.from_bytes(data[1:PREFIX])


def path_at(data: bytes, at: int) -> tuple[int, ...]:
    """The path that begins there; NoPath if that is none. It looks at 505 bytes at most."""
    if data[at : at + 1] == b"\0":
        return _FIRST
    steps, at = _number(data, at)
    if not 0 < steps <= MOST_STEPS:
        raise NoPath(f"has a message index of {steps} steps")
    path = []
    for _ in range(steps):
        step, at = _number(data, at)
        path.append(step)
    return tuple(path)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number, and where it ends."""
    found = 0
    for shift in _BITS:
        if at >= len(data):
            raise NoPath("ends within its message index")
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return found >> 1 ^ -(found & 1), at
    raise NoPath("has a number of more than five bytes in its message index")
