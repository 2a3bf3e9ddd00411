"""A compaction as a message to another process, and its outcome as a message back."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from headrace.protocol.batch import BatchHeader
from headrace.protocol.errors import KafkaError
from headrace.storage.compaction.cleaner import Plan, Throttle, run_compaction
from headrace.storage.compaction.filter import LastWrite
from headrace.storage.config import LogConfig
from headrace.storage.errors import CorruptLog, StorageError
from headrace.storage.segment import Segment
from headrace.storage.txn_index import AbortedTxn


class PlannedSegment(NamedTuple):
    base_offset: int
    size: int
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A plan, as far as it can be sent to another process, and the limits of its execution."""

    directory: Path
    config: LogConfig
    segments: tuple[PlannedSegment, ...]
    end_offset: int
    first_dirty_offset: int
    now_ms: int
    aborted: tuple[AbortedTxn, ...]
    last_writes: dict[int, LastWrite]
    max_keys: int
    bytes_per_second: float

    @classmethod
    def of(cls, plan: Plan, *, max_keys: int, bytes_per_second: float) -> "Task":
        return cls(
            directory=plan.directory,
            config=plan.config,
            segments=tuple(
                PlannedSegment(each.base_offset, each.size, each.created_ms) for each in plan.segments
            ),
            end_offset=plan.end_offset,
            first_dirty_offset=plan.first_dirty_offset,
            now_ms=plan.now_ms,
            aborted=plan.aborted,
            last_writes=plan.last_writes,
            max_keys=max_keys,
            bytes_per_second=bytes_per_second,
        )


class Unreadable(NamedTuple):
    """A batch that is kept unchanged, because its records cannot be read."""

    path: Path
    position: int
    header: BatchHeader
    why: str


@dataclass(frozen=True, slots=True)
class Done:
    """The `.cleaned` segments are written: the base offsets of the segments that each of them replaces."""

    groups: tuple[tuple[int, ...], ...]
    end_offset: int
    unreadable: tuple[Unreadable, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing is left of the compaction; an operator reads why."""

    why: str
    damage: tuple[Path, int, str] | None = None  # the arguments of CorruptLog


def perform(task: Task, stop: Callable[[], bool]) -> Done | Failed:
    """Write the compacted segments of a task beside the old ones."""
    unreadable: list[Unreadable] = []

    def note(path: Path, position: int, header: BatchHeader, why: KafkaError) -> None:
        unreadable.append(Unreadable(path, position, header, str(why)))

    try:
        compacted = run_compaction(
            _plan(task, note), max_keys=task.max_keys, stop=stop, throttle=Throttle(task.bytes_per_second)
        )
    except CorruptLog as error:
        return Failed(str(error), (error.path, error.position, str(error.why)))
    except (OSError, StorageError, KafkaError) as error:
        return Failed(str(error))
    groups = tuple(tuple(source.base_offset for source in group.sources) for group in compacted.groups)
    return Done(groups, compacted.end_offset, tuple(unreadable))


def _plan(task: Task, note: Callable[[Path, int, BatchHeader, KafkaError], None]) -> Plan:
    return Plan(
        directory=task.directory,
        config=task.config,
        segments=tuple(_segment(task, each) for each in task.segments),
        end_offset=task.end_offset,
        first_dirty_offset=task.first_dirty_offset,
        now_ms=task.now_ms,
        dirty_ratio=1.0,
        overdue=False,
        aborted=task.aborted,
        last_writes=task.last_writes,
        is_stale=lambda: False,  # the broker knows, and ends this process
        note_unreadable=note,
    )


def _segment(task: Task, planned: PlannedSegment) -> Segment:
    segment = Segment(task.directory, planned.base_offset, task.config)
    segment.size, segment.created_ms, segment.sealed = planned.size, planned.created_ms, True
    return segment
