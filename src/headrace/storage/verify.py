"""Checking a partition's files byte by byte without changing them, for example after a disk failure."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace.storage.config import LogConfig
from headrace.storage.errors import CorruptIndex, CorruptLog, StorageError
from headrace.storage.files import names_in, segment_base_offsets
from headrace.storage.segment import Segment


class SegmentReport(NamedTuple):
    """One segment, and its problems."""

    path: Path
    size: int
    batches: int
    base_offset: int
    next_offset: int
    problems: tuple[str, ...]


def verify(directory: Path) -> Iterator[SegmentReport]:
    """Yield a report on every segment in `directory`, oldest first. Reads everything."""
    base_offsets = segment_base_offsets(names_in(directory))
    if not base_offsets:
        raise StorageError(f"{directory} holds no segment: name a partition's directory, such as orders-0")
    for base_offset in base_offsets:
        yield _verify_segment(Segment.open(directory, base_offset, LogConfig()))


def _verify_segment(segment: Segment) -> SegmentReport:
    problems: list[str] = []
    last_offsets: dict[int, int] = {}  # position to last offset
    next_offset = segment.base_offset
    try:
        with segment.private_scanner() as scanner:
            for position, header in scanner.checked_headers():
                if header.base_offset < next_offset:
                    problems.append(
                        f"{segment.path} at byte {position}: a batch at offset {header.base_offset} "
                        f"cannot follow {next_offset - 1}"
                    )
                next_offset = header.next_offset
                last_offsets[position] = header.last_offset
    except CorruptLog as error:
        problems.append(str(error))
    else:
        problems += _index_problems(segment, last_offsets)
    return SegmentReport(
        segment.path, segment.size, len(last_offsets), segment.base_offset, next_offset, tuple(problems)
    )


def _index_problems(segment: Segment, last_offsets: dict[int, int]) -> Iterator[str]:
    try:
        for relative, position in segment.offset_index:
            offset = segment.base_offset + relative
            if last_offsets.get(position) != offset:
                yield f"{segment.offset_index.path}: no batch at byte {position} ends with offset {offset}"
        ends = set(last_offsets.values())
        for timestamp, relative in segment.time_index:
            if segment.base_offset + relative not in ends:
                yield f"{segment.time_index.path}: no batch for timestamp {timestamp}"
        list(segment.txn_index)
    except CorruptIndex as error:
        yield str(error)
