"""`headrace up --brokers 3`: processes that start together, are kept running, and leave nothing behind."""

import os
import signal
from pathlib import Path

import pytest

from cli.command import Command
from cli.members import wait_until
from headrace.coordination.credentials import Credential
from support.process import ClusterProcess, ServerProcess

STOP_S = 15.0  # what TERM may take on a busy machine; one that hangs is killed after 20


def test_all_brokers_are_named_when_all_are_ready(cluster: ClusterProcess) -> None:
    first = cluster.port
    assert cluster.bootstrap == ",".join(f"127.0.0.1:{port}" for port in range(first, first + 3))
    for port in range(first, first + 3):
        assert Command(f"127.0.0.1:{port}").ok("topic", "list").out is not None


def test_without_a_port_it_takes_any_that_are_free(tmp_path: Path) -> None:
    arguments = ["up", f"--data={tmp_path / 'data'}", "--port=0", "--brokers=2"]
    with ServerProcess(arguments, tmp_path / "up.log") as up:
        first, second = up.address.split(",")
        for each in (first, second):
            assert Command(each).ok("topic", "list").out
        up.stop()


def test_each_process_has_its_directory_and_its_log(cluster: ClusterProcess) -> None:
    names = {"broker-1", "broker-2", "broker-3", "coordinator"}
    assert set(cluster.members) == names
    assert {each.name for each in cluster.data.iterdir()} == names | {"logs", "up.pid", "jaas.conf"}
    password = Credential.of_file(cluster.data / "jaas.conf").password
    assert (cluster.data / "jaas.conf").stat().st_mode & 0o777 == 0o600
    for pid in (cluster.pid, *cluster.members.values()):
        for file in ("cmdline", "environ"):
            assert password not in Path(f"/proc/{pid}/{file}").read_text()
    logs = cluster.data / "logs"
    assert {each.name for each in logs.iterdir()} == {f"{name}.log" for name in (*names, "up")}
    assert "broker 2 serves at 127.0.0.1" in (logs / "broker-2.log").read_text()
    assert "It is a single node" in (logs / "coordinator.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_all_of_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with ClusterProcess(tmp_path) as cluster:
        Command(cluster.bootstrap).ok("topic", "create", "orders", "--partitions", "6", "--replicas", "3")
        pids = cluster.members.values()
        assert cluster.stop(number=number) < STOP_S
        assert cluster.returncode == 0
        for broker in ("broker-1", "broker-2", "broker-3"):
            assert (cluster.data / broker / ".kafka_cleanshutdown").exists(), cluster.log_tail()
        assert not any(_is_running(pid) for pid in pids)
        assert "killing it" not in cluster.log.read_text()


def test_a_broker_that_is_killed_comes_back_and_its_topics_stay_writable(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        headrace = Command(cluster.bootstrap)
        headrace.ok(
            *("topic", "create", "orders", "--partitions", "3", "--replicas", "3"),
            *("--config", "min.insync.replicas=2"),
        )
        before = cluster.members["broker-2"]
        os.kill(before, signal.SIGKILL)
        headrace.ok("produce", "orders", *(str(number) for number in range(30)))
        after = cluster.wait_for_member("broker-2", but=before)
        cluster.wait_for_log("broker-2 runs again, as process")
        assert "broker-2 was killed by SIGKILL; restarting it" in cluster.log.read_text()

        def is_healthy() -> bool:
            status = headrace.ok("cluster", "status", "--json").json
            pids = {each["id"]: each["pid"] for each in status["brokers"]}
            return pids.get(2) == after and not status["under_replicated"]

        wait_until(is_healthy)
        assert len(headrace.ok("consume", "orders", "--exit-at-end").text.split()) == 30


def test_a_broker_that_cannot_be_started_again_is_tried_again_and_the_others_stay(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, brokers=2) as cluster:
        logs = cluster.data / "logs"
        logs.rename(cluster.data / "elsewhere")
        logs.touch()  # where a directory is needed
        os.kill(cluster.members["broker-2"], signal.SIGKILL)
        cluster.wait_for_log("broker-2 cannot be started: ")
        logs.unlink()
        cluster.wait_for_log("broker-2 runs again, as process")
        assert cluster.stop() < STOP_S
        assert cluster.returncode == 0


def test_the_coordinator_comes_back_at_its_address_and_nobody_is_lost(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        headrace = Command(cluster.bootstrap)
        before = cluster.members
        os.kill(before["coordinator"], signal.SIGKILL)
        cluster.wait_for_log("coordinator runs again")
        headrace.ok("topic", "create", "orders", "--replication-factor", "3")
        assert len(headrace.ok("cluster", "status", "--json").json["brokers"]) == 3
        assert {name: pid for name, pid in cluster.members.items() if name != "coordinator"} == {
            name: pid for name, pid in before.items() if name != "coordinator"
        }


def test_killing_the_parent_leaves_nothing_behind_and_the_data_is_continued(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        headrace = Command(cluster.bootstrap)
        headrace.ok("topic", "create", "orders", "--partitions", "3", "--replicas", "3")
        headrace.ok("produce", "orders", *(str(number) for number in range(30)))
        pids = cluster.members.values()
        cluster.kill()
        wait_until(lambda: not any(_is_running(pid) for pid in pids))

        cluster.start()
        found = headrace.ok("consume", "orders", "--exit-at-end").text.split()
        assert sorted(map(int, found)) == list(range(30))


def test_killing_all_of_it_at_once_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        headrace = Command(cluster.bootstrap)
        headrace.ok(
            *("topic", "create", "orders", "--partitions", "3", "--replicas", "3"),
            *("--config", "min.insync.replicas=2"),
        )
        for life in range(3):
            headrace.ok("produce", "orders", *(str(number) for number in range(10 * life, 10 * life + 10)))
            cluster.kill_all()
            cluster.start()
        found = headrace.ok("consume", "orders", "--exit-at-end").text.split()
        assert sorted(map(int, found)) == list(range(30))


@pytest.mark.parametrize("brokers", ["1", "3"])
def test_a_second_one_on_the_same_directory_is_refused(cluster: ClusterProcess, brokers: str) -> None:
    refused = Command(cluster.bootstrap)("up", "--data", str(cluster.data), "--port=0", "--brokers", brokers)
    assert refused.complaint == (
        f"{cluster.data} is in use by another `headrace up`, process {cluster.pid}: "
        "stop it first, or choose another directory"
    )


def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path, cluster: ClusterProcess) -> None:
    refused = Command("")(
        "up", "--data", str(tmp_path / "data"), "--brokers=3", "--port", str(cluster.port + 2)
    )
    assert refused.status == 1
    assert refused.err.splitlines()[-1] == (
        f"headrace: cannot listen on 127.0.0.1:{cluster.port + 2}: "
        "the port is in use; stop the process that listens there, or choose another port"
    )
    assert not list((tmp_path / "data").glob("broker-*"))


def test_a_broker_that_cannot_start_stops_all_with_its_sentence(tmp_path: Path) -> None:
    other = tmp_path / "data" / "broker-2"
    other.mkdir(parents=True)
    (other / "meta.properties").write_text("version=0\nbroker.id=9\ncluster.id=elsewhere\n")
    refused = Command("")("up", "--data", str(tmp_path / "data"), "--brokers=3", "--port=0")
    assert refused.status == 1
    assert refused.out == b""
    last = refused.err.splitlines()[-1]
    assert last.startswith(f"headrace: broker-2 cannot run: {other} belongs to cluster elsewhere"), (
        refused.err
    )


def test_warnings_are_shown_with_the_name_of_whom_they_are_from(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        os.kill(cluster.members["coordinator"], signal.SIGKILL)
        for name in ("broker-1", "broker-2", "broker-3"):
            sentence = "the ZooKeeper session is suspended"
            cluster.wait_for_log(f"WARNING {name}: {sentence}")
            assert sentence in (cluster.data / "logs" / f"{name}.log").read_text()


def test_brokers_stand_in_the_racks_they_are_given(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, brokers=2, arguments=["--racks", "east,west"]) as cluster:
        brokers = Command(cluster.bootstrap).ok("cluster", "status", "--json").json["brokers"]
        assert [each["rack"] for each in brokers] == ["east", "west"]


def test_settings_are_those_of_a_cluster_on_one_machine_unless_they_are_given(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, brokers=2, settings={"offsets.topic.num.partitions": "4"}) as cluster:
        headrace = Command(cluster.bootstrap)
        headrace.ok("produce", "orders", "one")
        headrace.ok("consume", "orders", "--group", "readers", "--exit-at-end")
        offsets = headrace.ok("topic", "describe", "__consumer_offsets", "--json").json
        assert [len(each["replicas"]) for each in offsets["partitions"]] == [2] * 4
        configs = headrace.ok("config", "describe", "broker", "2", "--all", "--json").json
        assert {each["name"]: each["value"] for each in configs}["zookeeper.session.timeout.ms"] == "6000"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--racks=a,b"], "--racks a,b: expected a name for each of the 3 brokers."),
        (["--set=broker.rack=a"], "broker.rack cannot be set for `headrace up`: use --racks"),
        (["--port=65534"], "3 ports from 65534 on: the last one would be 65536"),
        (["--set=num.partitions=0"], "num.partitions=0: expected a whole number of at least 1"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(tmp_path: Path, options: list[str], sentence: str) -> None:
    refused = Command("")("up", "--data", str(tmp_path / "data"), "--brokers=3", *options)
    assert refused.status in {1, 2}
    assert refused.out == b""
    assert sentence in refused.err.splitlines()[-1]


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
