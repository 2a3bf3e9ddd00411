"""What a record says of its schema: which it is, and which of a Protobuf file's messages. Pure.

    00 00000007            schema 7, by its id
    01 0a1b…               one by its fingerprint, of 16 bytes
    00 00000007 04 02 00   Protobuf: two steps (zigzag), to message 1 and to message 0 within it

It stands before the data or, with nothing before the data then, in a header: `__key_schema_id` or
`__value_schema_id`. A path of one step to message 0, which most are, is written as a zero.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

Ref = int | bytes
"""A schema, by its id or by its fingerprint."""

HEADERS: Final[Mapping[str, bytes]] = {"key": b"__key_schema_id", "value": b"__value_schema_id"}
MOST_STEPS: Final = 100  # of a path: messages within messages
_ID_END: Final = 5
_FINGERPRINT_END: Final = 17
_BITS: Final = range(0, 35, 7)  # of a number in a path, which has at most five bytes
_FIRST: Final = (0,)


class NoClaim(ValueError):
    """No schema is named, or not so that it can be understood. The message goes on after "its value"."""


Claim = tuple[Ref, bytes, int]
"""A schema, the bytes that say so, and where more of it may follow in them: a path."""


def claim(what: str, data: bytes, headers: Sequence[tuple[bytes, bytes | None]]) -> Claim:
    """The schema of a record's key or value; NoClaim if it has none. A header counts more than the data."""
    said = _header(what, headers) if headers else None
    named = data if said is None else said
    if len(named) >= _ID_END and named[0] == 0:
        return int.from_bytes(named[1:_ID_END]), named, _ID_END
    if len(named) >= _FINGERPRINT_END and named[0] == 1:
        return named[1:_FINGERPRINT_END], named, _FINGERPRINT_END
    where = "" if said is None else f" in the header {HEADERS[what].decode()}"
    raise NoClaim(f"names no schema{where}: expected 00 and an id of 4 bytes, or 01 and a fingerprint of 16")


def path_at(said: bytes, at: int) -> tuple[int, ...]:
    """The path that begins there; NoClaim if that is none. It looks at 505 bytes at most."""
    if said[at : at + 1] == b"\0":
        return _FIRST
    steps, at = _number(said, at)
    if not 0 < steps <= MOST_STEPS:
        raise NoClaim(f"has a message index of {steps} steps")
    path = []
    for _ in range(steps):
        step, at = _number(said, at)
        path.append(step)
    return tuple(path)


def shown(ref: Ref) -> str:
    """A schema as people call it."""
    return str(ref) if isinstance(ref, int) else str(UUID(bytes=ref))


def _header(what: str, headers: Sequence[tuple[bytes, bytes | None]]) -> bytes | None:
    """Readers in Python take the first header of a name, those in Java the last: they have to agree."""
    found = [value for name, value in headers if name == HEADERS[what] and value is not None]
    if any(each != found[0] for each in found):
        raise NoClaim(f"has several headers {HEADERS[what].decode()}, which differ")
    return found[0] if found else None


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number, and where it ends."""
    found = 0
    for shift in _BITS:
        if at >= len(data):
            raise NoClaim("ends within its message index")
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return found >> 1 ^ -(found & 1), at
    raise NoClaim("has a number of more than five bytes in its message index")
