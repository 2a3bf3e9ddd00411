"""`headrace up --brokers 3`: a topic of which nobody has said how many replicas it shall have."""

import os
import signal
from pathlib import Path

from cli.command import Command
from cli.members import wait_until
from support.process import ClusterProcess

RECORDS = [str(number) for number in range(30)]


def test_a_topic_has_three_replicas_whoever_makes_it(cluster: ClusterProcess) -> None:
    headrace = Command(cluster.bootstrap)
    made = headrace.ok("topic", "create", "made", "--partitions", "2")
    assert made.text == "created made: 2 partitions, 3 replicas each\n"
    headrace.ok("produce", "written", "x")  # which makes it
    (partition,) = headrace.ok("topic", "describe", "written", "--json").json["partitions"]
    assert sorted(partition["replicas"]) == [1, 2, 3]


def test_a_topic_that_was_made_by_default_survives_the_kill_of_its_leader(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        headrace = Command(cluster.bootstrap)
        headrace.ok("topic", "create", "orders")
        headrace.ok("produce", "orders", *RECORDS)
        leader = _leader(headrace, "orders")
        _keep_dead(cluster, f"broker-{leader}")

        wait_until(lambda: _leader(headrace, "orders") not in {None, leader})
        assert headrace.ok("consume", "orders", "--exit-at-end").text.split() == RECORDS
        headrace.ok("produce", "orders", "more")
        assert headrace.ok("consume", "orders", "--exit-at-end").text.split() == [*RECORDS, "more"]


def test_the_environment_may_say_otherwise(tmp_path: Path) -> None:
    otherwise = {"HEADRACE_DEFAULT_REPLICATION_FACTOR": "1"}
    with ClusterProcess(tmp_path, brokers=2, environment=otherwise) as cluster:
        made = Command(cluster.bootstrap).ok("topic", "create", "orders")
        assert made.text == "created orders: 1 partition, 1 replica each\n"


def _leader(headrace: Command, topic: str) -> int | None:
    """None while nobody leads it, or nobody can say who does."""
    described = headrace("topic", "describe", topic, "--json")
    return described.json["partitions"][0]["leader"] if described.status == 0 else None


def _keep_dead(cluster: ClusterProcess, member: str) -> None:
    """Kill it; it cannot be started again, as there is no directory for its log."""
    logs = cluster.data / "logs"
    logs.rename(cluster.data / "elsewhere")
    logs.touch()
    os.kill(cluster.members[member], signal.SIGKILL)
