"""The batch of a streaming query that a sink writes, by ids that are the same when Spark repeats it."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of a streaming query, which has the same ids when it is repeated."""

    query_id: str
    batch_id: int


@dataclass(kw_only=True)
class BatchMessage(WriterCommitMessage):
    """The message of a task to the driver, with the batch that the task belongs to."""

    batch: Batch | None = None


def current_batch() -> Batch | None:
    """Return the batch of this task, or None outside of a streaming query.

    Spark does not pass the ids to a sink's tasks, but has them among the properties of the job.
    """
    context = TaskContext.get()
    query_id = context.getLocalProperty("sql.streaming.queryId") if context else None
    batch_id = context.getLocalProperty("streaming.sql.batchId") if context else None
    return None if query_id is None or batch_id is None else Batch(query_id, int(batch_id))


def batch_of(messages: Iterable[WriterCommitMessage | None], batch_id: int) -> Batch | None:
    """Return the batch of all tasks; None if there was no task."""
    found = {each.batch for each in messages if isinstance(each, BatchMessage)}
    if not found:
        return None
    assert len(found) == 1, found
    batch = found.pop()
    # Without ids a repeated batch would look like a new one.
    assert batch is not None, "Spark did not set the ids of the batch"
    assert batch.batch_id == batch_id, (batch, batch_id)
    return batch
