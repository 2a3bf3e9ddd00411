"""A compaction as a message to another process, and its outcome as a message back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, NamedTuple

from headrace.protocol.batch import BatchHeader
from headrace.protocol.errors import KafkaError
from headrace.storage.compaction.cleaner import Plan, Throttle, run_compaction
from headrace.storage.errors import CorruptLog, StorageError
from headrace.storage.segment import Segment

_LOCAL: Final = {"segments", "is_stale", "note_unreadable"}  # fields of a plan that cannot be sent


class PlannedSegment(NamedTuple):
    base_offset: int
    size: int
    created_ms: int


class Task(NamedTuple):
    """A plan, as far as it can be sent to another process, and the limits of its execution."""

    segments: tuple[PlannedSegment, ...]
    rest: Mapping[str, Any]  # the other fields of the plan
    max_keys: int
    bytes_per_second: float

    @classmethod
    def of(cls, plan: Plan, *, max_keys: int, bytes_per_second: float) -> "Task":
        segments = tuple(
            PlannedSegment(segment.base_offset, segment.size, segment.created_ms) for segment in plan.segments
        )
        rest = {field.name: getattr(plan, field.name) for field in fields(Plan) if field.name not in _LOCAL}
        return cls(segments, rest, max_keys, bytes_per_second)


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

    def segment(planned: PlannedSegment) -> Segment:
        made = Segment(task.rest["directory"], planned.base_offset, task.rest["config"])
        made.size, made.created_ms, made.sealed = planned.size, planned.created_ms, True
        return made

    try:
        compacted = run_compaction(
            Plan(
                **task.rest,
                segments=tuple(map(segment, task.segments)),
                is_stale=lambda: False,  # the broker knows, and ends this process
                note_unreadable=note,
            ),
            max_keys=task.max_keys,
            stop=stop,
            throttle=Throttle(task.bytes_per_second),
        )
    except CorruptLog as error:
        return Failed(str(error), (error.path, error.position, str(error.why)))
    except (OSError, StorageError, KafkaError) as error:
        return Failed(str(error))
    groups = tuple(tuple(source.base_offset for source in group.sources) for group in compacted.groups)
    return Done(groups, compacted.end_offset, tuple(unreadable))
