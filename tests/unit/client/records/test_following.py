"""Positions as text, and back."""

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.errors import ClientError
from headrace.client.records.following import PACKED, read_positions, written, written_short


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), min_size=1, max_size=5))
def test_positions_come_back_as_they_were(positions: dict[int, int]) -> None:
    assert read_positions(written(positions)) == positions


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=50))
def test_positions_of_many_partitions_come_back_as_they_were(offsets: list[int]) -> None:
    positions = dict(enumerate(offsets))
    assert read_positions(written_short(positions)) == positions


def test_positions_of_many_partitions_are_short() -> None:
    positions = {index: 1_000_000 + index * 7919 % 2000 for index in range(1000)}
    assert len(written_short(positions)) < len(written(positions)) / 3
    assert written_short({0: 120, 1: 88}) == "0:120,1:88"
    assert read_positions(written_short({3: 7})) == {3: 7}


def packed(content: bytes) -> str:
    return PACKED + base64.urlsafe_b64encode(zlib.compress(content)).decode()


@pytest.mark.parametrize(
    "text",
    [
        *(PACKED, f"{PACKED}x", f"{PACKED}AAAA", f"{PACKED}\u00fc"),
        *(packed(b""), packed(b"-1"), packed(b"1,x"), packed(b"1,"), packed(b"9223372036854775808")),
        packed(b"9" * 100_000_000),
    ],
    ids=range(10),
)
def test_what_is_packed_wrongly_is_refused(text: str) -> None:
    with pytest.raises(ClientError):
        read_positions(text)


@pytest.mark.parametrize(
    "text", ["", "0", "0:", ":1", "0:1,", "0:1,0:2", "-1:0", "0:-1", "0:1 ", "a:b", "0:9223372036854775808"]
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ClientError):
        read_positions(text)
