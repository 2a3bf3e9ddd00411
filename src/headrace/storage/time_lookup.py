"""Which record a question about time means: the indexes lead to the batch, the records decide."""

from collections.abc import Sequence
from typing import NamedTuple

from headrace.protocol.records import decode_batch
from headrace.storage.segment import Segment

_CHUNK = 64 * 1024


class FoundOffset(NamedTuple):
    """The answer to a question about time."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(
    segments: Sequence[Segment], log_start_offset: int, timestamp: int
) -> FoundOffset | None:
    """The first record, by the log's order, whose time is `timestamp` or later."""
    for segment in segments:
        if segment.max_timestamp.timestamp >= timestamp:
            found = _find(segment, log_start_offset, timestamp)
            if found is not None:
                return found
    return None


def youngest(segments: Sequence[Segment], log_start_offset: int) -> FoundOffset | None:
    """The first of the records with the largest timestamp."""
    found = None
    for segment in segments:
        if found is None or segment.max_timestamp.timestamp > found.timestamp:
            found = _younger(segment, log_start_offset, found)
    return found


def _find(segment: Segment, log_start_offset: int, timestamp: int) -> FoundOffset | None:
    scanner = segment.scanner(chunk=_CHUNK)
    for position, header in scanner.headers(segment.position_of_timestamp(timestamp)):
        if header.max_timestamp < timestamp or header.next_offset <= log_start_offset:
            continue
        for record in decode_batch(scanner.batch(position, header), header):
            if record.timestamp >= timestamp and record.offset >= log_start_offset:
                return FoundOffset(record.timestamp, record.offset, header.leader_epoch)
    return None


def _younger(segment: Segment, log_start_offset: int, found: FoundOffset | None) -> FoundOffset | None:
    """The first of the youngest records in `segment`, or `found` if none is younger."""
    largest = segment.max_timestamp
    whole = log_start_offset <= segment.base_offset  # otherwise the youngest may have been deleted
    scanner = segment.scanner(chunk=_CHUNK)
    start = segment.position_of(largest.offset if whole else log_start_offset)
    for position, header in scanner.headers(start):
        if found is not None and header.max_timestamp <= found.timestamp:
            continue
        for record in decode_batch(scanner.batch(position, header), header):
            younger = found is None or record.timestamp > found.timestamp
            if younger and record.offset >= log_start_offset:
                found = FoundOffset(record.timestamp, record.offset, header.leader_epoch)
        if found is not None and found.timestamp >= largest.timestamp:
            break
    return found
