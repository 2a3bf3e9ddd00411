"""A stream whose batches a test decides on, and what is needed to let its driver die at a chosen moment."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from spark.session import spark_session
from subprocesses import environment_with_tests

STREAM_TIMEOUT_S: Final = 300
SCHEMA: Final = "id long, name string"


class Feed:
    """A directory of JSON files, one batch each."""

    def __init__(self, root: Path) -> None:
        self.files = root / "feed"
        self.checkpoint = root / "checkpoint"
        self.files.mkdir(parents=True, exist_ok=True)

    def add(self, ids: Iterable[int]) -> None:
        """Another batch, of rows with these ids."""
        lines = [json.dumps({"id": each, "name": f"row {each}"}) for each in ids]
        written = self.files / f"{len(list(self.files.iterdir())):06}.json"
        written.write_text("\n".join(lines))

    def read(self, spark: SparkSession, schema: str = SCHEMA) -> DataFrame:
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.files)).repartition(2)


def drain(table: DataFrame, feed: Feed, sink: str, options: Mapping[str, Any], mode: str = "append") -> None:
    """Run the query over what is there, batch by batch, to the end; its error is raised."""
    writer = table.writeStream.format(sink).outputMode(mode).options(**options)
    query = writer.option("checkpointLocation", str(feed.checkpoint)).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(STREAM_TIMEOUT_S), f"the query into {sink} has not ended"
    finally:
        query.stop()


def dying(sink: type[DataSource], processes: Iterable[int]) -> type[DataSource]:
    """The sink, under the name `dying`, that kills `processes` right after the table has its first batch."""
    killed = list(processes)

    class Dying(sink):  # type: ignore[misc, valid-type]
        @classmethod
        def name(cls) -> str:
            return "dying"

        def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
            writer = super().streamWriter(schema, overwrite)
            commit = writer.commit

            def commit_and_die(messages: list[WriterCommitMessage | None], batch_id: int) -> None:
                commit(messages, batch_id)
                for process in killed:
                    os.kill(process, signal.SIGKILL)
                os._exit(1)

            writer.commit = commit_and_die
            return writer  # type: ignore[no-any-return]

    return Dying


def run_and_die(root: Path, source: type[DataSource], options: Mapping[str, Any]) -> None:
    """Stream the feed of `root` into a table; the driver does not live to note its first batch."""
    with spark_session(root / "session") as spark:
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        spark.dataSource.register(dying(source, [gateway.proc.pid, os.getpid()]))
        feed = Feed(root)
        drain(feed.read(spark), feed, "dying", options)


def killed_after_commit(root: Path, source: type[DataSource], options: Mapping[str, Any]) -> None:
    """Run `run_and_die` as a process of its own."""
    (root / "session").mkdir()
    program = (
        f"from pathlib import Path; from spark.feeds import run_and_die; "
        f"from {source.__module__} import {source.__name__} as source; "
        f"run_and_die(Path({str(root)!r}), source, {dict(options)!r})"
    )
    with (root / "driver.log").open("w") as log:
        driver = subprocess.run(
            [sys.executable, "-c", program],
            env=environment_with_tests(),
            stdout=log,
            stderr=log,  # not a pipe: workers that outlive the driver would hold it open
            timeout=STREAM_TIMEOUT_S,
            check=False,
        )
    assert driver.returncode == -signal.SIGKILL, (root / "driver.log").read_text()
