"""Programs that write to one table at the same time, each in a process of its own."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from subprocesses import environment_with_tests

TIME_LIMIT_S: Final = 240
BATCHES: Final = 12


def delta_compactor(path: str) -> None:
    """Compact the table with deltalake again and again, until standard input is closed."""
    from deltalake import DeltaTable  # noqa: PLC0415
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    closed = _watch_input()
    while not closed():
        try:
            DeltaTable(path).optimize.compact()
        except (DeltaError, OSError):  # there is no table yet, or somebody else was first
            time.sleep(0.01)


def delta_maintainer(path: str) -> None:
    """Do with deltalake all that others do to a table, without any retention, until input is closed."""
    from deltalake import DeltaTable  # noqa: PLC0415
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    closed = _watch_input()
    while not closed():
        try:
            table = DeltaTable(path)
            table.optimize.compact()
            # Without `full` it removes only files that a commit has removed: none of uncommitted batches.
            table.vacuum(0, dry_run=False, enforce_retention_duration=False)
            table.create_checkpoint()
        except (DeltaError, OSError):  # somebody else was first
            time.sleep(0.01)


def iceberg_maintainer(settings: str) -> None:
    """Expire all snapshots but the current one with pyiceberg, and delete what nobody refers to."""
    from datetime import datetime  # noqa: PLC0415

    from pyiceberg.catalog import load_catalog  # noqa: PLC0415
    from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415

    given = json.loads(settings)
    catalog = load_catalog(
        "default", **{k.removeprefix("catalog."): v for k, v in given.items() if k != "table"}
    )
    closed = _watch_input()
    while not closed():
        table = catalog.load_table(given["table"])
        if len(table.snapshots()) < 2:
            time.sleep(0.05)
            continue
        try:
            table.maintenance.expire_snapshots().older_than(datetime.now()).commit()  # noqa: DTZ005  pyiceberg's
        except CommitFailedException:  # somebody else was first
            time.sleep(0.01)


def delta_sink(path: str, query: str, compact_every: str) -> None:
    """Write BATCHES batches of one row each, as the driver of a query does."""
    import pyarrow as pa  # noqa: PLC0415
    from pyspark.sql.types import LongType, StructField, StructType  # noqa: PLC0415

    from headrace.spark.batch import Batch  # noqa: PLC0415
    from headrace.spark.tables.delta.sink import DeltaSink  # noqa: PLC0415
    from headrace.spark.tables.options import DeltaOptions  # noqa: PLC0415

    schema = StructType([StructField("id", LongType())])
    options = DeltaOptions(path=path, compact_every=int(compact_every))
    for n in range(BATCHES):
        sink = DeltaSink(options, schema, overwrite=False)
        rows = pa.record_batch({"id": pa.array([int(query) * BATCHES + n], pa.int64())})
        sink.commit(sink.write(iter([rows])), Batch(query, n))


def iceberg_sink(settings: str, query: str, compact_every: str) -> None:
    """The same for an Iceberg table."""
    import pyarrow as pa  # noqa: PLC0415
    from pyspark.sql.types import LongType, StructField, StructType  # noqa: PLC0415

    from headrace.spark.batch import Batch  # noqa: PLC0415
    from headrace.spark.tables.iceberg.sink import IcebergSink  # noqa: PLC0415
    from headrace.spark.tables.options import IcebergOptions  # noqa: PLC0415

    schema = StructType([StructField("id", LongType())])
    options = IcebergOptions.of(json.loads(settings) | {"compactEvery": compact_every})
    for n in range(BATCHES):
        sink = IcebergSink(options, schema, overwrite=False)
        rows = pa.record_batch({"id": pa.array([int(query) * BATCHES + n], pa.int64())})
        sink.commit(sink.write(iter([rows])), Batch(query, n))


def _watch_input() -> Any:
    import select  # noqa: PLC0415

    deadline = time.monotonic() + TIME_LIMIT_S
    return lambda: bool(select.select([sys.stdin], [], [], 0)[0]) or time.monotonic() > deadline


def start(program: str, *arguments: str, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "spark.table_writers", program, *arguments],
        env=environment_with_tests(),
        stdin=stdin,
    )


@contextmanager
def beside(program: str, *arguments: str) -> Iterator[None]:
    """Run a program until the block is left; it must not have failed."""
    with start(program, *arguments, stdin=subprocess.PIPE) as process:
        try:
            yield
            assert process.poll() is None, "it has ended early"
            process.communicate(timeout=TIME_LIMIT_S)
            assert process.returncode == 0
        finally:
            process.kill()


def run_together(*programs: tuple[str, ...]) -> None:
    """Run programs at the same time to their ends; none may fail."""
    processes = [start(*each) for each in programs]
    try:
        assert [each.wait(TIME_LIMIT_S) for each in processes] == [0] * len(programs)
    finally:
        for each in processes:
            each.kill()
            each.wait()


if __name__ == "__main__":
    programs = (delta_compactor, delta_maintainer, delta_sink, iceberg_maintainer, iceberg_sink)
    {each.__name__: each for each in programs}[sys.argv[1]](*sys.argv[2:])
