"""What `headrace pipeline run` prints when something ends: a line that says what, and no traceback."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from headrace.testing import Cluster
from spark.pipeline_process import TIMEOUT_S, PipelineProcess, write_numbers
from wire.confluent import make_topic

pytestmark = pytest.mark.extended

PIPELINE: Final = """
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headrace.pipeline import Json, Pipeline, Restart, Topic

HERE = Path(__file__).parent
pipeline = Pipeline("numbers", restart=Restart(limit=50, backoff_s=0))
pipeline.source("given", topic="numbers", decode=Json("n bigint"))


def failing(n):
    if (HERE / "fail").exists():
        raise ValueError("no luck")
    while (HERE / "wait").exists():
        time.sleep(0.1)
    return n


@pipeline.sink(Topic("out"))
def out(given: DataFrame) -> DataFrame:
    return given.select(F.udf(failing, "long")("n").alias("n"))
"""


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "numbers.py").write_text(PIPELINE)
    with Cluster(brokers=1) as cluster:
        make_topic(cluster.bootstrap, "numbers")
        write_numbers(cluster.bootstrap, "numbers", range(10))
        yield cluster.bootstrap


def running(directory: Path, bootstrap: str) -> PipelineProcess:
    arguments = ("numbers.py", "--master", "local[2]")
    return PipelineProcess(directory, *arguments, variables={"HEADRACE_BOOTSTRAP": bootstrap})


def test_a_failed_batch_and_the_end_of_java_are_a_line_each(tmp_path: Path, bootstrap: str) -> None:
    (tmp_path / "fail").touch()
    pipeline = running(tmp_path, bootstrap)
    try:
        pipeline.wait_until(lambda: "numbers.out restarts (restart 1): " in pipeline.output)
        (tmp_path / "fail").unlink()
        pipeline.wait_until(lambda: "numbers.out batch 0: 10 rows in, 10 out" in pipeline.output)
        (java,) = (each for each in children(pipeline.process.pid) if "java" in command(each))
        os.kill(java, signal.SIGKILL)
        assert pipeline.process.wait(TIMEOUT_S) == 1
    finally:
        pipeline.end()

    output = pipeline.output
    assert "Traceback" not in output
    killed = f"process {java}, the Java of Spark, was killed by SIGKILL"
    assert output.splitlines()[-1] == f"headrace: {killed}"
    for query in ("numbers.out", "numbers.given.dead-letters"):
        assert f"{query} failed: {killed}\n" in output
    for line in output.splitlines():
        assert line.startswith(("created topic ", "pipeline numbers ", "numbers.", "headrace: ")), output


@pytest.mark.long
def test_a_batch_that_is_not_finished_after_a_minute_is_a_line(tmp_path: Path, bootstrap: str) -> None:
    pipeline = running(tmp_path, bootstrap)
    try:
        pipeline.wait_until(lambda: "numbers.out batch 0: 10 rows in, 10 out" in pipeline.output)
        (tmp_path / "wait").touch()
        write_numbers(bootstrap, "numbers", range(10))
        offsets = tmp_path / ".headrace/numbers/checkpoints/numbers.given.shared/offsets/1"
        pipeline.wait_until(offsets.exists)
        pipeline.process.send_signal(signal.SIGTERM)
        assert pipeline.process.wait(TIMEOUT_S) == 0, pipeline.output
    finally:
        (tmp_path / "wait").unlink()
        pipeline.end()

    unfinished = "numbers.given.shared: its batch was not finished within 60 s; the next run repeats it"
    assert f"headrace: {unfinished}\n" in pipeline.output
    assert "Traceback" not in pipeline.output


def children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=True)
    return [int(each) for each in found.stdout.split()]


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode()
