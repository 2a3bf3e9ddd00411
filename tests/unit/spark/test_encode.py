"""Which partition a key chooses: the one that Kafka's own clients choose; and where rows without one go."""

from collections import Counter
from itertools import pairwise
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.spark.encode import choose_partitions
from headrace.spark.rows import _column
from unit.spark.arrow_rows import batch_of, choice_of_kafka_python

JAVA: Final = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""Hashes that Kafka's Java client has in its tests."""

KEYS: Final = st.lists(st.none() | st.binary(max_size=40), min_size=1, max_size=20)


def chosen(
    keys: list[bytes | None], count: int, *, turn: int = 0, wanted: list[int] | None = None
) -> list[int]:
    """The partition of each row, of `count`; -1 in `wanted` is no wish."""
    column = _column(batch_of(key=keys).column(0), len(keys))
    partitions = np.array(wanted or [-1] * len(keys), np.int32)
    choose_partitions(column, len(keys), count, turn, partitions)
    return [int(each) for each in partitions]


@pytest.mark.parametrize(("key", "hashed"), JAVA.items())
def test_a_key_has_the_hash_that_kafkas_java_client_computes(key: bytes, hashed: int) -> None:
    count = 2**31 - 1  # all but every bit of the hash

    assert chosen([key], count) == [(hashed & 0x7FFFFFFF) % count]


@settings(deadline=None)
@given(KEYS, st.integers(1, 1000))
def test_keys_choose_the_partition_that_another_client_chooses(keys: list[bytes | None], count: int) -> None:
    for key, partition in zip(keys, chosen(keys, count), strict=True):
        assert 0 <= partition < count
        if key is not None:
            assert partition == choice_of_kafka_python(key, count)


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(1, 40), st.integers(0, 2**16))
def test_rows_without_a_key_are_spread_evenly_and_in_runs(rows: int, count: int, turn: int) -> None:
    partitions = chosen([None] * rows, count, turn=turn)

    sizes = Counter(partitions)
    assert max(sizes.values()) - min(sizes[each] for each in range(count)) <= 1
    changes = sum(one != other for one, other in pairwise(partitions))
    assert changes == len(sizes) - 1


def test_batches_of_one_row_take_turns() -> None:
    assert [chosen([None], 3, turn=turn)[0] for turn in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_an_empty_key_is_a_key() -> None:
    partition = choice_of_kafka_python(b"", 10)

    assert chosen([b""] * 5, 10) == [partition] * 5


def test_a_wish_is_left_as_it_is() -> None:
    assert chosen([b"abc", None, b"21"], 10, wanted=[7, 3, -1]) == [7, 3, (JAVA[b"21"] & 0x7FFFFFFF) % 10]
