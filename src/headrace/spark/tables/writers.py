"""What Spark calls to write to a table, whichever format it has: files by tasks, one commit by the driver."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of a streaming query; repeated after a crash, it has the same ids."""

    query_id: str
    batch_id: int


@dataclass
class WrittenFiles(WriterCommitMessage):
    """What a task tells the driver: which files it has written, and for which batch of which query."""

    files: Sequence[Any]  # as the format describes its files
    batch: Batch | None = None


class Sink(ABC):
    """A table that rows of one schema go to. Made on the driver, sent to tasks, made again to commit."""

    @abstractmethod
    def write(self, batches: "Iterator[pa.RecordBatch]") -> Sequence[Any]:
        """Write all rows into files, which are no part of the table yet; on an executor."""

    @abstractmethod
    def commit(self, files: Sequence[Any], batch: Batch | None) -> None:
        """Make the files part of the table, all at once, unless this batch is in it already."""

    @abstractmethod
    def remove(self, files: Sequence[Any]) -> None:
        """Remove files that are no part of the table."""


class BatchWriter(DataSourceArrowWriter):
    """`df.write`, mode append or overwrite."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WrittenFiles:
        return WrittenFiles(self._sink.write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.commit(files_of(messages), batch=None)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _abort(self._sink, messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream`, output mode append or complete."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WrittenFiles:
        return WrittenFiles(self._sink.write(iterator), current_batch())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._sink.commit(files_of(messages), batch_of(messages, batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        _abort(self._sink, messages)


def _abort(sink: Sink, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Remove what the tasks have written, unless it is the commit that has failed.

    That can also happen to a commit that has done its work, of which only the answer was lost: the files may
    be part of the table. Files that are not take up space, and do nothing else.
    """
    files = files_of(messages)
    if None in messages:
        sink.remove(files)
    elif files:
        logger.warning("the commit has failed; %d files stay, in case it has not", len(files))


def current_batch() -> Batch | None:
    """The batch that this task belongs to, or None if the query is not a streaming one.

    Spark hands a sink's tasks no ids, but keeps them among the properties of the job.
    """
    context = TaskContext.get()
    query_id = context.getLocalProperty("sql.streaming.queryId") if context else None
    batch_id = context.getLocalProperty("streaming.sql.batchId") if context else None
    return None if query_id is None or batch_id is None else Batch(query_id, int(batch_id))


def files_of(messages: Iterable[WriterCommitMessage | None]) -> list[Any]:
    return [file for each in messages if isinstance(each, WrittenFiles) for file in each.files]


def batch_of(messages: Iterable[WriterCommitMessage | None], batch_id: int) -> Batch | None:
    """The batch that all tasks were part of; None if there was no task."""
    found = {each.batch for each in messages if isinstance(each, WrittenFiles)}
    if not found:
        return None
    assert len(found) == 1, found
    batch = found.pop()
    # Without ids a repeated batch could not be told from a new one.
    assert batch is not None, "Spark did not tell the tasks which batch they write"
    assert batch.batch_id == batch_id, (batch, batch_id)
    return batch
