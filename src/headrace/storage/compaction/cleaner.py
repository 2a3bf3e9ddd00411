"""Log compaction: planned on the log's own thread, copied in any other, installed on the log's own thread.

    plan = plan_compaction(log, first_dirty_offset=..., up_to_offset=...)
    compacted = run_compaction(plan, max_keys=..., stop=..., throttle=...)     # takes long, blocks
    first_dirty_offset = install(log, compacted)

A plan has only closed segments, whose bytes never change, so appends and reads continue. If
the process dies at any point, the log opens with either the old segments or the new ones.
"""

import logging
import os
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path

from headrace.protocol.batch import BatchHeader, read_header
from headrace.protocol.errors import KafkaError
from headrace.storage.compaction.filter import (
    AbortedTxns,
    CompactionFilter,
    LastWrite,
    OffsetMap,
    read_records,
)
from headrace.storage.compaction.swap import announce, put_in_place
from headrace.storage.config import MAX_INT32, LogConfig
from headrace.storage.files import CLEANED, SEGMENT_SUFFIXES, file_name
from headrace.storage.log import Log
from headrace.storage.segment import Segment
from headrace.storage.txn_index import AbortedTxn

logger = logging.getLogger(__name__)
Pace = Callable[[int], None]
_CREDIT_SECONDS = 0.1  # the most time of the work itself that counts as time slept


