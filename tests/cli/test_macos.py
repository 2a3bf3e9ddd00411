"""What users of macOS have: fixture, command line, SDK and one broker, without the system calls of Linux.

The processes run on Linux, with support/macos/sitecustomize.py, which hides what macOS lacks; it is no macOS.
`make lint` checks the types of the package as on macOS, which finds every missing function of the standard
library.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest

from support.process import ServerProcess, clean_environment

MACOS: Final = {"PYTHONPATH": str(Path(__file__).parents[1] / "support" / "macos")}
WAIT_S: Final = 60.0
AS_ON_MACOS: Final = """
import ctypes, os, resource, selectors, socket, sys
from pathlib import Path

assert sys.platform == "darwin"
assert not hasattr(os, "pidfd_open") and not hasattr(os, "fdatasync")
assert not hasattr(ctypes.CDLL(None), "prctl")
assert selectors.DefaultSelector is selectors.PollSelector
assert not Path("/proc/self/stat").exists() and not Path("/proc/sys/kernel/random/boot_id").exists()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (256, resource.RLIM_INFINITY)
first, second = (socket.socket() for _ in range(2))
for each in (first, second):
    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
first.bind(("127.0.0.1", 0))
try:
    second.bind(first.getsockname())
except OSError as error:
    print(error.strerror)
"""
FIXTURE: Final = """
from confluent_kafka import Producer

from headrace.testing import Broker, Cluster


def produce(broker, *values):
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce("orders", value)
    assert producer.flush(60) == 0


def test_orders_are_written(headrace):
    with headrace.faults.hang_up("Produce", after="append", times=1):
        produce(headrace, "tea")
    headrace.restart()
    produce(headrace, "milk")
    assert [record.value for record in headrace.records("orders")] == [b"tea", b"milk"]


def test_a_process_is_killed_and_starts_again():
    with Broker(process=True) as broker:
        produce(broker, "tea")
        broker.kill()
        broker.restart()
        assert [record.value for record in broker.records("orders")] == [b"tea"]


def test_a_cluster_survives_its_leader():
    with Cluster(3, topics={"orders": {"partitions": 1, "replicas": 3}}) as cluster:
        produce(cluster, "tea")
        cluster.kill(cluster.leader_of("orders"))
        produce(cluster, "milk")
        assert [record.value for record in cluster.records("orders")] == [b"tea", b"milk"]
"""
SDK: Final = """
import sys
from headrace import JSON, Admin, Consumer, Producer

bootstrap = sys.argv[1]
with Admin(bootstrap) as admin:
    admin.create_topic("drinks", partitions=1)
with Producer(bootstrap, value=JSON, compression="zstd") as producer:
    producer.send("drinks", {"item": "coffee"}, key="bob")
with Consumer(bootstrap, "drinks", group="macos", value=JSON) as consumer:
    for message in consumer.read(stop_at_end=True):
        print(message.offset, message.value["item"])
"""


def run(*command: str, cwd: Path | None = None) -> str:
    """Return what a Python program prints that runs as on macOS."""
    environment = clean_environment() | MACOS | {"XDG_CONFIG_HOME": os.devnull}
    done = subprocess.run(
        [sys.executable, *command],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def server(root: Path, name: str, *arguments: str) -> ServerProcess:
    return ServerProcess([name, *arguments], root / f"{name}.log", MACOS)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.fixture
def up(tmp_path: Path) -> Iterator[ServerProcess]:
    """A broker whose port is given: such a port is reserved first."""
    options = [f"--data={tmp_path / 'data'}", f"--port={free_port()}", f"--http-port={free_port()}"]
    with server(tmp_path, "up", *options) as process:
        yield process
        assert " ERROR " not in process.log.read_text(), process.log_tail()


def headrace(process: ServerProcess, *arguments: str) -> str:
    return run("-m", "headrace", *arguments, "--bootstrap", process.address)


def test_what_macos_lacks_is_hidden() -> None:
    assert run("-c", AS_ON_MACOS) == "Address already in use\n"


def test_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(FIXTURE)
    assert "3 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path), cwd=tmp_path)


def test_records_survive_a_kill(up: ServerProcess) -> None:
    headrace(up, "produce", "orders", "one", "two")
    up.kill()
    up.start()
    headrace(up, "produce", "orders", "three")
    assert headrace(up, "consume", "orders", "--exit-at-end") == "one\ntwo\nthree\n"
    up.stop()
    assert up.returncode == 0
    assert "the limit on open files stays" not in up.log.read_text()


def test_the_gateway_ends_with_its_broker_and_does_not_block_the_next_start(up: ServerProcess) -> None:
    with urlopen(f"{up.http}/metrics", timeout=WAIT_S) as answer:
        metrics = answer.read().decode()
    assert "process_open_fds" in metrics
    assert "process_resident_memory_bytes" not in metrics  # nobody but /proc knows
    up.kill()
    up.start()


def test_the_sdk_and_the_doctor(up: ServerProcess) -> None:
    assert run("-c", SDK, up.address) == "0 coffee\n"
    # The clock of a machine may have no time server, which is a warning.
    assert json.loads(headrace(up, "doctor", "--json"))["problems"] == 0
    assert "macos" in headrace(up, "group", "list")


@pytest.mark.extended
def test_a_broker_that_was_killed_starts_when_its_session_has_expired(tmp_path: Path) -> None:
    """Without pidfds nobody can prove that the process has exited."""
    with server(
        tmp_path, "coordinator", f"--data={tmp_path / 'zk'}", "--port=0", "--tick-ms=100"
    ) as coordinator:
        settings = {
            "broker.id": "1",
            "log.dirs": str(tmp_path / "logs"),
            "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
            "zookeeper.connect": coordinator.address,
            "zookeeper.session.timeout.ms": "2000",
            "headrace.brokers": "1",
        }
        with server(
            tmp_path, "broker", *(f"--set={name}={value}" for name, value in settings.items())
        ) as broker:
            headrace(broker, "produce", "orders", "one")
            broker.kill()
            broker.start()
            assert headrace(broker, "consume", "orders", "--exit-at-end") == "one\n"


@pytest.mark.extended
def test_a_cluster_ends_with_its_parent_and_continues(tmp_path: Path) -> None:
    options = [f"--data={tmp_path / 'data'}", f"--port={free_port()}", "--brokers=2", "--no-http"]
    with server(tmp_path, "up", *options) as cluster:
        headrace(cluster, "produce", "orders", "one")
        cluster.kill()
        deadline = time.monotonic() + WAIT_S
        while ports_in_use(cluster.address) and time.monotonic() < deadline:
            time.sleep(0.05)
        cluster.start()
        assert headrace(cluster, "consume", "orders", "--exit-at-end") == "one\n"


def ports_in_use(addresses: str) -> bool:
    found = []
    for each in addresses.split(","):
        with socket.socket() as connecting:
            found.append(connecting.connect_ex(("127.0.0.1", int(each.rpartition(":")[2]))) == 0)
    return any(found)
