"""Reads that do not wait for the disk. The kernel keeps a file in memory unless it is told to forget it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.protocol.fields import Buffer
from headrace.storage.log import Log
from headrace.storage.open_files import OpenFiles, SegmentFile
from headrace.storage.page_cache import NotCached, pread
from support.logs import open_test_log
from support.records import make_batch


def forget(path: Path) -> None:
    """Have the kernel drop the pages of a file."""
    descriptor = os.open(path, os.O_RDWR)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789" * 10_000)
    descriptor = os.open(path, os.O_RDONLY)
    yield path, descriptor
    os.close(descriptor)


def can_forget(path: Path, descriptor: int) -> bool:
    """Whether the file system supports reads that do not wait."""
    forget(path)
    try:
        pread(path, descriptor, 10, 0, cached_only=True)
    except NotCached:
        return True
    return False


def test_a_cached_file_is_read_at_once(file: tuple[Path, int]) -> None:
    path, descriptor = file
    assert pread(path, descriptor, 5, 10_000, cached_only=True) == b"01234"
    assert pread(path, descriptor, 20, 99_995, cached_only=True) == b"56789"  # to the end of the file


def test_what_is_on_disk_is_not_waited_for_and_read_after_it_was_loaded(file: tuple[Path, int]) -> None:
    path, descriptor = file
    if not can_forget(path, descriptor):
        pytest.skip("this file system cannot read without waiting")
    forget(path)

    with pytest.raises(NotCached) as missing:
        pread(path, descriptor, 50_000, 0, cached_only=True)
    missing.value.load()

    assert len(pread(path, descriptor, 50_000, 0, cached_only=True)) == 50_000


def test_the_kernel_does_not_read_ahead_in_the_file_of_a_segment(file: tuple[Path, int]) -> None:
    path, descriptor = file
    if not can_forget(path, descriptor):
        pytest.skip("this file system cannot read without waiting")
    segment = SegmentFile(path, OpenFiles())
    forget(path)

    os.pread(segment.descriptor, 16_384, 0)

    with pytest.raises(NotCached):
        pread(path, segment.descriptor, 10, 40_000, cached_only=True)
    segment.close()


def test_other_reads_wait(file: tuple[Path, int]) -> None:
    path, descriptor = file
    forget(path)

    assert pread(path, descriptor, 5, 0) == b"01234"


def test_a_file_that_was_deleted_need_not_be_loaded(tmp_path: Path) -> None:
    NotCached(tmp_path / "gone", 0, 10).load()


def test_a_log_raises_for_its_segments_and_indexes_until_they_are_loaded(tmp_path: Path) -> None:
    log: Log = open_test_log(tmp_path / "t-0")
    for _ in range(200):
        log.append(make_batch([bytes(1_000)]), leader_epoch=0)
    log.close()
    log = open_test_log(tmp_path / "t-0")
    for path in (tmp_path / "t-0").iterdir():
        forget(path)

    data = read_cached(log, 150)

    assert bytes(data) == bytes(log.read(150, 10_000))
    log.close()


def read_cached(log: Log, offset: int) -> Buffer:
    """Read as the event loop does: what is missing is loaded before the next attempt."""
    for _ in range(16):
        try:
            return log.read(offset, 10_000, cached_only=True)
        except NotCached as missing:
            missing.load()
    raise AssertionError("every load was followed by another missing part")


def test_an_index_is_rebuilt_as_a_whole_although_the_log_is_on_disk(tmp_path: Path) -> None:
    """A rebuild that ended at the first missing page would leave an index without its last entries."""
    log: Log = open_test_log(tmp_path / "t-0")
    for _ in range(200):
        log.append(make_batch([bytes(1_000)]), leader_epoch=0)
    log.roll()
    expected = list(log.segments[0].offset_index), log.segments[0].max_timestamp
    index = log.segments[0].offset_index.path
    log.close()
    index.write_bytes(bytes(index.stat().st_size))
    log = open_test_log(tmp_path / "t-0")
    forget(log.segments[0].path)

    read_cached(log, 150)

    assert (list(log.segments[0].offset_index), log.segments[0].max_timestamp) == expected
    log.close()