class Throttle:
    """Limits work to `bytes_per_second` on average, by sleeping in the calling thread."""

    def __init__(
        self,
        bytes_per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._paid_until = clock()

    def spend(self, size: int) -> None:
        """Account for `size` bytes of work; sleep if the work is a few milliseconds ahead of its rate.

        A sleep of zero seconds lets other threads of the interpreter run.
        """
        now = self._clock()
        self._paid_until = max(self._paid_until, now - _CREDIT_SECONDS) + size / self._rate
        ahead = self._paid_until - now
        self._sleep(ahead if ahead > 0.005 else 0)


class CompactionStopped(Exception):
    """The compaction was stopped, or the log was truncated under it; nothing has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The work of one compaction, and all that it needs to know of the log."""

    directory: Path
    config: LogConfig
    segments: tuple[Segment, ...]  # closed ones, from the first of the log to the last that may be compacted
    end_offset: int  # the base offset of the segment after them
    first_dirty_offset: int
    now_ms: int
    dirty_ratio: float
    overdue: bool  # a dirty record has waited for longer than `max.compaction.lag.ms`
    aborted: tuple[AbortedTxn, ...]
    last_writes: dict[int, LastWrite]
    is_stale: Callable[[], bool]  # whether the log was truncated since; any thread may call it
    note_unreadable: Callable[[Path, int, BatchHeader, KafkaError], None]
    """Logs a batch that is kept unchanged."""

    @property
    def spans(self) -> list[tuple[Segment, int]]:
        ends = [segment.base_offset for segment in self.segments[1:]]
        return list(zip(self.segments, [*ends, self.end_offset], strict=True))

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def is_worth_it(self) -> bool:
        return self.overdue or self.dirty_ratio > self.config.min_cleanable_dirty_ratio


@dataclass(frozen=True, slots=True)
class Group:
    """Segments that are merged into one."""

    sources: tuple[Segment, ...]

    @property
    def base_offset(self) -> int:
        return self.sources[0].base_offset


@dataclass(frozen=True, slots=True)
class Compacted:
    """Groups whose `.cleaned` segments are written and synced, and the end offset of the clean part."""

    plan: Plan
    groups: tuple[Group, ...]
    end_offset: int


def plan_compaction(log: Log, *, first_dirty_offset: int, up_to_offset: int) -> Plan | None:
    """Return a plan for the log below `up_to_offset`, the last stable offset; None if nothing is dirty.

    The active segment is never compacted, nor one with a record younger than `min.compaction.lag.ms`, nor a
    log with a damaged segment: that is repaired first.
    """
    if log.damaged:
        return None
    now_ms = log.now_ms()
    config, lag_ms = log.config, log.config.min_compaction_lag_ms
    ends = [segment.base_offset for segment in log.segments[1:]]
    candidates = zip(log.segments, ends, strict=False)
    segments = [
        segment
        for segment, _ in takewhile(
            lambda pair: pair[1] <= up_to_offset and (lag_ms <= 0 or now_ms - pair[0].youngest_ms > lag_ms),
            candidates,
        )
    ]
    if not log.segments[0].base_offset <= first_dirty_offset <= log.log_end_offset:
        first_dirty_offset = log.segments[0].base_offset  # the checkpoint is of an earlier log of this name
    dirty = [segment for segment, end in zip(segments, ends, strict=False) if end > first_dirty_offset]
    dirty = [segment for segment in dirty if segment.size]
    if not dirty:
        return None
    cuts = log.cuts
    return Plan(
        directory=log.directory,
        config=config,
        segments=tuple(segments),
        end_offset=ends[len(segments) - 1],
        first_dirty_offset=first_dirty_offset,
        now_ms=now_ms,
        dirty_ratio=sum(segment.size for segment in dirty) / sum(segment.size for segment in segments),
        overdue=any(
            now_ms - segment.first_timestamp > config.max_compaction_lag_ms
            for segment in dirty
            if segment.first_timestamp >= 0
        ),
        # Of all segments: the marker of a transaction may be after the last segment that is compacted.
        aborted=tuple(txn for segment in log.segments for txn in segment.txn_index),
        last_writes={
            state.producer_id: LastWrite(state.recent[-1].last_offset if state.recent else None, state.epoch)
            for state in log.producers
        },
        is_stale=lambda: log.cuts != cuts,
        note_unreadable=partial(_note_unreadable, log),
    )


def _note_unreadable(log: Log, path: Path, position: int, header: BatchHeader, why: KafkaError) -> None:
    """Log a batch whose records cannot be read, once: every compaction finds it again."""
    if header.base_offset > log.last_unreadable_offset:
        log.last_unreadable_offset = header.base_offset
        logger.warning(
            "compaction keeps the batch at offsets %d to %d (%s, byte %d), whose records cannot be read: %s",
            header.base_offset,
            header.last_offset,
            path,
            position,
            why,
        )


def run_compaction(
    plan: Plan, *, max_keys: int, stop: Callable[[], bool], throttle: Throttle | None = None
) -> Compacted:
    """Write the compacted segments beside the old ones. Needs no lock; `stop` is called for every batch.

    A batch whose records cannot be read is kept unchanged. Raises CompactionStopped, or CorruptLog for a
    batch with an invalid checksum; in both cases, and for an OSError, the written files are removed.
    """

    def pace(size: int) -> None:
        """Stop if requested, and slow down if too fast: called for every batch, with its size."""
        if stop() or plan.is_stale():
            raise CompactionStopped
        if throttle is not None:
            throttle.spend(size)

    groups: tuple[Group, ...] = ()
    try:
        offsets = _newest_offsets(plan, max_keys, pace)
        groups = tuple(_groups(plan, offsets.end_offset))
        keeper = CompactionFilter(
            offsets,
            AbortedTxns(plan.aborted),
            plan.last_writes,
            now_ms=plan.now_ms,
            delete_retention_ms=plan.config.delete_retention_ms,
        )
        for group in groups:
            _write_cleaned(plan, group, keeper, pace)
    except BaseException:
        for group in groups:
            remove_cleaned(plan.directory, group.base_offset)
        if plan.is_stale():  # then a short or missing file is not damage
            raise CompactionStopped from None
        raise
    return Compacted(plan, groups, offsets.end_offset)


def install(log: Log, compacted: Compacted) -> int | None:
    """Replace the segments by the compacted ones; return the new first dirty offset.

    If the log was truncated in the meantime, remove the compacted segments and return None: they may differ
    from the log. `Log.unlink_deleted` frees the space of the old segments.
    """
    steps = install_in_steps(log, compacted)
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        clean_to: int | None = stop.value
        return clean_to


def install_in_steps(log: Log, compacted: Compacted) -> Generator[None, None, int | None]:
    """Do what `install` does, and yield between two groups: each of them waits for the disk once.

    If the log is truncated between two steps, the groups that are in place stay; they are valid without the
    others.
    """

    def swap(group: Group) -> Segment:
        announce(log.directory, group.base_offset)
        for source in reversed(group.sources[1:]):
            source.delete(log.discard)
        group.sources[0].release()
        return put_in_place(log.directory, group.base_offset, log.config, log.discard, files=log.files)

    is_stale, cuts = compacted.plan.is_stale(), log.cuts
    for number, group in enumerate(compacted.groups):
        if is_stale or log.cuts != cuts:
            for each in compacted.groups[number:]:
                remove_cleaned(log.directory, each.base_offset)
            return None
        log.replace_segments(group.sources, partial(swap, group))
        cuts = log.cuts
        yield
    return None if is_stale else compacted.end_offset


def _newest_offsets(plan: Plan, max_keys: int, pace: Pace) -> OffsetMap:
    """Return the last offset of each key from the first dirty offset on, as far as memory allows."""
    offsets = OffsetMap(max_keys)
    aborted = AbortedTxns(plan.aborted)
    for segment in (segment for segment, end in plan.spans if end > plan.first_dirty_offset):
        with segment.private_scanner() as scanner:
            for position, header in scanner.headers():
                pace(header.size)
                if header.is_control or aborted.holding(header):
                    continue
                for key, offset in _keys(header, scanner.batch(position, header)):
                    if offset >= plan.first_dirty_offset and not offsets.put(key, offset):
                        offsets.end_offset = offset
                        return offsets
    offsets.end_offset = plan.end_offset
    return offsets


def _keys(header: BatchHeader, batch: memoryview) -> list[tuple[bytes, int]]:
    """Return the keys of a batch and their offsets; none if the batch is unreadable, which is then kept."""
    try:
        return [(each.key, each.offset) for each in read_records(header, batch) if each.key is not None]
    except KafkaError:
        return []


def _groups(plan: Plan, end_offset: int) -> Iterator[Group]:
    """Yield neighbouring segments that together fit into one, in size and in relative offsets.

    Segments from `end_offset` on are left unchanged.
    """
    group: list[Segment] = []
    for segment, end in plan.spans:
        if segment.base_offset >= end_offset:
            break
        too_large = sum(member.size for member in group) + segment.size > plan.config.segment_bytes
        if group and (too_large or end - group[0].base_offset > MAX_INT32):
            yield Group(tuple(group))
            group = []
        group.append(segment)
    if group:
        yield Group(tuple(group))


def _write_cleaned(plan: Plan, group: Group, keeper: CompactionFilter, pace: Pace) -> None:
    remove_cleaned(plan.directory, group.base_offset)
    target = Segment.create(
        plan.directory, group.base_offset, plan.config, now_ms=plan.now_ms, suffix=CLEANED
    )
    try:
        for source in group.sources:
            with source.private_scanner() as scanner:
                for position, header in scanner.checked_headers():  # a new checksum must not hide damage
                    pace(header.size)
                    batch = scanner.batch(position, header)
                    try:
                        kept = keeper.keep(header, batch)
                    except KafkaError as error:
                        plan.note_unreadable(source.path, position, header, error)
                        kept = batch
                    if kept is not None:
                        target.append(kept, [read_header(kept)])
        target.txn_index.replace(keeper.take_aborted())
        target.seal()
        target.flush()
        written_ms = max(source.created_ms for source in group.sources)
        os.utime(target.path, (written_ms / 1000, written_ms / 1000))  # the age of records without timestamps
    finally:
        target.release()


def remove_cleaned(directory: Path, base_offset: int) -> None:
    """Remove the files of a compacted segment that is not installed."""
    for suffix in SEGMENT_SUFFIXES:
        (directory / file_name(base_offset, suffix + CLEANED)).unlink(missing_ok=True)
