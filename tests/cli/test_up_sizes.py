"""`headrace up` on a directory that was run with more or fewer brokers, or with another ZooKeeper."""

import os
import signal
from pathlib import Path

import pytest

from cli.command import Command
from cli.members import wait_until
from headrace.coordination.errors import ZooKeeperUnavailable
from headrace.coordination.zookeeper import find_jars
from headrace.system.java import NoJava, find_java
from support.process import ClusterProcess, ServerProcess, UpProcess

pytestmark = pytest.mark.extended


def test_a_cluster_grows_and_its_topics_stay_where_they_are(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as one:
        Command(one.bootstrap).ok("produce", "orders", "one", "two")
        one.stop()
    with ClusterProcess(tmp_path) as three:
        headrace = Command(three.bootstrap)
        assert "new and empty: broker 2, 3" in three.log.read_text()
        assert headrace.ok("consume", "orders", "--exit-at-end").text == "one\ntwo\n"
        described = headrace.ok("topic", "describe", "orders", "--json").json
        assert [each["replicas"] for each in described["partitions"]] == [[1]]
        headrace.ok("cluster", "reassign", "--topic", "orders", "--to", "2,3", "--wait")
        headrace.ok("produce", "orders", "three")
        assert headrace.ok("consume", "orders", "--exit-at-end").text == "one\ntwo\nthree\n"


def test_a_broker_with_replicas_cannot_be_left_out_and_one_that_was_drained_can(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as three:
        headrace = Command(three.bootstrap)
        headrace.ok("topic", "create", "orders", "--partitions", "4", "--replicas", "2")
        headrace.ok("produce", "orders", *(str(number) for number in range(20)))
        headrace.ok("cluster", "drain", "3", "--wait")
        three.stop()

    refused = Command("")("up", "--data", str(tmp_path / "data"), "--port=0")
    assert refused.status == 1
    assert refused.err.splitlines()[-1] == (
        f"headrace: {tmp_path / 'data'} has been run with broker 2, which has 4 replicas "
        "(orders-0, orders-1, orders-2, ...): start with --brokers 2, and move them with "
        "`headrace cluster drain 2 --wait` before you leave it out"
    )
    with ClusterProcess(tmp_path, brokers=2) as two:
        headrace = Command(two.bootstrap)
        assert len(headrace.ok("cluster", "status", "--json").json["brokers"]) == 2
        found = headrace.ok("consume", "orders", "--exit-at-end").text.split()
        assert sorted(map(int, found)) == list(range(20))


def test_several_brokers_use_the_zookeeper_they_are_given(tmp_path: Path) -> None:
    arguments = ["coordinator", f"--data={tmp_path / 'zookeeper'}", "--port=0", "--no-sync"]
    with (
        ServerProcess(arguments, tmp_path / "coordinator.log") as zookeeper,
        ClusterProcess(tmp_path, brokers=2, arguments=["--zookeeper", zookeeper.address]) as cluster,
    ):
        assert set(cluster.members) == {"broker-1", "broker-2"}
        Command(cluster.bootstrap).ok("topic", "create", "orders", "--replicas", "2")
        cluster.kill_all()
        cluster.start()  # each broker is the only one that can be at its address
        assert Command(cluster.bootstrap).ok("topic", "list", "--json").json[0]["name"] == "orders"


def test_a_zookeeper_that_does_not_answer_is_named(tmp_path: Path) -> None:
    refused = Command("")(
        *("up", "--data", str(tmp_path), "--brokers=2", "--port=0", "--zookeeper=127.0.0.1:1"),
        *("--set", "zookeeper.connection.timeout.ms=300"),
    )
    assert refused.status == 1
    assert "cannot run: no ZooKeeper responds at 127.0.0.1:1 within 300 ms" in refused.err.splitlines()[-1]


def test_an_ensemble_survives_one_of_its_three_servers_and_ends_with_the_rest(tmp_path: Path) -> None:
    _need_zookeeper()
    with ClusterProcess(tmp_path, brokers=2, arguments=["--zookeeper=ensemble"]) as cluster:
        headrace = Command(cluster.bootstrap)
        headrace.ok("topic", "create", "orders", "--replicas", "2")
        members = cluster.members
        assert set(members) == {"broker-1", "broker-2", "zookeeper-1", "zookeeper-2", "zookeeper-3"}
        os.kill(members["zookeeper-2"], signal.SIGKILL)
        cluster.wait_for_log("zookeeper-2 runs again")
        headrace.ok("topic", "create", "payments", "--replicas", "2")

        members = cluster.members
        cluster.kill()
        wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in members.values()))
        cluster.start()
        names = {each["name"] for each in headrace.ok("topic", "list", "--json").json}
        assert names == {"orders", "payments"}
        assert "Snapshotting" in (cluster.data / "logs" / "zookeeper-1.log").read_text()
        cluster.stop()
        assert cluster.returncode == 0


def _need_zookeeper() -> None:
    try:
        find_java("ZooKeeper")
        find_jars()
    except (NoJava, ZooKeeperUnavailable) as error:
        pytest.skip(str(error))
