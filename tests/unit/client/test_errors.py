"""Sentences of others, as ours go on with them."""

import pytest

from headrace.client.errors import lowered


@pytest.mark.parametrize(
    ("sentence", "behind_a_colon"),
    [
        ("Connection refused", "connection refused"),
        ("ZooKeeper is out of reach", "ZooKeeper is out of reach"),
        ("ISR is too small", "ISR is too small"),
        ("A record is too large", "a record is too large"),
        ("", ""),
    ],
)
def test_a_name_at_the_beginning_keeps_its_letters(sentence: str, behind_a_colon: str) -> None:
    assert lowered(sentence) == behind_a_colon
