"""The address for HTTP that `headrace up` prints: a gateway that is started by whoever asks first."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import pytest

from cli.command import Command
from ports import free_ports
from support.process import ClusterProcess, ServerProcess, UpProcess

STOP_S = 15.0  # what TERM may take on a busy machine; what hangs would be waited for longer


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


KINDS = pytest.mark.parametrize("kind", [UpProcess, pytest.param(ClusterProcess, marks=pytest.mark.long)])


def gateways(up: UpProcess) -> list[int]:
    """The gateway processes that `up` has."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (directory / "cmdline").read_bytes().split(b"\0")
            parent = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == up.pid and b"gateway" in arguments:
            found.append(int(directory.name))
    return found


@pytest.mark.parametrize("kind", [UpProcess, ClusterProcess])
def test_the_gateway_starts_when_somebody_asks_and_again_after_it_was_killed(
    tmp_path: Path, kind: type[UpProcess]
) -> None:
    with kind(tmp_path) as up:
        assert gateways(up) == []
        assert get(f"{up.http}/readyz") == '{"status":"ready"}'
        (pid,) = gateways(up)

        os.kill(pid, signal.SIGKILL)
        up.wait_for_log("gateway was killed by SIGKILL")

        assert get(f"{up.http}/readyz") == '{"status":"ready"}'
        assert gateways(up) != [pid]
        up.stop()
        assert up.returncode == 0


@KINDS
def test_the_gateway_answers_to_a_name_that_a_setting_allows(tmp_path: Path, kind: type[UpProcess]) -> None:
    with kind(tmp_path, settings={"http.hosts": "kafka.example"}) as up:
        statuses = {name: asked_as(name, up.http) for name in ("kafka.example", "other.example")}

    assert statuses == {"kafka.example": 200, "other.example": 403}


def asked_as(name: str, url: str) -> int:
    """The status of an answer to a request for that host."""
    connection = HTTPConnection(url.removeprefix("http://"), timeout=30)
    try:
        connection.request("GET", "/healthz", headers={"host": name})
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_gateway_that_cannot_be_started_is_tried_again(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as up, ThreadPoolExecutor() as asking:
        logs = up.data / "logs"
        logs.rename(up.data / "elsewhere")
        logs.touch()  # where a directory is needed
        answer = asking.submit(get, f"{up.http}/readyz")
        up.wait_for_log("gateway cannot be started: ")
        logs.unlink()
        assert answer.result() == '{"status":"ready"}'
        assert (logs / "gateway.log").exists(), "the directory is made again"


def test_without_http_there_is_none(tmp_path: Path) -> None:
    with UpProcess(tmp_path, arguments=["--no-http"]) as up:
        assert up.http == ""


def test_a_port_that_was_asked_for_and_is_taken_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = Command("")("up", f"--data={tmp_path / 'data'}", "--port=0", f"--http-port={port}")

    assert f"cannot serve HTTP on 127.0.0.1:{port}: address already in use" in refused.complaint


@KINDS
def test_on_every_address_of_ipv6_it_is_found_where_it_says(tmp_path: Path, kind: type[UpProcess]) -> None:
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("there is no IPv6 here")
    with kind(tmp_path, arguments=["--host=::", "--set=http.allow.unauthenticated=true"]) as up:
        assert up.bootstrap.startswith("[::1]:")
        Command(up.bootstrap).ok("topic", "create", "orders")
        assert up.http.startswith("http://[::1]:")
        assert get(f"{up.http}/readyz") == '{"status":"ready"}'


@pytest.mark.parametrize("brokers", [1, 3])
def test_http_is_not_open_to_other_machines_unless_somebody_says_so(tmp_path: Path, brokers: int) -> None:
    data = [f"--data={tmp_path / 'data'}", "--port=0", f"--brokers={brokers}"]

    refused = Command("")("up", *data, "--host=0.0.0.0")

    assert "HTTP on 0.0.0.0 would be open to everyone" in refused.complaint
    assert "http.allow.unauthenticated=true" in refused.complaint


@pytest.mark.parametrize("brokers", [1, pytest.param(3, marks=pytest.mark.long)])
def test_http_leaves_the_usual_port_to_a_broker_that_has_it(tmp_path: Path, brokers: int) -> None:
    ports = free_ports(brokers)
    # Tests that run at the same time may have the port that is really the usual one.
    script = (
        "from headrace.cli.machine import gateway; from headrace.cli.main import main; "
        f"gateway.USUAL_PORT = {ports[-1]}; main()"
    )
    arguments = ["up", f"--data={tmp_path / 'data'}", f"--port={ports[0]}", f"--brokers={brokers}", "--json"]
    with subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE) as up:
        try:
            assert up.stdout is not None
            said = json.loads(up.stdout.readline())
            assert said["bootstrap"].endswith(f":{ports[-1]}")
            assert get(f"{said['http']}/readyz") == '{"status":"ready"}'
        finally:
            up.terminate()


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_port_cannot_be_a_brokers_and_that_of_http(tmp_path: Path, brokers: int) -> None:
    ports = free_ports(brokers)
    data = f"--data={tmp_path / 'data'}"
    refused = Command("")(
        "up", data, f"--port={ports[0]}", f"--http-port={ports[-1]}", f"--brokers={brokers}"
    )
    assert refused.status == 1
    assert f"cannot serve HTTP on port {ports[-1]}: a broker has it" in refused.err.splitlines()[-1]


def test_a_gateway_can_be_a_process_by_itself(tmp_path: Path, up: UpProcess) -> None:
    arguments = ["gateway", f"--bootstrap={up.bootstrap}", "--port=0"]
    with ServerProcess(arguments, tmp_path / "gateway.log") as gateway:
        assert get(f"{gateway.http}/readyz") == '{"status":"ready"}'
        gateway.stop()
        assert gateway.returncode == 0


def test_a_gateway_does_not_wait_for_a_broker_that_hangs_when_it_is_told_to_stop(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        arguments = ["gateway", f"--bootstrap=127.0.0.1:{silent.getsockname()[1]}", "--port=0"]
        with ServerProcess(arguments, tmp_path / "gateway.log") as gateway:
            host, _, port = gateway.http.removeprefix("http://").partition(":")
            with socket.create_connection((host, int(port))) as asking:
                asking.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                broker, _ = silent.accept()
                with broker:
                    gateway.stop(STOP_S)
            assert gateway.returncode == 0


def test_a_gateway_that_hangs_does_not_keep_the_rest_from_stopping(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as up:
        get(f"{up.http}/healthz")
        (pid,) = gateways(up)
        os.kill(pid, signal.SIGSTOP)
        up.stop(STOP_S)
        assert up.returncode == 0
        assert "gateway has not stopped within 3 s: killing it" in up.log.read_text()
        assert (up.data / "broker-1" / ".kafka_cleanshutdown").exists(), "the broker ends as it should"


def test_what_it_says_can_be_for_machines(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headrace", "up", f"--data={tmp_path / 'data'}", "--port=0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as up:
        assert up.stdout is not None
        said = json.loads(up.stdout.readline())
        up.terminate()

    assert said.keys() == {"ready", "bootstrap", "http"}
    assert up.returncode == 0


def test_logs_can_be_for_machines(tmp_path: Path) -> None:
    with UpProcess(tmp_path, environment={"HEADRACE_LOG_FORMAT": "json"}) as up:
        up.wait_for_log('"message": "broker 1 is elected controller, controller epoch 1"')
        assert all(line.startswith("{") for line in up.log.read_text().splitlines())
