"""Replacing segments by their compacted segment, so that a crash loses neither.

A compaction writes `<base>.log.cleaned` and its indexes, syncs them, and renames them to `.swap`, the
log last. From then on the compacted segment is valid: opening the log finishes the steps below, each of which
can be repeated.
"""

from collections.abc import Callable
from pathlib import Path

from headrace.storage.config import LogConfig
from headrace.storage.files import (
    CLEANED,
    LOG,
    SEGMENT_SUFFIXES,
    SWAP,
    file_name,
    names_in,
    segment_base_offsets,
    sync_directory,
)
from headrace.storage.open_files import OpenFiles
from headrace.storage.segment import Segment, unlink


def announce(directory: Path, base_offset: int, written_as: str = CLEANED) -> None:
    """Rename a finished, synced segment with the suffix `written_as` to `.swap`."""
    for suffix in SEGMENT_SUFFIXES:
        written = directory / file_name(base_offset, suffix + written_as)
        if written.exists():
            written.replace(directory / file_name(base_offset, suffix + SWAP))
    sync_directory(directory)


def put_in_place(
    directory: Path,
    base_offset: int,
    config: LogConfig,
    remove: Callable[[Path], None] = unlink,
    *,
    files: OpenFiles | None = None,
) -> Segment:
    """Rename a `.swap` segment to its final name, after the other segments that it covers are deleted."""
    # The old files are removed first, their log last: while the log exists, no new file has its final name,
    # and an index with a final name is not mistaken for an old one.
    if (directory / file_name(base_offset, LOG)).exists():
        for suffix in SEGMENT_SUFFIXES:
            remove(directory / file_name(base_offset, suffix))
    for suffix in SEGMENT_SUFFIXES:
        swapped = directory / file_name(base_offset, suffix + SWAP)
        if swapped.exists():
            swapped.replace(directory / file_name(base_offset, suffix))
    segment = Segment.open(directory, base_offset, config, files=files)
    segment.sealed = True
    return segment


def resume_swap(directory: Path, base_offset: int, config: LogConfig) -> None:
    """Finish a replacement that a crash has interrupted."""
    for superseded in _covered(directory, base_offset, config):
        Segment(directory, superseded, config).delete()
    put_in_place(directory, base_offset, config)


def _covered(directory: Path, base_offset: int, config: LogConfig) -> list[int]:
    """Return the base offsets of the other segments whose records are in the `.swap` segment."""
    swapped = Segment.open(directory, base_offset, config, suffix=SWAP)
    last_offset = base_offset
    for _, header in swapped.headers():
        last_offset = header.last_offset
    swapped.release()
    return [base for base in segment_base_offsets(names_in(directory)) if base_offset < base <= last_offset]
