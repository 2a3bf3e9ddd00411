import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.errors import InvalidRecord
from headrace.protocol.varint import encode_varint, read_varint

INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-2, "03"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (300, "d804"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_numbers_are_zig_zag_encoded(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert read_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(INT64, st.binary(max_size=3), st.binary(max_size=3))
def test_a_number_is_read_back_from_wherever_it_stands(value: int, before: bytes, after: bytes) -> None:
    encoded = encode_varint(value)

    assert read_varint(before + encoded + after, len(before)) == (value, len(before) + len(encoded))


@given(INT64)
def test_a_number_cut_short_is_refused(value: int) -> None:
    encoded = encode_varint(value)

    for end in range(len(encoded)):
        with pytest.raises(InvalidRecord):
            read_varint(encoded[:end], 0)


def test_a_number_of_eleven_bytes_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="ten bytes"):
        read_varint(b"\x80" * 10 + b"\x00", 0)


@pytest.mark.parametrize("last", [0x02, 0x04, 0x7F])
def test_a_number_that_does_not_fit_64_bits_is_refused(last: int) -> None:
    with pytest.raises(InvalidRecord, match="64 bits"):
        read_varint(b"\xff" * 9 + bytes([last]), 0)
