"""Putting a compacted segment in the place of those it was made from, so that a crash loses neither.

A compaction writes `<base>.log.cleaned` and its indexes, syncs them, and renames them to `.swap`, the
log last. From then on the compacted segment counts: whoever opens the log finishes the work below,
every step of which can be repeated.
"""

from pathlib import Path

from headrace.storage.config import LogConfig
from headrace.storage.files import (
    CLEANED,
    LOG,
    SEGMENT_SUFFIXES,
    SWAP,
    file_name,
    segment_base_offsets,
    sync_directory,
)
from headrace.storage.segment import Segment


def announce(directory: Path, base_offset: int) -> None:
    """Rename a finished, synced `.cleaned` segment to `.swap`."""
    for suffix in SEGMENT_SUFFIXES:
        cleaned = directory / file_name(base_offset, suffix + CLEANED)
        if cleaned.exists():
            cleaned.replace(directory / file_name(base_offset, suffix + SWAP))
    sync_directory(directory)


def put_in_place(directory: Path, base_offset: int, config: LogConfig) -> Segment:
    """Give a `.swap` segment its final name; the others it covers must be gone already."""
    # The old files first, their log last: while it is there, nothing has its final name yet, and an
    # index that has it is not taken for an old one.
    if (directory / file_name(base_offset, LOG)).exists():
        for suffix in SEGMENT_SUFFIXES:
            (directory / file_name(base_offset, suffix)).unlink(missing_ok=True)
    for suffix in SEGMENT_SUFFIXES:
        swapped = directory / file_name(base_offset, suffix + SWAP)
        if swapped.exists():
            swapped.replace(directory / file_name(base_offset, suffix))
    segment = Segment.open(directory, base_offset, config)
    segment.sealed = True
    return segment


def resume_swap(directory: Path, base_offset: int, config: LogConfig) -> None:
    """Finish what a crash interrupted."""
    for superseded in _covered(directory, base_offset, config):
        Segment(directory, superseded, config).delete()
    put_in_place(directory, base_offset, config)


def _covered(directory: Path, base_offset: int, config: LogConfig) -> list[int]:
    """The base offsets of the other segments whose records the `.swap` segment holds."""
    swapped = Segment.open(directory, base_offset, config, suffix=SWAP)
    last_offset = base_offset
    for _, header in swapped.headers():
        last_offset = header.last_offset
    swapped.release()
    return [base for base in segment_base_offsets(directory) if base_offset < base <= last_offset]
