"""Primitives of compiled and hand-written codecs: varints, unknown tagged fields, errors.

No length is trusted: each is compared with the remaining bytes before it is used. Reading past the
end of a buffer by index or by `struct` raises an error, slicing does not, so slices are checked.
"""

from struct import Struct
from typing import Any, Final, NoReturn

from headrace.protocol.fields import Buffer

MAX_STRING: Final = 32767
"""Kafka's limit on the length of a string, compact or not."""

MAX_ELEMENTS: Final = 1 << 19
"""The most elements of arrays and tagged fields in one message.

Two bytes are enough for an element, and each becomes an object: a frame of 100 MB could have
fifty million of them: 23 s of work and 2.7 GB. This limit takes 0.2 s and 30 MB.
"""

MAX_REQUEST_ELEMENTS: Final = 1 << 17
"""The same for a client's request. A consumer of 10,000 topics with a partition each needs 20,000."""

MAX_UNKNOWN_TAGS: Final = 1 << 12
"""The most unknown tagged fields of one struct. Kafka's own messages have fewer than ten."""

STEP: Final = 64
"""Elements between two steps of a sliced codec; a power of two."""

ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))


class MalformedError(ValueError):
    """The bytes do not match the schema. The codec turns this into a ProtocolError."""


class Unusual(Exception):
    """Raised by a hand-written codec for a message outside its fast path."""


def uvarint_tail(buf: Buffer, i: int, first: int) -> tuple[int, int]:
    """Decode the rest of an unsigned varint whose first byte was 128 or more: (value, position after it)."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buf[i]
        i += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise MalformedError(f"a varint of {value} does not fit in 32 bits")
            return value, i
    raise MalformedError("a varint is longer than 5 bytes")


def string_tail(buf: Buffer, i: int, first: int) -> tuple[int, int]:
    """Like `uvarint_tail`, for the length of a string plus one."""
    value, i = uvarint_tail(buf, i, first)
    if value > MAX_STRING + 1:
        raise MalformedError(f"a string of {value - 1} bytes; {MAX_STRING} is the most")
    return value, i


def read_uvarint(buf: Buffer, i: int) -> tuple[int, int]:
    """Decode an unsigned varint at `i`: (value, position after it)."""
    first = buf[i]
    return (first, i + 1) if first < 0x80 else uvarint_tail(buf, i + 1, first)


def uvarint(value: int) -> bytes:
    if value < 0x80:
        return ONE_BYTE[value]
    if value < 1 << 14:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 1 << 21:  # a fast path for record data up to 2 MiB
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    return bytes((value & 0x7F | 0x80,)) + uvarint(value >> 7)


def string_uvarint(value: int) -> bytes:
    """Like `uvarint`, for the length of a string plus one."""
    if value > MAX_STRING + 1:
        raise ValueError(f"a string of {value - 1} bytes; {MAX_STRING} is the most")
    return uvarint(value)


def topic_head(name: str, topic_id: bytes, count: int, *, by_id: bool) -> bytes:
    """Return the id or the name of a topic in a response, followed by the number of its partitions."""
    if by_id:
        if len(topic_id) != 16:
            raise Unusual
        return topic_id + uvarint(count + 1)
    encoded = name.encode()
    return string_uvarint(len(encoded) + 1) + encoded + uvarint(count + 1)


def skip_tags(buf: Buffer, i: int, size: int, count: int, room: int = MAX_ELEMENTS) -> tuple[int, int]:
    """Skip unknown tagged fields (KIP-482); return the position after them and the remaining elements.

    `count` is the byte before `i`, which may be only the first byte of the real count.
    """
    if count >= 0x80:
        count, i = uvarint_tail(buf, i, count)
    room -= count
    if room < 0 or count > MAX_UNKNOWN_TAGS:
        too_many("tagged fields")
    for _ in range(count):
        tag, i = read_uvarint(buf, i)
        length, i = read_uvarint(buf, i)
        i += length
        if i > size:
            raise MalformedError(f"tagged field {tag} has {length} bytes, {size - i + length} are left")
    return i, room


def bad_length(name: str, length: int, left: int) -> NoReturn:
    if length == -1:
        raise MalformedError(f"{name} is null and may not be")
    raise MalformedError(f"{name} has {length} bytes, {left} are left")


def bad_count(name: str, count: int, left: int) -> NoReturn:
    if count == -1:
        raise MalformedError(f"{name} is null and may not be")
    raise MalformedError(f"{name} has {count} elements, {left} bytes are left")


def too_many(name: str) -> NoReturn:
    raise MalformedError(f"{name}: the message has too many elements")


def bad_tag_size(name: str) -> NoReturn:
    raise MalformedError(f"the tagged field {name} does not end where its size says")


def trailing(left: int) -> NoReturn:
    raise MalformedError(f"{left} bytes follow the end of the message")


# Arrays of numbers are short, such as the replicas of a partition: codecs of short ones are prepared.
# For longer ones the struct module has a cache of a hundred formats.
SHORT: Final = 16


def short_unpackers(code: str) -> tuple[Any, ...]:
    """Return `unpack_from` for arrays of 0 to SHORT - 1 numbers of one struct format code."""
    return tuple(Struct(f">{count}{code}").unpack_from for count in range(SHORT))


def short_packers(code: str) -> tuple[Any, ...]:
    """Return `pack` for arrays of 0 to SHORT - 1 numbers of one struct format code."""
    return tuple(Struct(f">{count}{code}").pack for count in range(SHORT))
