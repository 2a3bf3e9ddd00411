"""Drivers of a pipeline with shared sinks, each killed with all its processes while it writes."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable

from cluster.waiting import until
from headrace.testing import Cluster
from spark.feeds import TESTS
from wire.confluent import make_topic, read, send

KILLS: Final = 3
RECORDS: Final = 6_000
BAD_EVERY: Final = 100
TIMEOUT_S: Final = 500


@contextmanager
def driver(root: Path, bootstrap: str, run: int, until_when: str) -> Iterator[subprocess.Popen[bytes]]:
    with (root / f"driver-{run}.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "spark.shared_driver", str(root / f"run-{run}"), bootstrap, until_when],
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # it has ended
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def batches(root: Path) -> int:
    """How many batches Spark has noted as committed."""
    commits = root / "state" / "kills" / "checkpoints" / "kills.numbers.shared" / "commits"
    return len([each for each in commits.glob("*") if each.name.isdecimal()])


def has_committed(root: Path, done: int, process: subprocess.Popen[bytes]) -> bool:
    return batches(root) >= done or process.poll() is not None


@pytest.mark.long
def test_drivers_killed_in_turn_leave_every_record_once_in_every_sink(tmp_path: Path) -> None:
    chance = random.Random(7)
    values = [b"bad" if n % BAD_EVERY == 0 else json.dumps({"number": n}).encode() for n in range(RECORDS)]
    good = [n for n in range(RECORDS) if n % BAD_EVERY]
    with Cluster(brokers=1) as cluster:
        bootstrap = cluster.bootstrap
        for topic in ("source", "target", "bad"):
            make_topic(bootstrap, topic, partitions=2)
        assert not [error for error, _ in send(bootstrap, "source", [{"value": v} for v in values]) if error]
        for run in range(KILLS):
            done = batches(tmp_path) + chance.randrange(1, 3)
            with driver(tmp_path, bootstrap, run, "killed") as process:
                until(
                    f"driver {run} has committed batch {done}",
                    partial(has_committed, tmp_path, done, process),
                    timeout_s=TIMEOUT_S,
                )
                assert process.poll() is None, (tmp_path / f"driver-{run}.log").read_text()
        with driver(tmp_path, bootstrap, KILLS, "end") as process:
            assert process.wait(TIMEOUT_S) == 0, (tmp_path / f"driver-{KILLS}.log").read_text()
        copied, bad = (
            read(bootstrap, topic, partitions=range(2), isolation_level="read_committed")
            for topic in ("target", "bad")
        )

    assert sorted(json.loads(each.value())["number"] for each in copied) == good
    assert [each.value() for each in bad] == [b"bad"] * (RECORDS // BAD_EVERY)
    table = DeltaTable(str(tmp_path / "table")).to_pyarrow_table(columns=["number"])
    assert sorted(table.column("number").to_pylist()) == good
