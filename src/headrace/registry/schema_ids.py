"""The schema id that precedes a record's data: which schema, and which message of a Protobuf file. Pure.

    00 00000007            schema 7, by its id
    01 0a1b…               a schema by its fingerprint, of 16 bytes
    00 00000007 04 02 00   Protobuf: a path of two steps (zigzag), to message 1 and to message 0 within it

The bytes precede the data, or are in a header: `__key_schema_id` or `__value_schema_id`. A path of one step
to message 0, the most frequent one, is written as a single zero.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

SchemaRef = int | bytes
"""The id or the fingerprint of a schema."""

HEADERS: Final[Mapping[str, bytes]] = {"key": b"__key_schema_id", "value": b"__value_schema_id"}
MAX_STEPS: Final = 100  # of a path: messages within messages
ID_END: Final = 5
FINGERPRINT_END: Final = 17
_BITS: Final = range(0, 35, 7)  # a number in a path has at most five bytes


class NoSchemaId(ValueError):
    """There is no valid schema id. The message continues a sentence that begins with "its value"."""


def read_schema_id(
    part: str, data: bytes, headers: Sequence[tuple[bytes, bytes | None]] = ()
) -> tuple[SchemaRef, bytes, int]:
    """Return the schema of a record's "key" or "value", the bytes that name it, and where its id ends there.

    A header takes precedence over the data. NoSchemaId is raised if neither has an id.
    """
    named = [value for name, value in headers if name == HEADERS[part] and value is not None]
    # Of several headers, clients in Python read the first and those in Java the last.
    if any(value != named[0] for value in named):
        raise NoSchemaId(f"has several headers {HEADERS[part].decode()}, which differ")
    header = named[0] if named else None
    source = data if header is None else header
    if len(source) >= ID_END and source[0] == 0:
        return int.from_bytes(source[1:ID_END]), source, ID_END
    if len(source) >= FINGERPRINT_END and source[0] == 1:
        return source[1:FINGERPRINT_END], source, FINGERPRINT_END
    where = "" if header is None else f" in the header {HEADERS[part].decode()}"
    if not source:
        found = "it is empty"
    elif source[0] > 1:
        found = f"it begins with 0x{source[:1].hex()}"
    else:
        found = f"it ends after {len(source)} of {FINGERPRINT_END if source[0] else ID_END} bytes"
    expected = "expected 00 and an id of 4 bytes, or 01 and a fingerprint of 16"
    raise NoSchemaId(f"has no schema id{where}: {found}, {expected}")


def read_message_path(data: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """Return the path to a Protobuf message, and where it ends; NoSchemaId if there is none at `start`.

    At most 505 bytes are read.
    """
    steps, position = _read_zigzag(data, start)
    if steps == 0:
        return (0,), position
    if not 0 < steps <= MAX_STEPS:
        raise NoSchemaId(f"has a message index of {steps} steps")
    path = []
    for _ in range(steps):
        step, position = _read_zigzag(data, position)
        path.append(step)
    return tuple(path), position


def write_message_path(path: Sequence[int]) -> bytes:
    """Return the bytes of the path to a Protobuf message."""
    if tuple(path) == (0,):
        return b"\0"
    return b"".join(_write_zigzag(each) for each in (len(path), *path))


def format_ref(ref: SchemaRef) -> str:
    """Return an id in decimal, and a fingerprint as a UUID."""
    return str(ref) if isinstance(ref, int) else str(UUID(bytes=ref))


def _read_zigzag(data: bytes, position: int) -> tuple[int, int]:
    found = 0
    for shift in _BITS:
        if position >= len(data):
            raise NoSchemaId("ends within its message index")
        byte = data[position]
        position += 1
        found |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return found >> 1 ^ -(found & 1), position
    raise NoSchemaId("has a number of more than five bytes in its message index")


def _write_zigzag(number: int) -> bytes:
    left, found = number << 1 ^ number >> 63, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])
