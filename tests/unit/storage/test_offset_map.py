"""The newest offset of each key, in the memory it says it takes."""

import tracemalloc

import pytest

from headrace.storage.offset_map import BYTES_PER_KEY, OffsetMap


def test_the_newest_offset_of_a_key_is_the_one_noted_last() -> None:
    offsets = OffsetMap(10)
    assert offsets.put(b"a", 1)
    assert offsets.put(b"b", 2)
    assert offsets.put(b"a", 3)

    assert [offsets.newest(key) for key in (b"a", b"b", b"c")] == [3, 2, None]
    assert len(offsets) == 2


def test_a_full_map_takes_the_keys_it_knows_and_no_others() -> None:
    offsets = OffsetMap(2)
    assert offsets.put(b"a", 1)
    assert offsets.put(b"b", 2)

    assert not offsets.put(b"c", 3)
    assert offsets.put(b"b", 4)
    assert [offsets.newest(key) for key in (b"a", b"b", b"c")] == [1, 4, None]
    assert len(offsets) == 2


def test_keys_of_every_length_are_told_apart() -> None:
    """Also those as long as a digest, and the empty one."""
    keys = [b"x" * length for length in range(64)] + [b"x" * length + b"y" for length in range(64)]
    offsets = OffsetMap(1000)
    for offset, key in enumerate(keys):
        offsets.put(key, offset)

    assert [offsets.newest(key) for key in keys] == list(range(128))


@pytest.mark.parametrize("count", [30_000, 43_000, 44_000, 90_000])  # before and after the table grows
@pytest.mark.parametrize("key", [b"%d", b"%09d-ten-more", b"a key of quite some length, %d, like a long URL"])
def test_a_key_takes_no_more_memory_than_announced(key: bytes, count: int) -> None:
    tracemalloc.start()
    try:
        offsets = OffsetMap(count)
        for number in range(count + 10):
            offsets.put(key % number, 2**40 + number)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(offsets) == count
    assert peak < count * BYTES_PER_KEY
