"""`headrace broker`: its settings, its signals, its life as a daemon."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from cli.command import Command
from support.process import NotReady, ServerProcess

WAIT_S = 20.0


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("coordinator")
    arguments = ["coordinator", f"--data={root / 'data'}", "--port=0", "--tick-ms=100", "--no-sync"]
    with ServerProcess(arguments, root / "coordinator.log") as process:
        yield process.address


class Setup:
    """A properties file and what belongs to it; every test has a cluster of its own."""

    def __init__(self, root: Path, zookeeper: str) -> None:
        self.root = root
        self.file = root / "server.properties"
        self.pid_file = root / "broker.pid"
        self.log = root / "broker.log"
        self._settings = {
            "broker.id": "5",
            "log.dirs": str(root / "logs"),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "zookeeper.connect": f"{zookeeper}/{root.name}",
            "zookeeper.session.timeout.ms": "1000",
        }
        self.write()

    def write(self, **settings: str) -> None:
        """Write the file; `log_retention_ms` is `log.retention.ms`."""
        given = self._settings | {name.replace("_", "."): value for name, value in settings.items()}
        self.file.write_text("# a broker\n" + "".join(f"{name}={value}\n" for name, value in given.items()))

    def process(self, *arguments: str, **environment: str) -> ServerProcess:
        return ServerProcess(["broker", f"--config={self.file}", *arguments], self.log, environment)


@pytest.fixture
def setup(tmp_path: Path, zookeeper: str) -> Setup:
    return Setup(tmp_path, zookeeper)


def _value(headrace: Command, name: str) -> str | None:
    configs = headrace.ok("config", "describe", "broker", "5", "--all", "--json").json
    values: dict[str, str | None] = {each["name"]: each["value"] for each in configs}
    return values[name]


def test_settings_come_from_the_file_the_environment_and_set_in_that_order(setup: Setup) -> None:
    setup.write(num_partitions="2", log_retention_ms="2", log_segment_bytes="2000")
    environment = {"HEADRACE_LOG_RETENTION_MS": "3", "HEADRACE_LOG_SEGMENT_BYTES": "3000"}
    with setup.process("--set", "log.segment.bytes=4000", **environment) as process:
        headrace = Command(process.address)
        assert _value(headrace, "num.partitions") == "2"
        assert _value(headrace, "log.retention.ms") == "3"
        assert _value(headrace, "log.segment.bytes") == "4000"


def test_it_has_a_gateway_if_its_settings_say_where(setup: Setup) -> None:
    with setup.process("--set", "http.listener=127.0.0.1:0") as process:
        with urlopen(f"{process.http}/readyz", timeout=30) as answer:
            assert answer.read() == b'{"status":"ready"}'
        process.stop()
        assert process.returncode == 0


def test_a_place_for_http_that_is_none_is_said(setup: Setup) -> None:
    with pytest.raises(NotReady, match=r"http\.listener is 'nowhere': expected HOST:PORT"):
        setup.process("--set", "http.listener=nowhere").start()


def test_records_are_there_after_a_restart(setup: Setup) -> None:
    with setup.process("--set", "listeners=PLAINTEXT://127.0.0.1:0") as process:
        Command(process.address).ok("produce", "orders", "one", "two")
        assert process.stop() < 3.0
        assert process.returncode == 0
        process.start()
        assert Command(process.address).ok("consume", "orders", "--exit-at-end").text == "one\ntwo\n"


def test_hup_reads_the_file_again(setup: Setup) -> None:
    with setup.process() as process:
        headrace = Command(process.address)
        setup.write(log_retention_ms="4321", broker_id="6")
        process.signal(signal.SIGHUP)
        process.wait_for_log("these settings need a restart: broker.id")
        assert _value(headrace, "log.retention.ms") == "4321"
        assert _value(headrace, "broker.id") == "5"


def test_a_bad_file_changes_nothing(setup: Setup) -> None:
    with setup.process() as process:
        setup.write(log_retention_ms="soon")
        process.signal(signal.SIGHUP)
        process.wait_for_log("settings are unchanged: log.retention.ms=soon: expected a whole number")
        assert _value(Command(process.address), "log.retention.ms") != "soon"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("log.dirss=/tmp", "there is no setting 'log.dirss'; did you mean log.dirs?"),
        ("broker.id=many", "broker.id=many: expected a whole number of at least 0"),
        ("listeners=127.0.0.1:9092", "listeners=127.0.0.1:9092: expected NAME://HOST:PORT"),
        ("nonsense", "line 1: 'nonsense' is not name=value"),
    ],
)
def test_a_bad_setting_is_refused_at_the_start(
    headrace: Command, tmp_path: Path, line: str, sentence: str
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(line + "\n")
    refused = headrace("broker", "--config", str(file))
    assert refused.status == 1
    assert sentence in refused.complaint


def test_a_second_broker_with_the_same_id_is_refused(setup: Setup, tmp_path: Path) -> None:
    with setup.process() as process:
        other = setup.process("--set", f"log.dirs={tmp_path / 'other'}")
        with pytest.raises(NotReady, match="broker 5 is running already, at 127"):
            other.start()
        Command(process.address).ok("topic", "list")


def test_the_pid_file_names_the_process_and_goes_with_it(setup: Setup) -> None:
    setup.pid_file.write_text("1\n")  # left behind by a crash; nobody holds it
    with setup.process("--pid-file", str(setup.pid_file)) as process:
        assert setup.pid_file.read_text() == f"{process.pid}\n"
        other = setup.process("--pid-file", str(setup.pid_file))
        with pytest.raises(NotReady, match=f"is held by process {process.pid}: stop it first"):
            other.start()
        process.stop()
        assert not setup.pid_file.exists()


def test_a_daemon_is_ready_when_the_command_returns(setup: Setup, headrace: Command) -> None:
    started = headrace.ok(*_daemon(setup))
    pid = int(setup.pid_file.read_text())
    try:
        address = started.text.strip().removeprefix("ready bootstrap=")
        Command(address).ok("produce", "orders", "one")
        assert os.getsid(pid) != os.getsid(0)
        refused = headrace(*_daemon(setup))
        assert (refused.status, f"is held by process {pid}" in refused.complaint) == (1, True)
    finally:
        os.kill(pid, signal.SIGTERM)
        _wait_until_gone(setup.pid_file)
    assert "stopping: got SIGTERM" in setup.log.read_text()
    host, port = address.split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), 1)


def test_a_daemon_that_cannot_start_says_so_before_the_command_returns(
    setup: Setup, headrace: Command
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listener = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        refused = headrace(*_daemon(setup), "--set", f"listeners={listener}")
    assert refused.status == 1
    assert f"cannot listen on {listener}" in refused.complaint
    assert not setup.pid_file.exists()


def test_a_daemon_needs_a_log_file(setup: Setup, headrace: Command) -> None:
    refused = headrace("broker", "--config", str(setup.file), "--daemon")
    assert refused.status == 2
    assert "--daemon and --log-file go together" in refused.complaint


def _daemon(setup: Setup) -> list[str]:
    return [
        "broker",
        f"--config={setup.file}",
        "--daemon",
        f"--pid-file={setup.pid_file}",
        f"--log-file={setup.log}",
    ]


def _wait_until_gone(path: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while path.exists():
        assert time.monotonic() < deadline, f"{path} is still there"
        time.sleep(0.01)
