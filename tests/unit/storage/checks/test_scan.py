import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.storage.checks.scan import Scanner
from headrace.storage.errors import CorruptLog
from support.records import make_batch

BATCHES = [
    bytes(make_batch([bytes(size)], base_offset=offset)) for offset, size in enumerate((5, 900, 0, 70))
]
STARTS = [sum(map(len, BATCHES[:number])) for number in range(4)]
CONTENT = b"".join(BATCHES)
CHUNKS = pytest.mark.parametrize("chunk", [1, 61, 100, 1000, 10**6])


class OpenFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT)

    def scanner(self, content: bytes, *, end: int | None = None, chunk: int = 1000) -> Scanner:
        os.truncate(self.descriptor, 0)
        os.pwrite(self.descriptor, content, 0)
        return Scanner(self, len(content) if end is None else end, chunk=chunk)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[OpenFile]:
    file = OpenFile(tmp_path / "x.log")
    yield file
    os.close(file.descriptor)


@CHUNKS
def test_every_batch_is_met_whatever_a_read_brings(file: OpenFile, chunk: int) -> None:
    scanner = file.scanner(CONTENT, chunk=chunk)

    assert [position for position, _ in scanner.headers()] == STARTS
    assert [header.base_offset for _, header in scanner.checked_headers()] == [0, 1, 2, 3]
    assert [bytes(scanner.batch(at, header)) for at, header in scanner.headers()] == BATCHES


def test_a_walk_may_start_at_any_batch(file: OpenFile) -> None:
    assert [position for position, _ in file.scanner(CONTENT).headers(STARTS[2])] == STARTS[2:]
    assert list(file.scanner(CONTENT).headers(len(CONTENT))) == []


@CHUNKS
def test_damage_is_reported_with_its_place_after_all_before_it(file: OpenFile, chunk: int) -> None:
    damaged = bytearray(CONTENT)
    damaged[STARTS[2] + 30] ^= 1
    walk = file.scanner(bytes(damaged), chunk=chunk).checked_headers()

    assert [next(walk)[0], next(walk)[0]] == STARTS[:2]
    with pytest.raises(CorruptLog, match="checksum") as damage:
        next(walk)
    assert (damage.value.path, damage.value.position) == (file.path, STARTS[2])


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (b"\x00", "too few"),
        (bytes(60), "too few"),
        (bytes(61), "magic is 0"),
        (BATCHES[1][:-1], "are left"),
        (BATCHES[0][:8] + b"\xff\xff\xff\xff" + BATCHES[0][12:], "claims 11 bytes"),
        (BATCHES[0][:8] + b"\x7f\xff\xff\xff" + BATCHES[0][12:], "claims 2147483659 bytes"),
        (BATCHES[0][:8] + b"\x00\x00\x00\x00" + BATCHES[0][12:], "claims 12 bytes"),
    ],
)
def test_a_tail_that_is_no_batch_is_damage(file: OpenFile, tail: bytes, why: str) -> None:
    with pytest.raises(CorruptLog, match=why) as damage:
        list(file.scanner(CONTENT + tail).headers())

    assert damage.value.position == len(CONTENT)


def test_a_file_shorter_than_it_was_is_damage(file: OpenFile) -> None:
    with pytest.raises(CorruptLog, match="early"):
        list(file.scanner(CONTENT, end=len(CONTENT) + 100).headers())
