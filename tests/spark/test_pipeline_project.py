"""A project for triggered runs, as `init` makes it, is checked, run twice with what is new, and stopped."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from wire.confluent import make_topic, read, send
from wire.process import BrokerProcess

TIMEOUT_S: Final = 600


def start(broker: BrokerProcess, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "headrace", *arguments],
        env=os.environ | {"HEADRACE_BOOTSTRAP": broker.bootstrap},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def headrace(broker: BrokerProcess, *arguments: str) -> str:
    with start(broker, *arguments) as process:
        try:
            output, errors = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
    assert (process.returncode, errors) == (0, ""), output
    return output


@pytest.mark.long
def test_a_project_runs_twice_and_writes_every_order_once(broker: BrokerProcess, tmp_path: Path) -> None:
    headrace(broker, "pipeline", "init", "fair", "--triggered", "--directory", str(tmp_path))
    for topic in ("fair-orders", "fair-large-orders"):
        make_topic(broker.bootstrap, topic)
    project = str(tmp_path / "fair")
    assert headrace(broker, "pipeline", "check", project).endswith(
        f"ok  {project}: Spark has found nothing wrong\n"
    )
    for first in (1, 3):
        orders = [{"id": str(id_), "item": "safe", "price": 99.0 + id_} for id_ in (first, first + 1)]
        send(broker.bootstrap, "fair-orders", [{"value": json.dumps(order)} for order in orders])
        assert "Run is COMPLETED" in headrace(broker, "pipeline", "run", project)

    written = [json.loads(record.value())["id"] for record in read(broker.bootstrap, "fair-large-orders")]
    assert written == ["2", "3", "4"]
    assert not (Path.cwd() / "metastore_db").exists()
    assert {path.name for path in (tmp_path / "fair").iterdir()} == {
        ".headrace",
        "spark-pipeline.yml",
        "spark-warehouse",
        "transformations",
    }


def test_a_run_of_a_project_is_stopped(broker: BrokerProcess, tmp_path: Path) -> None:
    headrace(broker, "pipeline", "init", "halt", "--triggered", "--directory", str(tmp_path))
    project = str(tmp_path / "halt")
    with start(broker, "pipeline", "run", project) as process:
        try:
            assert process.stdout is not None
            assert "Loading pipeline spec" in process.stdout.readline()
            assert headrace(broker, "pipeline", "stop", project) == f"stopped halt, process {process.pid}\n"
            assert process.wait(TIMEOUT_S) == 128 + signal.SIGTERM
        finally:
            process.kill()
