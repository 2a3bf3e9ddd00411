"""The checkpoints of Spark queries: their last batches and offsets."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from headrace.pipeline.storage.object_store import StoragePath
from headrace.protocol.ids import TopicPartition
from headrace.spark.position import Position
from headrace.tables.reader.offsets import Offsets

_OFFSETS_LINE: Final = 2  # after the version and metadata of Spark; one line for each source
_NONE: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where a query continues."""

    batch: int = -1  # the last one that is finished
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)  # next offsets, of all sources
    unfinished: bool = False  # whether another batch was started, which will be repeated


def read_checkpoint(path: StoragePath) -> Checkpoint | None:
    """Return the checkpoint of a query; None if it has not started a batch."""
    begun, done = batch_numbers(path / "offsets"), batch_numbers(path / "commits")
    if not begun:
        return None
    if not done:
        first = _positions(path / "offsets" / str(min(begun)))
        return Checkpoint(
            offsets=_together(position.initial_offsets or {} for position in first), unfinished=True
        )
    last = max(done)
    positions = _positions(path / "offsets" / str(last))
    return Checkpoint(
        batch=last,
        offsets=_together(position.offsets for position in positions),
        unfinished=max(begun) > last,
    )


def read_query_id(path: StoragePath) -> str:
    """Return the id of the query, which Spark writes before the first batch."""
    query_id: str = json.loads((path / "metadata").read_text())["id"]
    return query_id


def batch_numbers(directory: StoragePath) -> list[int]:
    """Return the batches that have a file in a log directory of Spark, which may be compacted."""
    if not directory.is_dir():
        return []
    names = (path.name.removesuffix(".compact") for path in directory.iterdir())
    return [int(name) for name in names if name.isdecimal()]


def _positions(path: StoragePath) -> list[Position]:
    """Return the positions of all sources in the offsets file of a batch."""
    try:
        lines = path.read_text().splitlines()[_OFFSETS_LINE:]
    except FileNotFoundError:  # Spark removes old files
        return []
    values = (json.loads(line) for line in lines if line.strip() not in {"", _NONE})
    return [
        Position.from_json(value)
        for value in values
        if isinstance(value, dict) and all(isinstance(offsets, dict) for offsets in value.values())
    ]


def _together(offsets: Iterable[Offsets]) -> dict[TopicPartition, int]:
    return {partition: offset for of_source in offsets for partition, offset in of_source.items()}
