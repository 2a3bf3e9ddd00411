from pathlib import Path

import pytest

from headrace.storage.errors import CorruptIndex
from headrace.storage.index import MaxTimestamp, OffsetIndex, Position, TimeIndex

BASE = 1000
MANY = 1300  # entries: two whole pages in the file, the rest in memory


def offset_index(directory: Path, entries: int = 0, *, max_bytes: int = 10**6) -> OffsetIndex:
    """Entry n says that the batch ending with BASE + 10n + 9 starts at byte 100n."""
    index = OffsetIndex(directory, "x.index", BASE, max_bytes)
    index.reset()
    for number in range(entries):
        index.append(BASE + 10 * number + 9, 100 * number)
    return index


def time_index(directory: Path, entries: int = 0) -> TimeIndex:
    """Entry n says that nothing up to BASE + 10n is younger than 5n + 1."""
    index = TimeIndex(directory, "x.timeindex", BASE, 10**6)
    index.reset()
    for number in range(entries):
        index.maybe_append(5 * number + 1, BASE + 10 * number)
    return index


def reopened(index: OffsetIndex) -> OffsetIndex:
    index.write_out()
    return OffsetIndex(index.path.parent, index.path.name, BASE, 10**6)


def test_entries_have_kafkas_layout(tmp_path: Path) -> None:
    offsets, times = offset_index(tmp_path), time_index(tmp_path)
    offsets.append(BASE + 7, 4242)
    times.maybe_append(2**41, BASE + 7)
    offsets.write_out()
    times.write_out()

    assert offsets.path.read_bytes() == bytes.fromhex("00000007 00001092")
    assert times.path.read_bytes() == bytes.fromhex("0000020000000000 00000007")


@pytest.mark.parametrize("entries", [1, 511, 512, 513, 1024, MANY])
@pytest.mark.parametrize("again", [False, True])
def test_an_offset_is_found_among_any_number_of_entries(tmp_path: Path, entries: int, again: bool) -> None:
    index = offset_index(tmp_path, entries)
    if again:
        index = reopened(index)

    assert len(index) == entries
    for number in {0, 1, entries // 2, 510, 511, 512, 513, entries - 1} & set(range(entries)):
        here = Position(BASE + 10 * number + 9, 100 * number)
        before = Position(BASE + 10 * number - 1, 100 * (number - 1)) if number else Position(BASE, 0)
        assert index.at_or_before(here.offset) == here
        assert index.at_or_before(here.offset - 1) == before
        assert index.before_position(here.position) == here
        assert index.before_position(here.position + 99) == here
    assert index.last() == index.at_or_before(2**40) == index.before_position(2**30)


def test_an_empty_index_leads_to_the_segments_start(tmp_path: Path) -> None:
    index = offset_index(tmp_path)

    assert index.last() is None
    assert index.at_or_before(BASE + 50) == index.before_position(50) == Position(BASE, 0)


@pytest.mark.parametrize("kept", [0, 1, 300, 512, 513, 1024, 1025, MANY - 1, MANY])
def test_truncation_keeps_the_entries_before_an_offset(tmp_path: Path, kept: int) -> None:
    index = offset_index(tmp_path, MANY)

    index.truncate_to(BASE + 10 * kept + 9)  # the offset of the first that goes

    assert len(index) == kept
    assert list(index) == [(10 * number + 9, 100 * number) for number in range(kept)]
    index.append(BASE + 10 * kept + 9, 100 * kept)
    assert len(reopened(index)) == kept + 1
    assert index.path.stat().st_size == 8 * (kept + 1)


def test_looking_up_again_after_truncation_does_not_see_a_page_that_went(tmp_path: Path) -> None:
    index = reopened(offset_index(tmp_path, MANY))
    assert index.at_or_before(BASE + 10 * 600 + 9).position == 60_000

    index.truncate_to(BASE + 10 * 520)

    assert index.at_or_before(2**40) == Position(BASE + 5199, 51_900)


def test_an_index_is_full_at_its_limit(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 9, max_bytes=80)
    assert not index.is_full
    index.append(BASE + 999, 999)
    assert index.is_full


def test_the_time_index_keeps_a_place_for_its_last_entry(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path, "x.timeindex", BASE, 36)
    index.reset()
    index.maybe_append(1, BASE)
    assert not index.is_full
    index.maybe_append(2, BASE + 1)
    assert index.is_full


def test_offsets_further_than_four_bytes_from_the_base_do_not_fit(tmp_path: Path) -> None:
    index = offset_index(tmp_path)

    assert index.can_hold(BASE)
    assert index.can_hold(BASE + 2**31 - 1)
    assert not index.can_hold(BASE + 2**31)
    assert not index.can_hold(BASE - 1)


@pytest.mark.parametrize("entries", [0, 1, 512, MANY])
def test_a_time_is_found_among_any_number_of_entries(tmp_path: Path, entries: int) -> None:
    index = time_index(tmp_path, entries)

    assert index.at_or_before(0) is None
    for number in {0, 1, entries // 2, 511, 512, entries - 1} & set(range(entries)):
        expected = MaxTimestamp(5 * number + 1, BASE + 10 * number)
        assert index.at_or_before(5 * number + 1) == index.at_or_before(5 * number + 5) == expected
    assert index.last() == index.at_or_before(2**60)


def test_times_that_are_no_new_maximum_are_left_out(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    for timestamp, offset in [(-1, 0), (5, 1), (5, 2), (4, 3), (6, 4)]:
        index.maybe_append(timestamp, BASE + offset)

    assert list(index) == [(5, 1), (6, 4)]


@pytest.mark.parametrize("kept", [0, 1, 512, 600, MANY])
def test_truncation_drops_the_times_of_records_that_go(tmp_path: Path, kept: int) -> None:
    index = time_index(tmp_path, MANY)

    index.truncate_to(BASE + 10 * kept)

    assert len(index) == kept
    assert index.last() == (MaxTimestamp(5 * kept - 4, BASE + 10 * kept - 10) if kept else None)


def test_a_file_that_is_not_a_whole_number_of_entries_is_corrupt(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 3)
    index.write_out()
    index.path.write_bytes(index.path.read_bytes()[:-1])

    with pytest.raises(CorruptIndex, match=r"23 bytes, not a multiple of 8"):
        OffsetIndex(index.path.parent, index.path.name, BASE, 80).last()


def test_a_missing_file_is_corrupt(tmp_path: Path) -> None:
    with pytest.raises(CorruptIndex, match="missing"):
        OffsetIndex(tmp_path, "x.index", BASE, 80).last()


def test_a_file_that_shrinks_while_it_is_open_is_corrupt(tmp_path: Path) -> None:
    index = reopened(offset_index(tmp_path, MANY))
    assert len(index) == MANY
    index.path.write_bytes(b"")

    with pytest.raises(CorruptIndex, match="shorter"):
        index.last()
