"""Popular Python frameworks on Kafka: a small job of each runs unchanged on the test fixture.

Each job writes orders to a topic and computes totals from them: in a group, in a state store with a
changelog, exactly once, or as tasks. They run in processes of their own, with the versions in
requirements/frameworks.
"""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from compat.registry_clients.programs import ClientUnavailable
from frameworks.environments import JOBS, python_with
from headrace.testing import Broker
from support.process import clean_environment

pytestmark = pytest.mark.long

ORDERS: Final = 30
PEOPLE: Final = ("person-0", "person-1", "person-2")
TIMEOUT_S: Final = 200


def run(framework: str, headrace: Broker, directory: Path) -> str:
    """Run a job, which has to succeed, and return what it prints."""
    try:
        python = python_with(framework)
    except ClientUnavailable as reason:
        pytest.skip(f"{framework} cannot be installed: {reason}")
    directory.mkdir()
    done = subprocess.run(
        [str(python), str(JOBS / f"{framework}_job.py"), headrace.bootstrap, str(ORDERS), str(directory)],
        env={name: value for name, value in clean_environment().items() if name != "PYTHONPATH"},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def totals(headrace: Broker) -> dict[str, list[int]]:
    """The totals of each person, in order."""
    found: dict[str, list[int]] = {}
    for record in headrace.records("totals"):
        total = json.loads(record.value or b"")
        found.setdefault(total["person"], []).append(total["total"])
    return found


def counted(runs: int) -> dict[str, list[int]]:
    """What totals are after so many runs that continue each other."""
    return {person: list(range(1, runs * ORDERS // len(PEOPLE) + 1)) for person in PEOPLE}


@pytest.fixture
def broker(headrace: Broker) -> Broker:
    headrace.create_topic("orders", partitions=3)
    return headrace


def test_faststream_adds_up_in_a_group(broker: Broker, tmp_path: Path) -> None:
    run("faststream", broker, tmp_path / "first")

    assert totals(broker) == counted(runs=1)


def test_quix_streams_restores_its_state_and_writes_exactly_once(broker: Broker, tmp_path: Path) -> None:
    run("quixstreams", broker, tmp_path / "first")
    run("quixstreams", broker, tmp_path / "second")  # without the first one's files: from the changelog

    assert totals(broker) == counted(runs=2)
    assert "changelog__quix--orders--default" in {each.name for each in broker.admin.list_topics()}


def test_faust_restores_its_table(broker: Broker, tmp_path: Path) -> None:
    # aiokafka's producer (0.14) knows all topics that exist when it starts. When it meets a new one, it asks
    # for that one alone and forgets the leaders of the others: their batches wait forever. So all exist.
    for topic in ("totals", "faust-job-by-person-changelog"):
        broker.create_topic(topic, partitions=3)
    run("faust", broker, tmp_path / "first")
    run("faust", broker, tmp_path / "second")

    assert totals(broker) == counted(runs=2)


def test_bytewax_reads_to_the_end_of_a_topic(broker: Broker, tmp_path: Path) -> None:
    run("bytewax", broker, tmp_path / "first")

    assert totals(broker) == counted(runs=1)


def test_celery_runs_tasks_from_a_topic(headrace: Broker, tmp_path: Path) -> None:
    printed = run("celery", headrace, tmp_path / "first")

    assert str(sum(2 * number for number in range(ORDERS))) in printed.split()
    assert len(headrace.records("orders")) == ORDERS
    tasks = Counter(
        json.loads(record.value or b"")["headers"]["task"] for record in headrace.records("orders")
    )
    assert tasks == {"__main__.double": ORDERS}
