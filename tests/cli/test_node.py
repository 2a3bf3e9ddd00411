"""`headrace broker` with headrace.brokers: several brokers under one supervisor, and two such nodes."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from cli.command import Command
from cli.members import wait_until
from cli.nodes import NodeProcess, node
from headrace.gateway.serving import serve_in_thread
from http_support.asking import Asking
from support.process import NotReady, ServerProcess

pytestmark = pytest.mark.extended

PARTITIONS = 6
DELIVERY_S = 60


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("coordinator")
    arguments = ["coordinator", f"--data={root / 'data'}", "--port=0", "--tick-ms=100", "--no-sync"]
    with ServerProcess(arguments, root / "coordinator.log") as process:
        yield process.address


@pytest.fixture
def machine(tmp_path: Path, zookeeper: str) -> Iterator[NodeProcess]:
    """A node with brokers 5, 6 and 7, and two directories."""
    log_dirs = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    with node(tmp_path, f"{zookeeper}/{tmp_path.name}", 5, 3, log_dirs=log_dirs) as process:
        yield process


class Writer:
    """A producer with acks=all that knows which records were acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "topic.metadata.refresh.interval.ms": 500,
            }
        )
        self.acknowledged: set[bytes] = set()
        self._sent = 0

    def write(self, topic: str, count: int = 60) -> None:
        """Write to all partitions; return when all records are acknowledged."""
        for _ in range(count):
            self._sent += 1
            self._producer.produce(
                topic, b"%d" % self._sent, partition=self._sent % PARTITIONS, on_delivery=self._delivered
            )
        assert self._producer.flush(DELIVERY_S) == 0
        assert len(self.acknowledged) == self._sent

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        value = message.value()
        assert isinstance(value, bytes)
        self.acknowledged.add(value)


