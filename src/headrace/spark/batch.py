"""A batch that a sink writes: tasks write, and the driver makes all of it visible in one commit."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

if TYPE_CHECKING:
    import pyarrow as pa

    Messages = list[WriterCommitMessage | None]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of a streaming query, which has the same ids when Spark repeats it."""

    query_id: str
    batch_id: int


@dataclass
class TaskMessage(WriterCommitMessage):
    """The message of a task to the driver: what it has written, and the batch that it belongs to."""

    written: Sequence[Any]
    batch: Batch | None = None


class Sink(ABC):
    """Where rows go. It is created on the driver, pickled for tasks, and recreated for the commit."""

    @abstractmethod
    def write(self, batches: "Iterator[pa.RecordBatch]") -> Sequence[Any]:
        """Write all rows, and return what the driver has to know; called on executors."""

    @abstractmethod
    def commit(self, written: Sequence[Any], batch: Batch | None) -> None:
        """Make visible what the tasks have written, unless the batch has been committed already."""

    @abstractmethod
    def abort(self, written: Sequence[Any], batch: Batch | None, *, is_complete: bool) -> None:
        """Clean up after a failed task, or after a failed commit of a batch that is complete."""


class BatchWriter(DataSourceArrowWriter):
    """`df.write`; a write with a `batch` is skipped when it is repeated."""

    def __init__(self, sink: Sink, batch: Batch | None = None) -> None:
        self._sink = sink
        self._batch = batch

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskMessage:
        return TaskMessage(self._sink.write(iterator))

    def commit(self, messages: "Messages") -> None:
        self._sink.commit(_written(messages), self._batch)

    def abort(self, messages: "Messages") -> None:
        self._sink.abort(_written(messages), self._batch, is_complete=None not in messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream`."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskMessage:
        return TaskMessage(self._sink.write(iterator), current_batch())

    def commit(self, messages: "Messages", batchId: int) -> None:  # noqa: N803
        self._sink.commit(_written(messages), _batch_of(messages, batchId))

    def abort(self, messages: "Messages", batchId: int) -> None:  # noqa: N803
        batch = _batch_of(messages, batchId)
        self._sink.abort(_written(messages), batch, is_complete=None not in messages)


def current_batch() -> Batch | None:
    """Return the batch of this task, or None outside of a streaming query.

    Spark does not pass the ids to a sink's tasks, but has them among the properties of the job.
    """
    context = TaskContext.get()
    query_id = context.getLocalProperty("sql.streaming.queryId") if context else None
    batch_id = context.getLocalProperty("streaming.sql.batchId") if context else None
    return None if query_id is None or batch_id is None else Batch(query_id, int(batch_id))


def _written(messages: "Messages") -> list[Any]:
    return [item for message in messages if isinstance(message, TaskMessage) for item in message.written]


def _batch_of(messages: "Messages", batch_id: int) -> Batch | None:
    """Return the batch of all tasks; None if there was no task."""
    found = {message.batch for message in messages if isinstance(message, TaskMessage)}
    if not found:
        return None
    assert len(found) == 1, found
    batch = found.pop()
    # Without ids a repeated batch would look like a new one.
    assert batch is not None, "Spark did not set the ids of the batch"
    assert batch.batch_id == batch_id, (batch, batch_id)
    return batch
