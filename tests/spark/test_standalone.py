"""A packed pipeline on a Spark cluster of three workers, one of which is killed in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from headrace.client.records.one_by_one import Record, Writer
from spark.standalone import Standalone
from wire.confluent import make_topic
from wire.process import BrokerProcess

TIMEOUT_S: Final = 240.0
BEFORE, AFTER = 2_000, 2_000
PIPELINE: Final = """
from headrace.pipeline import Delta, Json, Pipeline

numbers = Pipeline("numbers")
numbers.source("given", topic="standalone-numbers", decode=Json("n bigint"), bad_rows="fail")


@numbers.sink(Delta({table!r}), every="1 second")
def kept(given):
    return given.select("n").repartition(4)
"""


@pytest.mark.long
def test_a_pipeline_survives_a_worker_that_is_killed(broker: BrokerProcess, tmp_path: Path) -> None:
    table = tmp_path / "table"
    (tmp_path / "numbers.py").write_text(PIPELINE.format(table=str(table)))
    make_topic(broker.bootstrap, "standalone-numbers", partitions=4)
    pack(tmp_path, "numbers.py", "numbers.tar.gz")
    with Standalone(tmp_path, workers=3) as cluster:
        running = _run(cluster.master, broker.bootstrap, tmp_path)
        try:
            _write(broker.bootstrap, range(BEFORE))
            _wait(running, tmp_path, lambda: bool(_rows(table)))
            _write(broker.bootstrap, range(BEFORE, BEFORE + AFTER // 2))
            cluster.kill_worker(0)
            _write(broker.bootstrap, range(BEFORE + AFTER // 2, BEFORE + AFTER))
            _wait(running, tmp_path, lambda: len(_rows(table)) >= BEFORE + AFTER)
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(TIMEOUT_S)
    assert sorted(_rows(table)) == list(range(BEFORE + AFTER))


def pack(directory: Path, file: str, archive: str) -> None:
    """Pack a pipeline for machines that have the packages."""
    headrace = str(Path(sys.executable).with_name("headrace"))
    subprocess.run(
        [headrace, "pipeline", "pack", file, "-o", archive, "--no-packages"], cwd=directory, check=True
    )


def _run(master: str, bootstrap: str, directory: Path) -> subprocess.Popen[bytes]:
    headrace = str(Path(sys.executable).with_name("headrace"))
    command = [headrace, "pipeline", "run", "numbers.py", "--master", master]
    settings = ["--environment", "numbers.tar.gz", "--set", "spark.executor.memory=512m"]
    settings += ["--bootstrap", bootstrap]
    with (directory / "run.log").open("wb") as log:
        return subprocess.Popen(
            [*command, *settings], cwd=directory, env=dict(os.environ), stdout=log, stderr=subprocess.STDOUT
        )


def _write(bootstrap: str, numbers: range) -> None:
    writer = Writer(bootstrap, "standalone-numbers")
    for number in numbers:
        writer.write(Record(key=str(number).encode(), value=json.dumps({"n": number}).encode()))
    writer.flush()


def _rows(table: Path) -> list[int]:
    try:
        found: list[int] = DeltaTable(str(table)).to_pyarrow_table()["n"].to_pylist()
    except TableNotFoundError:
        return []
    return found


def _wait(running: subprocess.Popen[bytes], directory: Path, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        said = (directory / "run.log").read_text(errors="replace")
        assert running.poll() is None, said
        assert time.monotonic() < deadline, said
        time.sleep(0.2)