def read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """Read the first `count` records of a topic as a group."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[bytes] = []

    def is_complete() -> bool:
        for message in consumer.consume(1000, timeout=0.2):
            assert message.error() is None, message.error()
            found.append(message.value())
        return len(found) >= count

    try:
        wait_until(is_complete, lambda: len(found))
    finally:
        consumer.close()
    return found


def replicas_of(headrace: Command, topic: str) -> dict[int, list[int]]:
    found = headrace.ok("topic", "describe", topic, "--json").json
    return {each["index"]: each["replicas"] for each in found["partitions"]}


def brokers_of(headrace: Command) -> dict[int, Mapping[str, Any]]:
    return {each["id"]: each for each in headrace.ok("cluster", "status", "--json").json["brokers"]}


def test_every_broker_has_its_address_its_directory_and_partitions(
    machine: NodeProcess, tmp_path: Path
) -> None:
    machine.write(http_listener="127.0.0.1:0")
    machine.start()
    headrace = Command(machine.address)
    headrace.ok("topic", "create", "orders", "--partitions", str(PARTITIONS))

    first = machine.port
    assert machine.address == ",".join(f"127.0.0.1:{first + each}" for each in range(3))
    assert {each: found["node"] for each, found in brokers_of(headrace).items()} == dict.fromkeys(
        (5, 6, 7), "node-5"
    )
    assert {found["leads"] for found in brokers_of(headrace).values()} == {2}
    directories = {
        each["id"]: [Path(found["path"]) for found in each["log_dirs"]]
        for each in headrace.ok("broker", "list", "--json").json
    }
    assert directories == {5: [tmp_path / "a"], 6: [tmp_path / "b"], 7: [tmp_path / "a" / "brokers" / "7"]}
    for broker_id in (5, 6, 7):
        machine.wait_for_log(f"INFO broker-{broker_id}: broker {broker_id} serves at")
    writer = Writer(machine.address)
    writer.write("orders")
    assert set(read(machine.address, "orders", 60)) == writer.acknowledged
    with urlopen(f"{machine.http}/metrics", timeout=30) as answer:
        metrics = answer.read().decode()
    assert all(f'broker="{each}"' in metrics for each in (5, 6, 7))


def test_a_broker_that_is_killed_is_restarted_and_everything_continues(machine: NodeProcess) -> None:
    machine.start()
    headrace, writer = Command(machine.address), Writer(machine.address)
    headrace.ok("topic", "create", "orders", "--partitions", str(PARTITIONS))
    writer.write("orders")
    killed = machine.members["broker-6"]

    os.kill(killed, signal.SIGKILL)
    machine.wait_for_member("broker-6", but=killed)
    machine.wait_for_log("broker-6 runs again")

    writer.write("orders")
    assert set(read(machine.address, "orders", 120)) == writer.acknowledged
    machine.stop()
    assert machine.returncode == 0
    assert " ERROR broker-" not in machine.log.read_text().replace("ERROR broker-6 was killed", "")
    machine.start()
    writer.write("orders")


def test_hup_changes_the_dynamic_settings_of_every_broker_and_of_those_that_are_restarted(
    machine: NodeProcess,
) -> None:
    machine.start()
    headrace = Command(machine.address)

    def retention(broker_id: int) -> str:
        configs = headrace.ok("config", "describe", "broker", str(broker_id), "--all", "--json").json
        return str({each["name"]: each["value"] for each in configs}["log.retention.ms"])

    machine.write(log_retention_ms="4321", headrace_brokers="4")
    machine.signal(signal.SIGHUP)
    machine.wait_for_log("these settings need a restart: headrace.brokers")
    for broker_id in (5, 6, 7):
        machine.wait_for_log(f"broker-{broker_id}: settings applied")
        assert retention(broker_id) == "4321"
    killed = machine.members["broker-7"]
    os.kill(killed, signal.SIGKILL)
    machine.wait_for_log("broker-7 runs again")
    assert retention(7) == "4321"

    machine.write(log_retention_ms="soon")
    machine.signal(signal.SIGHUP)
    machine.wait_for_log("settings are unchanged: log.retention.ms=soon: expected a whole number")


def test_the_brokers_end_with_their_supervisor(machine: NodeProcess) -> None:
    machine.start()
    pids = [Path(f"/proc/{pid}") for pid in machine.members.values()]
    assert len(pids) == 3

    machine.kill()

    wait_until(lambda: not any(each.exists() for each in pids), lambda: pids)
    machine.start()


def test_every_line_of_a_json_log_names_its_broker(tmp_path: Path, zookeeper: str) -> None:
    with node(tmp_path, f"{zookeeper}/{tmp_path.name}", 5, 2) as settings:
        process = NodeProcess(tmp_path, settings.settings, HEADRACE_LOG_FORMAT="json")
        with process:
            entries = [json.loads(line) for line in process.log.read_text().splitlines()]
            serving = [each for each in entries if "serves at" in each["message"]]
            assert sorted(each["broker"] for each in serving) == [5, 6]


def test_a_daemon_is_a_node_too(machine: NodeProcess, tmp_path: Path) -> None:
    pid_file, log = tmp_path / "node.pid", tmp_path / "node.log"
    headrace = Command("")
    ready = headrace(*machine.arguments, "--daemon", f"--pid-file={pid_file}", f"--log-file={log}", "--json")
    supervisor = int(pid_file.read_text())
    try:
        assert len(ready.json["bootstrap"].split(",")) == 3
        assert len(brokers_of(Command(ready.json["bootstrap"]))) == 3
    finally:
        os.kill(supervisor, signal.SIGTERM)
    wait_until(lambda: not pid_file.exists(), log.read_text)
    assert "broker-6: broker 6 serves at" in log.read_text()


def test_a_broker_that_becomes_a_node_keeps_its_data(tmp_path: Path, zookeeper: str) -> None:
    with node(tmp_path, f"{zookeeper}/{tmp_path.name}", 5, 2) as machine:
        machine.write(headrace_brokers="1")
        with machine:
            Command(machine.address).ok("produce", "orders", "one", "two")
            machine.stop()
            machine.write(headrace_brokers="2")
            machine.start()
            headrace = Command(machine.address)
            assert headrace.ok("consume", "orders", "--exit-at-end").text == "one\ntwo\n"
            assert sorted(brokers_of(headrace)) == [5, 6]


def test_a_broker_whose_logs_are_in_another_directory_is_not_started_without_them(
    machine: NodeProcess, tmp_path: Path
) -> None:
    machine.start()
    machine.stop()
    machine.write(log_dirs=",".join(str(tmp_path / each) for each in "acb"))
    with pytest.raises(
        NotReady,
        match=r"broker 7 has its logs in .*/a/brokers/7, and with these log\.dirs it would use .*/b:",
    ):
        machine.start()


def test_the_other_brokers_start_if_a_disk_cannot_be_used(machine: NodeProcess, tmp_path: Path) -> None:
    (tmp_path / "b").write_text("a file, where a directory should be")

    machine.start()

    assert len(machine.address.split(",")) == 2
    machine.wait_for_log("broker-6 cannot run")
    assert sorted(brokers_of(Command(machine.address))) == [5, 7]
    (tmp_path / "b").unlink()
    machine.wait_for_log("broker-6 runs again")


def test_ids_of_another_node_are_refused(machine: NodeProcess, tmp_path: Path, zookeeper: str) -> None:
    machine.start()
    other = tmp_path / "other"
    other.mkdir()
    with node(other, f"{zookeeper}/{tmp_path.name}", 7, 2) as overlapping:
        with pytest.raises(
            NotReady, match=r"broker 7 is running already on node node-5, .* the ids of two nodes"
        ):
            overlapping.start()
        assert overlapping.members == {}
    assert len(machine.members) == 3


def test_nothing_that_was_acknowledged_is_lost_with_a_whole_node(tmp_path: Path, zookeeper: str) -> None:
    """Two nodes of two brokers: the replicas of a partition are on both, and either may be killed."""
    settings = {"default_replication_factor": "2", "num_partitions": str(PARTITIONS)}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    where = f"{zookeeper}/{tmp_path.name}"
    with (
        node(tmp_path / "one", where, 10, 2, **settings) as one,
        node(tmp_path / "two", where, 20, 2, **settings) as two,
    ):
        one.start()
        two.start()
        headrace, writer = Command(two.address), Writer(f"{one.address},{two.address}")
        headrace.ok("topic", "create", "orders", "--partitions", str(PARTITIONS), "--replicas", "2")
        assert {each["node"] for each in brokers_of(headrace).values()} == {"node-10", "node-20"}
        for replicas in replicas_of(headrace, "orders").values():
            assert {each // 10 for each in replicas} == {1, 2}
        leads = {each: found["leads"] for each, found in brokers_of(headrace).items()}
        assert set(leads.values()) == {1, 2}, leads
        writer.write("orders")

        one.kill_all()

        writer.write("orders")
        assert set(read(two.address, "orders", 120)) == writer.acknowledged
        for replicas in replicas_of(headrace, "__consumer_offsets").values():
            assert len({each // 10 for each in replicas}) == len(replicas)

        one.start()
        wait_until(lambda: headrace.ok("cluster", "status", "--json").json["under_replicated"] == [])
        writer.write("orders")
        two.kill_all()
        writer.write("orders")
        assert len(writer.acknowledged) == 240


def test_a_node_is_drained_to_other_nodes(tmp_path: Path, zookeeper: str) -> None:
    where = f"{zookeeper}/{tmp_path.name}"
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    with (
        node(tmp_path / "one", where, 10, 2) as one,
        node(tmp_path / "two", where, 20, 1, headrace_node="lonely") as two,
        node(tmp_path / "three", where, 30, 1) as three,
    ):
        for each in (one, two, three):
            each.start()
        headrace = Command(two.address)
        headrace.ok("topic", "create", "orders", "--partitions", str(PARTITIONS), "--replicas", "2")

        with serve_in_thread(two.address) as served:
            gateway = Asking(served.url)
            nodes = {each["id"]: each["node"] for each in gateway.get("/api/v1/brokers")}
            assert nodes == {10: "node-10", 11: "node-10", 20: "lonely", 30: None}
            moves = gateway.post("/api/v1/nodes/node-10/drain", {})
            assert {each for move in moves for each in move["replicas"]} == {20, 30}
            assert gateway.refused("POST", "/api/v1/nodes/nowhere/drain", {})[0] == HTTPStatus.BAD_REQUEST
            with urlopen(f"{served.url}/ui/", timeout=30) as page:
                assert "node-10" in page.read().decode()
            gateway.close()
        refused = headrace("cluster", "drain", "--node", "nowhere")
        assert refused.complaint == "no live broker is on a node 'nowhere': only lonely, node-10"
        drained = headrace.ok("cluster", "drain", "--node", "node-10", "--wait")

        assert drained.text.endswith("no replica is left on brokers 10, 11\n")
        assert {tuple(sorted(each)) for each in replicas_of(headrace, "orders").values()} == {(20, 30)}
