"""A Spark driver that merges files of change events into a table, and dies at a chosen commit."""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace.spark.batch import Batch
from headrace.spark.merge.merge import upsert_batches
from headrace.spark.merge.table import TableFile, TableVersion
from spark.change_events import EVENTS
from spark.merged_tables import FORMATS, Format
from spark.session import spark_session
from spark.upserting import RULES


def die_at(format_: Format, commit: int, *, committed: bool, processes: Sequence[int]) -> None:
    """Have the processes die right before commit number `commit` of this driver, or right after it."""
    replace = format_.version.replace
    count = 0

    def dying(
        version: TableVersion, removed: Sequence[TableFile], added: Sequence[Any], batch: Batch
    ) -> bool:
        nonlocal count
        done = replace(version, removed, added, batch) if committed or count != commit else False
        if count == commit:
            for each in processes:
                os.kill(each, signal.SIGKILL)
        count += 1
        return done

    pytest.MonkeyPatch().setattr(format_.version, "replace", dying)


def run(format_: Format, root: Path, session: Path, commit: int | None, *, committed: bool) -> None:
    session.mkdir()
    with spark_session(session) as spark:
        if commit is not None:
            gateway = spark.sparkContext._gateway
            assert gateway is not None
            die_at(format_, commit, committed=committed, processes=[gateway.proc.pid, os.getpid()])
        changes = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).json(str(root / "feed"))
        target = format_.target(root / "table", compactEvery=3, targetFileBytes=4000)
        writer = changes.writeStream.foreachBatch(upsert_batches(*target, RULES))
        checkpoint = writer.option("checkpointLocation", str(root / "checkpoint"))
        checkpoint.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    kind, directory, name, number, when = sys.argv[1:]
    run(
        FORMATS[kind],
        Path(directory),
        Path(directory) / name,
        int(number) if number != "never" else None,
        committed=when == "after",
    )
