"""Checking a partition's files byte by byte without changing them, for example after a disk failure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from headrace.storage.checkpoints import CorruptCheckpoint, read_offsets
from headrace.storage.checks.damage import EpochCheck, ensure_offsets_fit, other_size
from headrace.storage.config import LogConfig
from headrace.storage.directory import CLEANER_OFFSETS, was_closed_by_others
from headrace.storage.epochs import EpochStart, LeaderEpochs
from headrace.storage.errors import CorruptIndex, CorruptLog, StorageError
from headrace.storage.files import LOG, file_name, names_in, segment_base_offsets
from headrace.storage.segment import Segment
from headrace.storage.segment_list import FILE_NAME as SEGMENT_LIST
from headrace.storage.segment_list import SegmentList
from headrace.storage.topics import parse_directory

_COMPACTED = {"__consumer_offsets", "__transaction_state", "__share_group_state", "_schemas"}
_NO_LIMIT = 2**63  # greater than every offset


class SegmentReport(NamedTuple):
    path: Path
    size: int
    batches: int
    base_offset: int
    next_offset: int
    problems: tuple[str, ...]


def verify(directory: Path) -> Iterator[SegmentReport]:
    """Yield a report on every segment in `directory`, oldest first. Reads everything.

    Segments are compared with the list of them that the broker has kept, and leader epochs with their
    checkpoint. Without a list, missing offsets between two segments are a problem, unless the log was
    compacted.
    """
    names = names_in(directory)
    bases = segment_base_offsets(names)
    if not bases:
        raise StorageError(f"{directory} holds no segment: name a partition's directory, such as orders-0")
    has_list = SEGMENT_LIST in names and not was_closed_by_others(directory.parent)
    listed = SegmentList(directory, has_file=has_list).entries
    epochs = LeaderEpochs(directory).entries
    may_have_gaps = bool(listed) or _is_compacted(directory)
    for base_offset, limit in pairwise([*sorted({*bases, *listed}), None]):
        assert base_offset is not None
        entry = listed.get(base_offset)
        if base_offset not in bases:
            path = directory / file_name(base_offset, LOG)
            problem = f"{path}: the segment is missing, it had {listed[base_offset].size:,} bytes"
            yield SegmentReport(path, 0, 0, base_offset, base_offset, (problem,))
            continue
        report = _verify_segment(Segment.open(directory, base_offset, LogConfig()), limit, epochs)
        problems = [*report.problems]
        if entry is not None and report.size != entry.size:
            problems.append(f"{report.path}: {other_size(report.size, entry)}")
        if limit is not None and report.next_offset < limit and not may_have_gaps:
            problems.append(f"{report.path}: the offsets {report.next_offset} to {limit - 1} are missing")
        yield report._replace(problems=tuple(problems))


def _is_compacted(directory: Path) -> bool:
    """Return whether compaction may have left gaps between offsets."""
    partition = parse_directory(directory.name)
    if partition is None or partition.topic in _COMPACTED:
        return True
    try:
        return partition in read_offsets(directory.parent / CLEANER_OFFSETS)
    except CorruptCheckpoint:
        return True


def _verify_segment(segment: Segment, limit: int | None, epochs: Sequence[EpochStart]) -> SegmentReport:
    problems: list[str] = []
    last_offsets: dict[int, int] = {}  # position to last offset
    next_offset = segment.base_offset
    epoch_check = EpochCheck(segment, epochs, limit or 0)
    try:
        with segment.private_scanner() as scanner:
            for position, header in scanner.checked_headers():
                try:
                    ensure_offsets_fit(segment, position, header, next_offset, limit or _NO_LIMIT)
                    epoch_check.ensure_fits(position, header)
                except CorruptLog as error:
                    problems.append(str(error))
                next_offset = max(next_offset, header.next_offset)
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
