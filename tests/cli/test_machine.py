"""What a cluster on one machine stands on: ports that are kept, a directory that is held."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from headrace.cli.machine import supervisor
from headrace.cli.machine.directory import LARGEST_LOG_BYTES, DataDirectory
from headrace.cli.machine.gateway import on_demand
from headrace.cli.machine.process import ProcessEnded, Program
from headrace.cli.support.process import CommandFailed
from headrace.gateway.listening import bound
from headrace.system import ports
from headrace.system.ports import PortsTaken, reserved

LOOPBACK = "127.0.0.1"


def test_a_reserved_port_is_there_for_who_asks_for_it_and_for_nobody_else() -> None:
    with reserved(LOOPBACK, 0, 3) as row:
        assert row == list(range(row[0], row[0] + 3))
        for _ in range(2):  # the process on it dies, and comes back
            with socket.create_server((LOOPBACK, row[1])) as listening:
                socket.create_connection(listening.getsockname(), 1).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, row[1]), 1)


def test_ports_that_somebody_keeps_are_not_any_free_ones() -> None:
    """Who takes several in a row takes all but the first by number, and meets those of others."""
    taken: set[int] = set()
    with ExitStack() as stack:
        for _ in range(100):
            row = stack.enter_context(reserved(LOOPBACK, 0, 20))
            assert taken.isdisjoint(row)
            taken.update(row)


def test_a_row_of_any_ports_is_not_taken_from_the_ephemeral_ports() -> None:
    """Outgoing connections hold those, and hold them for a minute after they were closed."""
    first_ephemeral = int(ports.EPHEMERAL_PORTS.read_text().split()[0])
    with reserved(LOOPBACK, 0, 20) as row:
        assert row[-1] < first_ephemeral


def test_the_kernel_chooses_the_row_if_nearly_all_ports_are_ephemeral(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    all_of_them = tmp_path / "ip_local_port_range"
    all_of_them.write_text("1024\t65535\n")
    monkeypatch.setattr(ports, "EPHEMERAL_PORTS", all_of_them)
    with reserved(LOOPBACK, 0, 3) as row:
        assert row == list(range(row[0], row[0] + 3))


def test_a_port_on_which_something_listens_cannot_be_reserved() -> None:
    with socket.create_server((LOOPBACK, 0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(PortsTaken, match=f"cannot listen on 127.0.0.1:{port}: the port is in use"):
            reserved(LOOPBACK, port, 1).__enter__()


def test_a_host_that_is_not_here_is_refused() -> None:
    for port in (0, 9092):
        with pytest.raises(PortsTaken, match=r"cannot listen on 192\.0\.2\.1"):
            reserved("192.0.2.1", port, 1).__enter__()


def test_a_directory_is_held_by_one_process_and_by_its_children(tmp_path: Path) -> None:
    """A child that outlives its parent for a moment keeps the next one out for so long."""
    script = (
        "import subprocess, sys, time; from pathlib import Path\n"
        "from headrace.cli.machine.directory import DataDirectory\n"
        "with DataDirectory(Path(sys.argv[1])).held() as hold:\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'input()'], pass_fds=(hold,), stdin=0)\n"
        "    print('held', flush=True)\n"
        "    time.sleep(600)\n"
    )
    directory = DataDirectory(tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(
            CommandFailed, match=f"in use by another `headrace up`, process {holder.pid}: stop it"
        ):
            directory.held().__enter__()
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        with pytest.raises(CommandFailed, match="in use by processes of an earlier `headrace up`"):
            directory.held().__enter__()
        holder.stdin.close()  # its child reads the end of it, and ends
        with directory.held():
            assert (tmp_path / "up.pid").read_text() == f"{os.getpid()}\n"


def test_a_log_that_has_grown_too_long_is_put_aside(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    log = directory.log("broker-1")
    log.write_text("a line\n")
    assert directory.log("broker-1").read_text() == "a line\n"
    os.truncate(log, LARGEST_LOG_BYTES + 1)
    assert not directory.log("broker-1").exists()
    assert (tmp_path / "logs" / "broker-1.log.1").stat().st_size == LARGEST_LOG_BYTES + 1


def test_a_broker_does_not_wait_for_a_parent_that_does_not_listen() -> None:
    script = (
        "import os; from headrace.cli.machine.member import report\n"
        "os.set_blocking(1, False)\n"
        "for _ in range(10_000): report('WARNING ' + 'x' * 100)\n"
    )
    chatty = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with chatty:
        assert chatty.wait(30) == 0, "its pipe is full, and nobody reads it"
        assert chatty.stdout is not None
        lines = chatty.stdout.read().splitlines()
    assert set(lines) == {b"WARNING " + b"x" * 100}, "a line is told whole or not at all"


def test_a_process_that_ends_after_its_log_has_gone_is_told_of(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "failing.log"

    async def serves() -> bool:
        log.unlink(missing_ok=True)
        return False

    async def start() -> None:
        await Program("failing", log, (), command=["/bin/false"], serves=serves).start()

    with pytest.raises(ProcessEnded, match="failing ended with status 1; its log cannot be read"):
        asyncio.run(start())


def test_a_gateway_that_cannot_be_started_on_demand_any_more_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def answer() -> None:
        listening = bound(LOOPBACK, 0)
        async with on_demand(listening, f"{LOOPBACK}:9092", log=None):
            listening.close()
            while not caplog.records:  # noqa: ASYNC110  it can but be looked at
                await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(answer(), 30))
    assert "the gateway is not started any more" in caplog.text


def test_a_process_whose_parent_has_gone_before_it_began_does_not_begin() -> None:
    stranger = subprocess.run(
        [sys.executable, "-m", "headrace.cli.machine.member", "echo", "1", "exec", "/bin/echo", "began"],
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert (stranger.returncode, stranger.stdout) == (1, b"")


def lives(tmp_path: Path, number: int) -> tuple[Program, Path]:
    """A program that runs for as long as a file is there, and ends with status 1 once it is gone."""
    file = tmp_path / f"alive-{number}"
    file.touch()
    there = f"pathlib.Path({str(file)!r}).exists()"
    script = f"import pathlib, sys, time\nwhile {there}: time.sleep(0.01)\nsys.exit(1)"
    command = [sys.executable, "-c", script]

    async def serves() -> bool:
        return file.exists()

    return Program(f"server-{number}", tmp_path / "log", (), command=command, serves=serves), file


@pytest.mark.parametrize("servers", [1, 3])
def test_a_supervisor_gives_up_when_those_that_can_be_started_are_no_majority(
    servers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "LONGEST_DELAY_S", 0.05)
    monkeypatch.setattr(supervisor, "FIRST_DELAY_S", 0.05)
    dispensable = (servers - 1) // 2

    async def run() -> None:
        members, files = zip(*(lives(tmp_path, number) for number in range(servers)), strict=True)
        supervised = supervisor.Supervisor([members])
        await supervised.start(members)
        watching = asyncio.ensure_future(supervised.watch(dispensable=dispensable))
        try:
            for file in files[:dispensable]:
                file.unlink()
            while len(supervised._cannot_start) < dispensable:  # noqa: ASYNC110  it can but be asked
                await asyncio.sleep(0.01)
            assert not watching.done()  # the others go on
            files[-1].unlink()
            with pytest.raises(CommandFailed, match=r"server-\d ended with status 1.*, \d+ times in a row"):
                await watching
        finally:
            await supervised.stop()

    asyncio.run(run())
