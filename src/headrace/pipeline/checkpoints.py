"""What Spark has written down of a query: how far it is, and which batches its files are from."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headrace.pipeline.errors import PipelineError
from headrace.protocol.ids import TopicPartition
from headrace.spark.offsets import Offsets
from headrace.spark.position import Position

_OFFSETS_LINE: Final = 2  # after the version, and what Spark says of itself; a line for each source
_NONE: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where a query goes on."""

    batch: int = -1  # the last that is done
    offsets: Mapping[TopicPartition, int] = field(
        default_factory=dict
    )  # up to which it has read, for all sources
    unfinished: bool = False  # another batch was begun: it is done again


def read_checkpoint(path: Path) -> Checkpoint | None:
    """What is in the checkpoint of a query; None if it has not begun a batch."""
    begun, done = _numbers(path / "offsets"), _numbers(path / "commits")
    if not begun:
        return None
    if not done:
        first = _positions(path / "offsets" / str(min(begun)))
        return Checkpoint(offsets=_together(each.initial_offsets or {} for each in first), unfinished=True)
    last = max(done)
    positions = _positions(path / "offsets" / str(last))
    return Checkpoint(
        batch=last, offsets=_together(each.offsets for each in positions), unfinished=max(begun) > last
    )


def check_files(directory: Path, checkpoint: Path) -> None:
    """PipelineError if files are there of a query whose checkpoint is gone.

    Spark keeps a list of the batches that Parquet files are from, by number. A query that begins anew counts
    from 0: it would take its first batches for written, and leave them out.
    """
    batches = _numbers(directory / "_spark_metadata")
    if batches and read_checkpoint(checkpoint) is None:
        raise PipelineError(
            f"{directory} has files of batches 0 to {max(batches)} of a query that was forgotten, and Spark "
            "would leave out new batches of these numbers: move the directory away, or write to another one"
        )


def _numbers(directory: Path) -> list[int]:
    """The batches that have a file; a list of Spark's may be compacted, every so often, into one."""
    if not directory.is_dir():
        return []
    names = (each.name.removesuffix(".compact") for each in directory.iterdir())
    return [int(name) for name in names if name.isdecimal()]


def _positions(path: Path) -> list[Position]:
    """What a batch's file says of each source."""
    try:
        lines = path.read_text().splitlines()[_OFFSETS_LINE:]
    except FileNotFoundError:  # Spark removes old ones
        return []
    values = (json.loads(line) for line in lines if line.strip() not in {"", _NONE})
    return [
        Position.from_json(value)
        for value in values
        if isinstance(value, dict) and all(isinstance(each, dict) for each in value.values())
    ]


def _together(offsets: Iterable[Offsets]) -> dict[TopicPartition, int]:
    return {place: offset for each in offsets for place, offset in each.items()}
