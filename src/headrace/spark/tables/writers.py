"""Spark's writers for tables of all formats: tasks write files, the driver makes one commit."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from headrace.spark.batch import Batch, BatchMessage, batch_of, current_batch

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)


@dataclass
class WrittenFiles(BatchMessage):
    """The message of a task to the driver: the files that it has written, and their batch."""

    files: Sequence[Any]  # of a type of the format


class Sink(ABC):
    """A table for rows of a schema, created on the driver, pickled for tasks, recreated for the commit."""

    @abstractmethod
    def write(self, batches: "Iterator[pa.RecordBatch]") -> Sequence[Any]:
        """Write all rows to files, which are not part of the table yet; called on executors."""

    @abstractmethod
    def commit(self, files: Sequence[Any], batch: Batch | None) -> None:
        """Add the files to the table in one commit, unless the batch has been committed already."""

    @abstractmethod
    def remove(self, files: Sequence[Any]) -> None:
        """Remove files that are not part of the table."""


class BatchWriter(DataSourceArrowWriter):
    """`df.write`, mode append or overwrite; a write with a `batch` is skipped when it is repeated."""

    def __init__(self, sink: Sink, batch: Batch | None = None) -> None:
        self._sink = sink
        self._batch = batch

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WrittenFiles:
        return WrittenFiles(self._sink.write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.commit(files_of(messages), batch=self._batch)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _abort(self._sink, messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream`, output mode append or complete."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WrittenFiles:
        return WrittenFiles(self._sink.write(iterator), batch=current_batch())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._sink.commit(files_of(messages), batch_of(messages, batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        _abort(self._sink, messages)


def _abort(sink: Sink, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Remove the files of the tasks, unless the commit has failed.

    A commit may have succeeded although its answer was lost: then the files are part of the table. Otherwise
    they only take up space.
    """
    files = files_of(messages)
    if None in messages:
        sink.remove(files)
    elif files:
        logger.warning("the commit has failed; %d files are kept, in case they were committed", len(files))


def files_of(messages: Iterable[WriterCommitMessage | None]) -> list[Any]:
    return [file for message in messages if isinstance(message, WrittenFiles) for file in message.files]
