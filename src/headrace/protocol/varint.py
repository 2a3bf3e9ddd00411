"""Zig-zag varints, as in records (the rest of the protocol has unsigned ones)."""

from headrace.protocol.compression import Buffer
from headrace.protocol.errors import InvalidRecord


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Return the number at `position` and the position after it; it has at most ten bytes and 64 bits."""
    try:
        first = data[position]
        if first < 0x80:  # one byte: the usual lengths and deltas
            return (first >> 1) ^ -(first & 1), position + 1
        value = first & 0x7F
        for at in range(position + 1, position + 10):
            byte = data[at]
            value |= (byte & 0x7F) << (7 * (at - position))
            if byte < 0x80:
                if value >> 64:
                    raise InvalidRecord(f"a varint of more than 64 bits at byte {position}")
                return (value >> 1) ^ -(value & 1), at + 1
    except IndexError:
        raise InvalidRecord(f"a varint at byte {position} runs past the end") from None
    raise InvalidRecord(f"a varint of more than ten bytes at byte {position}")


def encode_varint(value: int) -> bytes:
    """Return `value` in zig-zag encoding: 0, -1, 1, -2 become 0, 1, 2, 3; small numbers take one byte."""
    rest = (value << 1) ^ (value >> 63)
    if rest < 0x80:
        return _ONE_BYTE[rest]
    encoded = bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


_ONE_BYTE = [bytes([number]) for number in range(0x80)]
