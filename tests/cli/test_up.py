"""`headrace up`: ready, stopped, killed, continued, refused."""

import signal
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from cli.command import Command
from signals import ignored_by_children
from support.process import NotReady, ServerProcess, UpProcess

STOP_S = 3.0  # what TERM may take


def test_it_prints_one_line_when_clients_can_connect(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as up:
        assert up.bootstrap == f"127.0.0.1:{up.port}"
        socket.create_connection(("127.0.0.1", up.port), 1).close()
        Command(up.bootstrap).ok("topic", "list")


def test_the_log_says_that_the_coordinator_is_one_node(up: UpProcess) -> None:
    assert "It is a single node" in up.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_everything_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with UpProcess(tmp_path) as up:
        up.signal(number)
        assert up.stop() < STOP_S
        assert up.returncode == 0
        assert (up.data / "broker-1" / ".kafka_cleanshutdown").exists()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", up.port), 1)


def test_hangup_and_ctrl_c_stay_ignored_if_it_was_started_with_nohup(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with ignored_by_children():
            up = stack.enter_context(UpProcess(tmp_path))
        up.signal(signal.SIGHUP)
        up.signal(signal.SIGINT)
        up.stop()  # with TERM
        assert up.returncode == 0
        said = [line for line in up.log.read_text().splitlines() if "stopping" in line]
        assert [line.split(": ")[-1] for line in said] == ["got SIGTERM"]


def test_the_same_directory_continues_after_a_stop_and_after_a_kill(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as up:
        headrace = Command(up.bootstrap)
        headrace.ok("topic", "create", "orders", "--partitions", "2", "--config", "retention.ms=86400000")
        headrace.ok("produce", "orders", "one", "--partition", "0")
        up.stop()
        up.start()
        headrace.ok("produce", "orders", "two", "--partition", "0")
        up.kill()
        up.start()
        headrace.ok("produce", "orders", "three", "--partition", "0")

        assert headrace.ok("consume", "orders", "--exit-at-end").text == "one\ntwo\nthree\n"
        described = headrace.ok("topic", "describe", "orders", "--json").json
        assert described["configs"] == {"retention.ms": "86400000"}
        assert [part["next_offset"] for part in described["partitions"]] == [3, 0]


def test_a_second_one_on_the_same_directory_is_refused(up: UpProcess, headrace: Command) -> None:
    refused = headrace("up", "--data", str(up.data), "--port", "0")
    assert refused.status == 1
    assert "is in use" in refused.err.splitlines()[-1]
    assert "Traceback" not in refused.err
    headrace.ok("topic", "list")


def test_an_occupied_port_is_refused(up: UpProcess, headrace: Command, tmp_path: Path) -> None:
    refused = headrace("up", "--data", str(tmp_path / "other"), "--port", str(up.port))
    assert refused.status == 1
    assert refused.out == b""
    last = refused.err.splitlines()[-1]
    assert last == (
        f"headrace: cannot listen on 127.0.0.1:{up.port}: "
        "the port is in use; stop the process that listens there, or choose another port"
    )
    assert "Traceback" not in refused.err


def test_it_uses_the_zookeeper_it_is_given(tmp_path: Path) -> None:
    arguments = ["coordinator", f"--data={tmp_path / 'zookeeper'}", "--port=0", "--no-sync"]
    with (
        ServerProcess(arguments, tmp_path / "coordinator.log") as zookeeper,
        UpProcess(tmp_path / "up", arguments=["--zookeeper", zookeeper.address]) as up,
    ):
        Command(up.bootstrap).ok("topic", "create", "orders")
        assert not (up.data / "coordinator").exists()
        assert "one node" not in up.log.read_text()
        up.stop()
        up.start()
        assert Command(up.bootstrap).ok("topic", "list", "--json").json[0]["name"] == "orders"


def test_clients_go_on_after_a_crash_and_a_restart(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as up:
        headrace = Command(up.bootstrap)
        headrace.ok("produce", "orders", "before")
        consumer = subprocess.Popen(
            headrace.arguments("consume", "orders", "--from-beginning", "--max-messages", "2"),
            env=headrace.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with consumer:
            assert consumer.stdout is not None
            assert consumer.stderr is not None
            assert consumer.stdout.readline() == b"before\n"
            up.kill()
            up.start()
            headrace.ok("produce", "orders", "after")
            assert consumer.stdout.readline() == b"after\n"
            assert (consumer.wait(20), consumer.stderr.read()) == (0, b"")


def test_a_zookeeper_that_does_not_answer_is_named(headrace: Command, tmp_path: Path) -> None:
    refused = headrace(
        "up",
        *("--data", str(tmp_path), "--port", "0", "--zookeeper", "127.0.0.1:1"),
        *("--set", "zookeeper.connection.timeout.ms=300"),
    )
    assert refused.status == 1
    assert "no ZooKeeper responds at 127.0.0.1:1 within 300 ms" in refused.err.splitlines()[-1]


def test_one_that_waits_for_its_zookeeper_stops_at_once(headrace: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(20)
        zookeeper = f"127.0.0.1:{silent.getsockname()[1]}"
        arguments = ["up", "--data", str(tmp_path), "--port=0", "--zookeeper", zookeeper]
        with subprocess.Popen(headrace.arguments(*arguments), stderr=subprocess.DEVNULL) as process:
            connection, _ = silent.accept()
            with connection:
                process.terminate()
                assert process.wait(STOP_S) == 0


def test_settings_come_from_set_and_from_the_environment(tmp_path: Path) -> None:
    with UpProcess(
        tmp_path,
        settings={"num.partitions": "3"},
        environment={"HEADRACE_NUM_PARTITIONS": "2", "HEADRACE_LOG_RETENTION_MS": "1234"},
    ) as up:
        headrace = Command(up.bootstrap)
        headrace.ok("topic", "create", "orders")
        assert len(headrace.ok("topic", "describe", "orders", "--json").json["partitions"]) == 3
        configs = headrace.ok("config", "describe", "topic", "orders", "--json").json
        assert [(each["name"], each["value"]) for each in configs] == [("retention.ms", "1234")]


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--set=num.partition=3", "there is no setting 'num.partition'; did you mean num.partitions?"),
        ("--set=num.partitions=0", "num.partitions=0: expected a whole number of at least 1"),
        ("--set=log.dirs=/x", "log.dirs cannot be set for `headrace up`: use --data"),
        (
            "--set=broker.id=7",
            "broker.id cannot be set for `headrace up`: brokers are numbered 1, 2, 3 and so on",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    headrace: Command, tmp_path: Path, option: str, sentence: str
) -> None:
    refused = headrace("up", "--data", str(tmp_path / "data"), "--port", "0", option)
    assert (refused.status, refused.complaint) == (1, sentence)


def test_an_unknown_setting_in_the_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match=r"there is no setting 'broker\.ids'; did you mean broker\.id\?"):
        UpProcess(tmp_path, environment={"HEADRACE_BROKER_IDS": "7"}).start()


def test_a_directory_that_cannot_be_is_refused_in_a_sentence(headrace: Command) -> None:
    refused = headrace("up", "--data", "/proc/nothing/here", "--port", "0")
    assert (refused.status, refused.complaint) == (
        1,
        "cannot write to /proc/nothing/here: no such file or directory; choose another directory",
    )


@pytest.mark.parametrize("server", ["coordinator", "zookeeper"])
def test_the_systems_own_errors_are_said_without_their_numbers(headrace: Command, server: str) -> None:
    refused = headrace(server, "--data", "/proc/nothing", "--port", "0")
    assert refused.status == 1
    assert "/proc/nothing" in refused.complaint
    assert "no such file or directory" in refused.complaint
    assert "Errno" not in refused.complaint
