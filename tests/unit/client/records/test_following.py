"""Positions as text, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.errors import ClientError
from headrace.client.records.following import read_positions, written


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), min_size=1, max_size=5))
def test_positions_come_back_as_they_were(positions: dict[int, int]) -> None:
    assert read_positions(written(positions)) == positions


@pytest.mark.parametrize(
    "text", ["", "0", "0:", ":1", "0:1,", "0:1,0:2", "-1:0", "0:-1", "0:1 ", "a:b", "0:9223372036854775808"]
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ClientError):
        read_positions(text)
