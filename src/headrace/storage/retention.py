"""Retention: selects whole segments to delete, the oldest first."""

import sys
from itertools import islice

from headrace.storage.log import Log
from headrace.storage.segment import Segment

NO_LIMIT = -1


def enforce_retention(log: Log, *, high_watermark: int, max_segments: int = sys.maxsize) -> int:
    """Delete the segments that exceed `retention.ms` or `retention.bytes` or precede the log start offset.

    Return their number, at most `max_segments`: the next call deletes more. Nothing at or after
    `high_watermark` is deleted: a follower may still need it. The files are renamed; `Log.unlink_deleted`
    frees their space.
    """
    count = segments_to_delete(log, high_watermark=high_watermark, max_segments=max_segments)
    if count:
        log.delete_oldest_segments(count)
    return count


def segments_to_delete(log: Log, *, high_watermark: int, max_segments: int = sys.maxsize) -> int:
    """Return how many of the oldest segments can be deleted. An empty active segment stays."""
    now_ms = log.now_ms()
    config = log.config
    excess = log.size - config.retention_bytes if config.retention_bytes != NO_LIMIT else 0
    count = 0
    for segment, end in islice(zip(log.segments, _end_offsets(log), strict=True), max_segments):
        excess -= segment.size
        below_start = end <= log.log_start_offset
        too_large = config.delete and config.retention_bytes != NO_LIMIT and excess >= 0
        too_old = config.delete and _is_expired(segment, now_ms, config.retention_ms)
        if segment.size == 0 and segment is log.active:
            break
        if end > high_watermark or not (below_start or too_large or too_old):
            break
        count += 1
    return count


def _is_expired(segment: Segment, now_ms: int, retention_ms: int) -> bool:
    if retention_ms == NO_LIMIT:
        return False
    return now_ms - segment.youngest_ms > retention_ms


def _end_offsets(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments[1:]] + [log.log_end_offset]
