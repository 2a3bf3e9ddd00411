"""A reader for DER, the encoding of certificates and keys."""

from collections.abc import Iterator
from typing import Final, NamedTuple

INTEGER: Final = 0x02
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
SEQUENCE: Final = 0x30
SET: Final = 0x31
_MOST_LENGTH_BYTES: Final = 4


class Malformed(ValueError):
    """The bytes are not DER, or not the structure that was expected."""


class Element(NamedTuple):
    """One element: its tag, its content, and all of its bytes including tag and length."""

    tag: int
    content: memoryview
    encoded: memoryview

    def children(self) -> Iterator["Element"]:
        rest = self.content
        while rest:
            child = read(rest)
            yield child
            rest = rest[len(child.encoded) :]


def read(data: memoryview) -> Element:
    """Return the element at the start of `data`; Malformed if there is none or if it is cut off."""
    if len(data) < 2:
        raise Malformed(f"{len(data)} bytes are too few for an element")
    tag, size, start = data[0], data[1], 2
    if tag & 0x1F == 0x1F:
        raise Malformed(f"tag {tag:#x} has more than one byte, which no certificate or key uses")
    if size >= 0x80:  # the length follows, in as many bytes
        count = size & 0x7F
        if not 1 <= count <= _MOST_LENGTH_BYTES or len(data) < 2 + count:
            raise Malformed(f"a length of {count} bytes is unsupported, or cut off")
        size, start = int.from_bytes(data[2 : 2 + count], "big"), 2 + count
    if size > len(data) - start:
        raise Malformed(f"an element of {size:,} bytes is cut off after {len(data) - start:,}")
    return Element(tag, data[start : start + size], data[: start + size])


def read_sequence(data: memoryview) -> list[Element]:
    """Return the elements of the SEQUENCE at the start of `data`."""
    found = read(data)
    if found.tag != SEQUENCE:
        raise Malformed(f"expected a SEQUENCE, found tag {found.tag:#x}")
    return list(found.children())


def decode_object_identifier(content: memoryview) -> str:
    """Return an OBJECT IDENTIFIER in dotted notation, such as 2.5.4.3."""
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    if not numbers or content[-1] >= 0x80:
        raise Malformed("an object identifier is empty or cut off")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
