"""Log compaction: plan on the log's own thread, copy in any other, put in place on the log's own again.

    plan = plan_compaction(log, first_dirty_offset=..., up_to_offset=...)
    compacted = run_compaction(plan, max_keys=..., stop=..., throttle=...)     # takes long, blocks
    first_dirty_offset = install(log, compacted)

A plan names closed segments only, whose bytes never change, so appends and reads go on meanwhile. If
the process dies at any point the log opens with either the old segments or the new.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from headrace.protocol.batch import BatchHeader, read_header
from headrace.protocol.errors import KafkaError
from headrace.protocol.records import raw_records
from headrace.storage.compaction_filter import AbortedTxns, CompactionFilter, LastWrite
from headrace.storage.config import MAX_INT32, LogConfig
from headrace.storage.errors import CorruptLog
from headrace.storage.files import CLEANED, SEGMENT_SUFFIXES, file_name
from headrace.storage.log import Log
from headrace.storage.offset_map import OffsetMap
from headrace.storage.segment import Segment
from headrace.storage.swap import announce, put_in_place
from headrace.storage.throttle import Throttle
from headrace.storage.txn_index import AbortedTxn


class CompactionStopped(Exception):
    """Somebody asked the compaction to stop; nothing has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one pass will do, and all it needs to know of the log."""

    directory: Path
    config: LogConfig
    segments: tuple[Segment, ...]  # closed ones, from the log's first to the last that may be compacted
    first_dirty_offset: int
    now_ms: int
    dirty_ratio: float
    overdue: bool  # a dirty record has waited for longer than `max.compaction.lag.ms`
    aborted: tuple[AbortedTxn, ...]
    last_writes: dict[int, LastWrite]

    @property
    def is_worth_it(self) -> bool:
        return self.overdue or self.dirty_ratio > self.config.min_cleanable_dirty_ratio


@dataclass(frozen=True, slots=True)
class Group:
    """Segments that become one: together they fit."""

    sources: tuple[Segment, ...]

    @property
    def base_offset(self) -> int:
        return self.sources[0].base_offset


@dataclass(frozen=True, slots=True)
class Compacted:
    """Groups whose `.cleaned` segments are written and synced, and how far the log is clean with them."""

    groups: tuple[Group, ...]
    end_offset: int


def plan_compaction(log: Log, *, first_dirty_offset: int, up_to_offset: int) -> Plan | None:
    """What there is to compact below `up_to_offset`, the last stable offset; None if nothing is dirty.

    The active segment is never touched, nor one with a record younger than `min.compaction.lag.ms`.
    """
    now_ms = log.now_ms()
    config = log.config
    ends = [segment.base_offset for segment in log.segments[1:]]
    candidates = zip(log.segments, ends, strict=False)
    segments = [
        segment
        for segment, _ in takewhile(
            lambda pair: pair[1] <= up_to_offset and _has_settled(pair[0], now_ms, config), candidates
        )
    ]
    if not log.segments[0].base_offset <= first_dirty_offset <= log.log_end_offset:
        first_dirty_offset = log.segments[0].base_offset  # the checkpoint is of another life of this log
    dirty = [segment for segment, end in zip(segments, ends, strict=False) if end > first_dirty_offset]
    dirty = [segment for segment in dirty if segment.size]
    if not dirty:
        return None
    oldest = min(segment.first_timestamp for segment in dirty)
    return Plan(
        directory=log.directory,
        config=config,
        segments=tuple(segments),
        first_dirty_offset=first_dirty_offset,
        now_ms=now_ms,
        dirty_ratio=sum(segment.size for segment in dirty) / sum(segment.size for segment in segments),
        overdue=now_ms - oldest > config.max_compaction_lag_ms,
        # Of all segments: the marker of a transaction may stand past the last that is compacted.
        aborted=tuple(txn for segment in log.segments for txn in segment.txn_index),
        last_writes={
            state.producer_id: LastWrite(state.recent[-1].last_offset if state.recent else None, state.epoch)
            for state in log.producers
        },
    )


def run_compaction(
    plan: Plan, *, max_keys: int, stop: Callable[[], bool], throttle: Throttle | None = None
) -> Compacted:
    """Write the compacted segments beside the old ones. Needs no lock; `stop` is asked at every batch.

    Raises CompactionStopped, or CorruptLog for a batch whose records cannot be read; in both cases,
    and for an OSError, what was written is removed again.
    """
    pace = _Pace(stop, throttle)
    groups = tuple(_groups(plan.segments, plan.config))
    try:
        offsets = _newest_offsets(plan, max_keys, pace)
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
            _remove_cleaned(plan.directory, group.base_offset)
        raise
    return Compacted(groups, offsets.end_offset)


def install(log: Log, compacted: Compacted) -> int | None:
    """Put the compacted segments in place; return where the log is dirty from now on.

    None, and the compacted segments thrown away, if the log lost one of the old ones meanwhile.
    """
    sources = [segment for group in compacted.groups for segment in group.sources]
    if not all(any(segment is source for segment in log.segments) for source in sources):
        for group in compacted.groups:
            _remove_cleaned(log.directory, group.base_offset)
        return None
    for group in compacted.groups:
        announce(log.directory, group.base_offset)
        for source in reversed(group.sources[1:]):
            source.delete()
        group.sources[0].release()
        log.replace_segments(group.sources, put_in_place(log.directory, group.base_offset, log.config))
    return compacted.end_offset


class _Pace:
    """Between two batches: stop if asked to, slow down if too fast."""

    def __init__(self, stop: Callable[[], bool], throttle: Throttle | None) -> None:
        self._stop = stop
        self._throttle = throttle

    def step(self, size: int) -> None:
        if self._stop():
            raise CompactionStopped
        if self._throttle is not None:
            self._throttle.spend(size)


def _has_settled(segment: Segment, now_ms: int, config: LogConfig) -> bool:
    lag = config.min_compaction_lag_ms
    return lag <= 0 or now_ms - segment.max_timestamp.timestamp > lag


def _newest_offsets(plan: Plan, max_keys: int, pace: _Pace) -> OffsetMap:
    """The last offset of each key from the first dirty offset on, as far as memory allows."""
    offsets = OffsetMap(max_keys)
    aborted = AbortedTxns(plan.aborted)
    for segment in plan.segments:
        with segment.private_scanner() as scanner:
            for position, header in scanner.headers():
                pace.step(header.size)
                is_dirty = header.last_offset >= plan.first_dirty_offset and not header.is_control
                if is_dirty and not aborted.holding(header):
                    keys = _keys(segment.path, position, header, scanner.batch(position, header))
                    if not all(offsets.put(key, offset) for key, offset in keys):
                        return offsets
                offsets.end_offset = header.next_offset
    return offsets


def _keys(path: Path, position: int, header: BatchHeader, batch: memoryview) -> Iterator[tuple[bytes, int]]:
    try:
        for record in raw_records(batch, header):
            if record.key is not None:
                yield record.key, record.offset
    except KafkaError as error:
        raise CorruptLog(path, position, error) from error


def _groups(segments: Sequence[Segment], config: LogConfig) -> Iterator[Group]:
    """Neighbours whose sizes add up to no more than a segment may have, and whose offsets fit its index."""
    group: list[Segment] = []
    for segment in segments:
        too_large = sum(member.size for member in group) + segment.size > config.segment_bytes
        if group and (too_large or segment.base_offset - group[0].base_offset > MAX_INT32 // 2):
            yield Group(tuple(group))
            group = []
        group.append(segment)
    if group:
        yield Group(tuple(group))


def _write_cleaned(plan: Plan, group: Group, keeper: CompactionFilter, pace: _Pace) -> None:
    _remove_cleaned(plan.directory, group.base_offset)
    target = Segment.create(
        plan.directory, group.base_offset, plan.config, now_ms=plan.now_ms, suffix=CLEANED
    )
    try:
        for source in group.sources:
            _copy(source, target, keeper, pace)
        target.txn_index.replace(keeper.take_aborted())
        target.seal()
        target.flush()
    finally:
        target.release()


def _copy(source: Segment, target: Segment, keeper: CompactionFilter, pace: _Pace) -> None:
    with source.private_scanner() as scanner:
        for position, header in scanner.headers():
            pace.step(header.size)
            try:
                kept = keeper.keep(header, scanner.batch(position, header))
            except KafkaError as error:
                raise CorruptLog(source.path, position, error) from error
            if kept is not None:
                target.append(kept, [read_header(kept)])


def _remove_cleaned(directory: Path, base_offset: int) -> None:
    for suffix in SEGMENT_SUFFIXES:
        (directory / file_name(base_offset, suffix + CLEANED)).unlink(missing_ok=True)
