"""A project for triggered runs, as `init` makes it, runs twice: the second time with what is new."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from wire.confluent import make_topic, read, send
from wire.process import BrokerProcess

PATIENCE_S: Final = 600


def headrace(broker: BrokerProcess, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "headrace", *arguments],
        env=os.environ | {"HEADRACE_BOOTSTRAP": broker.bootstrap},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@pytest.mark.long
def test_a_project_runs_twice_and_writes_every_order_once(broker: BrokerProcess, tmp_path: Path) -> None:
    headrace(broker, "pipeline", "init", "fair", "--triggered", "--directory", str(tmp_path))
    for topic in ("fair-orders", "fair-large-orders"):
        make_topic(broker.bootstrap, topic)
    for first in (1, 3):
        orders = [{"id": str(each), "item": "safe", "price": 99.0 + each} for each in (first, first + 1)]
        send(broker.bootstrap, "fair-orders", [{"value": json.dumps(each)} for each in orders])
        said = headrace(broker, "pipeline", "run", str(tmp_path / "fair"))
        assert "Run is COMPLETED" in said

    written = [json.loads(each.value())["id"] for each in read(broker.bootstrap, "fair-large-orders")]
    assert written == ["2", "3", "4"]
    assert not (Path.cwd() / "metastore_db").exists()
    assert {each.name for each in (tmp_path / "fair").iterdir()} == {
        ".headrace",
        "spark-pipeline.yml",
        "spark-warehouse",
        "transformations",
    }
