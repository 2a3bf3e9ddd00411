"""Spark drivers that copy a topic exactly once, each killed with all its processes while it writes."""

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

from cluster.waiting import until
from headrace.testing import Cluster
from spark.feeds import TESTS
from wire.confluent import make_topic, read, send

KILLS: Final = 4
RECORDS: Final = 8_000
PARTITIONS: Final = 3
TIMEOUT_S: Final = 400


@contextmanager
def driver(root: Path, bootstrap: str, run: int, until_when: str) -> Iterator[subprocess.Popen[bytes]]:
    with (root / f"driver-{run}.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "spark.once_driver", str(root / f"run-{run}"), bootstrap, until_when],
            env=os.environ | {"PYTHONPATH": str(TESTS)},
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
    return len([each for each in (root / "checkpoint" / "commits").glob("*") if each.name.isdecimal()])


def has_committed(root: Path, done: int, process: subprocess.Popen[bytes]) -> bool:
    return batches(root) >= done or process.poll() is not None


@pytest.mark.long
def test_drivers_killed_in_turn_leave_every_record_once(tmp_path: Path) -> None:
    chance = random.Random(5)
    with Cluster(brokers=3) as cluster:
        bootstrap = cluster.bootstrap
        make_topic(bootstrap, "source", partitions=PARTITIONS)
        make_topic(bootstrap, "target", partitions=PARTITIONS)
        records = [{"key": b"%d" % n, "value": b"%d" % n} for n in range(RECORDS)]
        assert not [error for error, _ in send(bootstrap, "source", records) if error]
        for run in range(KILLS):
            done = batches(tmp_path) + chance.randrange(1, 4)
            with driver(tmp_path, bootstrap, run, "killed") as process:
                until(
                    f"driver {run} has committed batch {done}",
                    partial(has_committed, tmp_path, done, process),
                    timeout_s=TIMEOUT_S,
                )
                assert process.poll() is None, (tmp_path / f"driver-{run}.log").read_text()
        with driver(tmp_path, bootstrap, KILLS, "end") as process:
            assert process.wait(TIMEOUT_S) == 0, (tmp_path / f"driver-{KILLS}.log").read_text()
        found = read(bootstrap, "target", partitions=range(PARTITIONS), isolation_level="read_committed")

    assert sorted(int(each.value()) for each in found) == list(range(RECORDS))
