"""How ranges are split for tasks."""

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.protocol.ids import TopicPartition
from headrace.tables.reader.offsets import Range, split

SIZES = st.lists(st.integers(0, 3000), max_size=8)


def ranges_of(sizes: list[int]) -> list[Range]:
    return [Range(TopicPartition("t", n), 100 * n, 100 * n + size) for n, size in enumerate(sizes)]


@settings(deadline=None)
@given(SIZES, st.integers(0, 60), st.integers(0, 500))
def test_nothing_is_lost_and_nothing_read_twice(sizes: list[int], at_least: int, at_most: int) -> None:
    whole = ranges_of(sizes)
    pieces = split(whole, at_least=at_least, at_most_records=at_most)

    wanted = [(each.partition, offset) for each in whole for offset in range(each.first, each.last)]
    assert [(each.partition, offset) for each in pieces for offset in range(each.first, each.last)] == wanted
    assert all(each.size > 0 for each in pieces)


@settings(deadline=None)
@given(SIZES, st.integers(0, 60), st.integers(0, 500))
def test_there_are_as_many_pieces_as_asked_for_and_none_is_too_large(
    sizes: list[int], at_least: int, at_most: int
) -> None:
    pieces = split(ranges_of(sizes), at_least=at_least, at_most_records=at_most)

    assert len(pieces) >= min(at_least, sum(sizes))
    if at_most:
        assert max((each.size for each in pieces), default=0) <= at_most
    else:
        assert len(pieces) == max(min(at_least, sum(sizes)), sum(size > 0 for size in sizes))


@settings(deadline=None)
@given(SIZES, st.integers(0, 60))
def test_pieces_of_a_partition_are_even_and_no_other_cut_would_make_the_largest_smaller(
    sizes: list[int], at_least: int
) -> None:
    pieces: dict[TopicPartition, list[int]] = {}
    for each in split(ranges_of(sizes), at_least=at_least):
        pieces.setdefault(each.partition, []).append(each.size)

    for found in pieces.values():
        assert max(found) - min(found) <= 1
    # Were one that is cut given a piece less, it would have the largest of all.
    largest = max((max(found) for found in pieces.values()), default=0)
    for found in pieces.values():
        if len(found) > 1:
            assert -(-sum(found) // (len(found) - 1)) >= largest


def test_small_partitions_stay_whole_beside_a_large_one() -> None:
    pieces = split(ranges_of([1000, 10, 0, 30]), at_least=7)

    assert [each.size for each in pieces] == [200, 200, 200, 200, 200, 10, 30]
