"""Small ranges are combined to tasks: every range in one task, and no task too large."""

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from headrace.client.wire.connection import Address
from headrace.protocol.ids import TopicPartition
from headrace.tables.reader.offsets import Range, split
from headrace.tables.reader.tasks import FEWEST_RECORDS, MOST_RECORDS, combine, records_per_task

ONE, TWO = Address("one", 9092), Address("two", 9092)
RANGES: Final = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(1, 40)))


def ranges_of(*sizes: int) -> list[Range]:
    return [Range(TopicPartition("orders", index), 10, 10 + size) for index, size in enumerate(sizes)]


def all_on(leader: Address, ranges: list[Range]) -> dict[TopicPartition, Address]:
    return {each.partition: leader for each in ranges}


def sizes_of(groups: list[list[Range]]) -> list[list[int]]:
    return [[each.size for each in group] for group in groups]


def test_small_ranges_of_one_leader_are_one_task() -> None:
    ranges = ranges_of(3, 4, 3, 1)

    assert sizes_of(combine(ranges, all_on(ONE, ranges), at_most_records=10)) == [[3, 4, 3], [1]]


def test_a_range_that_is_larger_than_a_task_should_be_is_alone() -> None:
    ranges = ranges_of(3, 40, 7)

    assert sizes_of(combine(ranges, all_on(ONE, ranges), at_most_records=10)) == [[3], [40], [7]]


def test_ranges_of_different_leaders_or_of_none_are_not_combined() -> None:
    ranges = ranges_of(1, 2, 3, 4, 5)
    first, second, third, fourth, _ = (each.partition for each in ranges)
    leaders = {first: ONE, second: TWO, third: ONE, fourth: TWO}

    assert sizes_of(combine(ranges, leaders, at_most_records=10)) == [[1, 3], [2, 4], [5]]


def test_the_pieces_of_a_partition_are_not_combined() -> None:
    ranges = split(ranges_of(12, 2, 2), at_most_records=6)

    assert sizes_of(combine(ranges, all_on(ONE, ranges), at_most_records=6)) == [[6], [6], [2, 2]]


def test_there_are_as_many_tasks_as_the_user_wants() -> None:
    ranges = ranges_of(*[2] * 8)
    leaders = all_on(ONE, ranges)

    assert len(combine(ranges, leaders)) == 1
    assert 3 <= len(combine(ranges, leaders, at_least=3)) < 8
    assert len(combine(ranges, leaders, at_least=8)) == 8
    assert len(combine(ranges, leaders, at_least=100)) == 8


def test_every_core_has_a_task_if_there_is_enough_to_read() -> None:
    assert records_per_task(10, cores=4) == FEWEST_RECORDS
    assert records_per_task(10_000_000, cores=4) == MOST_RECORDS
    ranges = ranges_of(*[4500, 4000, 3500, 3000] * 3)
    limit = records_per_task(sum(each.size for each in ranges), cores=4)
    assert len(combine(ranges, all_on(ONE, ranges), at_most_records=limit)) == 4


@given(RANGES, st.integers(1, 60), st.integers(0, 40))
def test_every_range_is_in_one_task(given_: list[tuple[str, int, int]], most: int, at_least: int) -> None:
    sizes = {TopicPartition(topic, index): size for topic, index, size in given_}
    ranges = split([Range(each, 5, 5 + size) for each, size in sizes.items()], at_most_records=most)
    leaders = {each: (ONE, TWO)[each.partition % 2] for each in sizes if each.partition % 5}
    groups = combine(ranges, leaders, at_least=at_least, at_most_records=most)

    assert sorted(each for group in groups for each in group) == sorted(ranges)
    assert len(groups) >= min(at_least, len(ranges))
    for group in groups:
        assert sum(each.size for each in group) <= most
        assert len({each.partition for each in group}) == len(group)
        assert len({leaders.get(each.partition) for each in group}) == 1
