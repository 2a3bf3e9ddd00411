"""A segment with more index entries than one page, looked at by offset, by time and by position."""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from headrace.protocol.batch import BatchHeader, read_batch
from headrace.storage.config import LogConfig
from headrace.storage.segment import Segment
from support.logs import files_in
from support.records import make_batch

CONFIG = LogConfig(index_interval_bytes=100)
BASE = 500
COUNT = 2500  # batches; every second one has an index entry


def batches() -> list[bytes]:
    """Batches of two records; the time goes up by 3 and, at every tenth, back for one batch."""
    return [
        bytes(
            make_batch(
                [b"", b""],
                base_offset=BASE + 2 * number,
                timestamps=[3 * number, 3 * number + 1] if number % 10 else [0, 1],
            )
        )
        for number in range(COUNT)
    ]


BATCHES = batches()
HEADERS = [read_batch(batch) for batch in BATCHES]
STARTS = [0, *accumulate(map(len, BATCHES))]
SIZE = len(BATCHES[0])


def add(segment: Segment, data: list[bytes], headers: list[BatchHeader]) -> None:
    for batch, header in zip(data, headers, strict=True):
        segment.append(batch, [header])


def created(directory: Path) -> Segment:
    return Segment.create(directory, BASE, CONFIG, now_ms=0)


@pytest.fixture
def segment(tmp_path: Path) -> Iterator[Segment]:
    segment = created(tmp_path)
    add(segment, BATCHES, HEADERS)
    yield segment
    segment.release()


def reopened(segment: Segment) -> Segment:
    segment.seal()
    segment.release()
    return Segment.open(segment.directory, BASE, CONFIG)


def check_look_ups(segment: Segment) -> None:
    for number in [*range(0, COUNT, 7), COUNT - 1]:
        assert segment.position_of(BASE + 2 * number) == STARTS[number]
        assert segment.position_of(BASE + 2 * number + 1) == STARTS[number]
        time = HEADERS[number].max_timestamp
        expected = next(n for n, header in enumerate(HEADERS) if header.max_timestamp >= time)
        assert segment.position_of_timestamp(time) == STARTS[expected]
    assert segment.position_of(BASE + 2 * COUNT) == segment.size
    assert segment.position_of_timestamp(10**9) == segment.size


def test_everything_is_found_in_many_pages_of_index(segment: Segment) -> None:
    assert len(segment.offset_index) > 1024
    check_look_ups(segment)


def test_everything_is_found_after_opening_again(segment: Segment) -> None:
    again = reopened(segment)
    check_look_ups(again)
    assert again.max_timestamp == (HEADERS[-1].max_timestamp, HEADERS[-1].last_offset)
    again.release()


@pytest.mark.parametrize("max_bytes", [0, SIZE, 5 * SIZE + 7, 100_000])
def test_reads_end_with_a_batch(segment: Segment, max_bytes: int) -> None:
    for number in range(0, COUNT, 311):
        data = bytes(segment.read(STARTS[number], segment.size, max_bytes, at_least_one=False).data)
        expected = b""
        for batch in BATCHES[number:]:
            if len(expected) + len(batch) > max_bytes:
                break
            expected += batch
        assert data == expected


@pytest.mark.parametrize("kept", [0, 1, 2, 3, 1023, 1024, 1025, 2047, 2048, COUNT - 1])
def test_a_segment_cut_and_written_again_is_as_if_never_cut(
    segment: Segment, tmp_path: Path, kept: int
) -> None:
    segment.truncate_to(STARTS[kept], HEADERS[kept].base_offset)
    assert segment.resume() == HEADERS[kept].base_offset
    add(segment, BATCHES[kept:], HEADERS[kept:])
    segment.seal()
    (tmp_path / "other").mkdir()
    other = created(tmp_path / "other")
    add(other, BATCHES, HEADERS)
    other.seal()
    other.release()

    assert files_in(tmp_path, ".log", ".index", ".timeindex") == files_in(
        tmp_path / "other", ".log", ".index", ".timeindex"
    )


@pytest.mark.parametrize("stopped", [1, 2, 1024, 2048])
def test_a_segment_stopped_and_resumed_is_as_if_never_stopped(tmp_path: Path, stopped: int) -> None:
    for name, stops in (("stopped", [stopped]), ("straight", [])):
        (tmp_path / name).mkdir()
        segment = created(tmp_path / name)
        done = 0
        for stop in [*stops, COUNT]:
            add(segment, BATCHES[done:stop], HEADERS[done:stop])
            done = stop
            segment = reopened(segment)
            assert segment.resume() == BASE + 2 * done
        segment.seal()
        segment.release()

    suffixes = (".log", ".index", ".timeindex")
    assert files_in(tmp_path / "stopped", *suffixes) == files_in(tmp_path / "straight", *suffixes)


def test_files_are_deleted_together(segment: Segment) -> None:
    segment.delete()

    assert list(segment.directory.iterdir()) == []


def test_a_segment_that_could_not_be_made_leaves_no_file_open(tmp_path: Path) -> None:
    (tmp_path / f"{BASE:020d}.timeindex").symlink_to(tmp_path / "missing" / "file")
    before = _open_files()

    with pytest.raises(FileNotFoundError):
        created(tmp_path)

    assert _open_files() == before


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
