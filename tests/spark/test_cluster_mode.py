"""A driver that runs on a standalone cluster, is killed, and is started again by the cluster."""

import os
import signal
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from spark.pipeline_process import TIMEOUT_S, headrace, write_numbers
from spark.standalone import Standalone
from wire.confluent import make_topic
from wire.process import BrokerProcess

TOPIC: Final = "cluster-mode-numbers"
PIPELINE: Final = """
from headrace.pipeline import Delta, Json, Pipeline

numbers = Pipeline("numbers")
numbers.source("given", topic="{topic}", decode=Json("n bigint"), bad_rows="fail")


@numbers.sink(Delta({table!r}), every="1 second")
def kept(given):
    return given.select("n")
"""


@pytest.mark.long
def test_a_driver_that_is_killed_is_started_again_and_continues(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    table, state = tmp_path / "table", tmp_path / "state"
    (tmp_path / "numbers.py").write_text(PIPELINE.format(topic=TOPIC, table=str(table)))
    make_topic(broker.bootstrap, TOPIC, partitions=2)
    headrace(tmp_path, "pack", "numbers.py", "-o", "numbers.tar.gz", "--no-packages")
    environment = tmp_path / "environment"
    with tarfile.open(tmp_path / "numbers.tar.gz") as archive:
        archive.extractall(environment, filter="data")

    def rows() -> list[int]:
        try:
            found: list[int] = DeltaTable(str(table)).to_pyarrow_table()["n"].to_pylist()
        except TableNotFoundError:
            return []
        return found

    with Standalone(tmp_path, workers=3) as cluster:
        headrace(
            tmp_path,
            "run",
            "numbers.py",
            *("--master", cluster.master, "--deploy-mode", "cluster"),
            *("--environment", str(environment), "--state", str(state), "--bootstrap", broker.bootstrap),
            *("--set", "spark.executor.memory=512m", "--set", "spark.driver.memory=512m"),
            *("--set", "spark.cores.max=2"),
        )
        write_numbers(broker.bootstrap, TOPIC, range(1000))
        _wait(tmp_path, lambda: bool(rows()))
        first = _driver(state)
        write_numbers(broker.bootstrap, TOPIC, range(1000, 2000))
        os.kill(_parent(first), signal.SIGKILL)  # Java, which the cluster has started; Python ends with it
        _wait(tmp_path, lambda: not Path(f"/proc/{first}").exists())
        write_numbers(broker.bootstrap, TOPIC, range(2000, 3000))
        _wait(tmp_path, lambda: len(rows()) >= 3000)
        assert _driver(state) != first
        headrace(tmp_path, "stop", "numbers", "--state", str(state))
    assert sorted(rows()) == list(range(3000))


def _driver(state: Path) -> int:
    """Return the process that runs the pipeline."""
    return int((state / "numbers" / "running").read_text().split()[0])


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _wait(directory: Path, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        if time.monotonic() > deadline:
            logs = [*directory.glob("worker-*.log"), *directory.glob("work-*/driver-*/std*")]
            pytest.fail("\n".join(f"{each}:\n{each.read_text()[-3000:]}" for each in logs))
        time.sleep(0.2)
