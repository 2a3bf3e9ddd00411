"""What a task tells the driver: which files it has written, and for which batch of which query."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of a streaming query; repeated after a crash, it has the same ids."""

    query_id: str
    batch_id: int


@dataclass
class Written(WriterCommitMessage):
    files: Sequence[Any]  # as the format describes its files
    batch: Batch | None = None


def current_batch() -> Batch | None:
    """The batch that this task belongs to, or None if the query is not a streaming one.

    Spark hands a sink's tasks no ids, but keeps them among the properties of the job.
    """
    context = TaskContext.get()
    query_id = context.getLocalProperty("sql.streaming.queryId") if context else None
    batch_id = context.getLocalProperty("streaming.sql.batchId") if context else None
    return None if query_id is None or batch_id is None else Batch(query_id, int(batch_id))


def files_of(messages: Iterable[WriterCommitMessage | None]) -> list[Any]:
    return [file for each in _written(messages) for file in each.files]


def batch_of(messages: Iterable[WriterCommitMessage | None], batch_id: int) -> Batch | None:
    """The batch that all tasks were part of; None if there was no task."""
    found = {each.batch for each in _written(messages)}
    assert len(found) <= 1, found
    batch = found.pop() if found else None
    assert batch is None or batch.batch_id == batch_id, (batch, batch_id)
    return batch


def _written(messages: Iterable[WriterCommitMessage | None]) -> Iterator[Written]:
    return (each for each in messages if isinstance(each, Written))  # a task that failed sent None
