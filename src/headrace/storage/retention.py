"""Retention: a policy says which of the oldest segments leave a log; `enforce_retention` deletes them."""

import sys
from collections.abc import Iterable
from itertools import chain, islice
from typing import NamedTuple

from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.segment import Segment

NO_LIMIT = -1


class Retention(NamedTuple):
    """How long, and how much of, a log is kept in one place; NO_LIMIT keeps everything."""

    ms: int
    bytes: int

    @classmethod
    def of_log(cls, config: LogConfig) -> "Retention":
        """Return `retention.ms` and `retention.bytes`, which apply if `cleanup.policy` has delete."""
        if not config.delete:
            return cls(NO_LIMIT, NO_LIMIT)
        return cls(config.retention_ms, config.retention_bytes)

    def leaving(
        self,
        segments: Iterable[tuple[Segment, int]],
        size: int,
        *,
        log_start_offset: int,
        high_watermark: int,
        now_ms: int,
    ) -> int:
        """Return how many of the first segments, given with their end offsets, exceed a limit.

        `size` is that of the log. A segment below the log start offset leaves in any case. Nothing at or
        after `high_watermark` does: a follower may still need it.
        """
        count = 0
        for segment, end_offset in segments:
            size -= segment.size
            below_start = end_offset <= log_start_offset
            too_large = self.bytes != NO_LIMIT and size >= self.bytes
            too_old = self.ms != NO_LIMIT and now_ms - segment.youngest_ms > self.ms
            if end_offset > high_watermark or not (below_start or too_large or too_old):
                break
            count += 1
        return count


def enforce_retention(log: Log, *, high_watermark: int, max_segments: int = sys.maxsize) -> int:
    """Delete the segments that exceed `retention.ms` or `retention.bytes` or precede the log start offset.

    Return their number, at most `max_segments`: the next call deletes more. The files are renamed;
    `Log.unlink_deleted` frees their space.
    """
    count = segments_to_delete(log, high_watermark=high_watermark, max_segments=max_segments)
    if count:
        log.delete_oldest_segments(count)
    return count


def segments_to_delete(log: Log, *, high_watermark: int, max_segments: int = sys.maxsize) -> int:
    """Return how many of the oldest segments can be deleted. An empty active segment stays."""
    active = [(log.active, log.log_end_offset)] if log.active.size else []
    return Retention.of_log(log.config).leaving(
        islice(chain(log.segments.closed(), active), max_segments),
        log.size,
        log_start_offset=log.log_start_offset,
        high_watermark=high_watermark,
        now_ms=log.now_ms(),
    )
