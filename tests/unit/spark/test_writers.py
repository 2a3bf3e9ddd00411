from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from headrace.spark.batch import Batch, BatchWriter, StreamWriter, TaskMessage
from headrace.spark.tables.files import TableSink

FIRST = Batch("query", 7)


class Ledger(TableSink):
    """A sink that notes what it is asked for."""

    def __init__(self) -> None:
        self.done: list[tuple[str, Any]] = []

    def write(self, batches: Iterator[Any]) -> Sequence[Any]:
        return list(batches)

    def commit(self, written: Sequence[Any], batch: Batch | None) -> None:
        self.done.append(("commit", (written, batch)))

    def remove(self, files: Sequence[Any]) -> None:
        self.done.append(("remove", files))


def test_the_files_of_all_tasks_are_one_commit() -> None:
    ledger = Ledger()
    StreamWriter(ledger).commit([TaskMessage(files, batch=FIRST) for files in (["a", "b"], [], ["c"])], 7)

    assert ledger.done == [("commit", (["a", "b", "c"], FIRST))]


def test_a_batch_that_the_tasks_do_not_agree_on_is_not_committed() -> None:
    second = Batch("query", 8)
    disagreeing = [TaskMessage([], batch=FIRST), TaskMessage([], batch=second)]
    for messages in (disagreeing, [TaskMessage(["a"])]):
        with pytest.raises(AssertionError):
            StreamWriter(Ledger()).commit(list(messages), 7)


def test_when_a_task_has_failed_the_files_of_the_others_are_removed() -> None:
    ledger = Ledger()
    StreamWriter(ledger).abort([TaskMessage(["a"], batch=FIRST), None], 7)
    BatchWriter(ledger).abort([None, TaskMessage(["b"])])

    assert ledger.done == [("remove", ["a"]), ("remove", ["b"])]


def test_when_the_commit_has_failed_the_files_stay_for_they_may_be_in_the_table() -> None:
    ledger = Ledger()
    StreamWriter(ledger).abort([TaskMessage(["a"], batch=FIRST)], 7)

    assert ledger.done == []
