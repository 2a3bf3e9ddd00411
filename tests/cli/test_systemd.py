"""Services under systemd with Type=notify: what they send to $NOTIFY_SOCKET, when, and from which process."""

import array
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.process import ServerProcess

WAIT_S: Final = 60.0
CREDENTIALS: Final = struct.Struct("3i")  # struct ucred: pid, uid, gid


class Systemd:
    """The receiver of a service's notifications, as systemd is."""

    def __init__(self, address: str) -> None:
        self.address = address.replace("\0", "@", 1)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(address)

    def received(self, timeout_s: float = WAIT_S) -> tuple[int, list[str]]:
        """Return the sender's process id and the lines of the next notification."""
        self._socket.settimeout(timeout_s)
        data, extra, _flags, _sender = self._socket.recvmsg(4096, socket.CMSG_SPACE(CREDENTIALS.size))
        ((_level, _kind, credentials),) = extra
        return CREDENTIALS.unpack(array.array("b", credentials))[0], data.decode().splitlines()

    def has_more(self) -> bool:
        try:
            self.received(timeout_s=0.0)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    path = str(tmp_path / "notify")
    found = Systemd(path if request.param == "path" else f"\0{path}")
    yield found
    found.close()


def service(root: Path, kind: str, notify_socket: str, zookeeper: str = "") -> ServerProcess:
    arguments = {
        "coordinator": ["coordinator", f"--data={root / 'coordinator'}", "--port=0", "--no-sync"],
        "up": ["up", f"--data={root / 'up'}", "--port=0"],
        "node": [
            "broker",
            "--set=broker.id=1",
            "--set=headrace.brokers=2",
            f"--set=log.dirs={root / 'logs'}",
            f"--set=zookeeper.connect={zookeeper}",
            "--set=listeners=PLAINTEXT://127.0.0.1:0",
        ],
    }
    return ServerProcess(arguments[kind], root / f"{kind}.log", {"NOTIFY_SOCKET": notify_socket})


@pytest.mark.parametrize("kind", ["coordinator", "up"])
def test_a_service_says_that_it_is_ready_and_that_it_stops(
    tmp_path: Path, systemd: Systemd, kind: str
) -> None:
    with service(tmp_path, kind, systemd.address) as process:
        sender, lines = systemd.received()
        assert (sender, lines[0]) == (process.pid, "READY=1")
        assert lines[1].startswith("STATUS=ready ")
        assert process.address in lines[1]
        assert not systemd.has_more()
        process.stop()
        assert systemd.received() == (sender, ["STOPPING=1"])
        assert process.returncode == 0


def test_only_the_supervisor_of_a_node_speaks_to_systemd(tmp_path: Path) -> None:
    """With NotifyAccess=main, the default, systemd accepts notifications of the main process alone."""
    systemd = Systemd(str(tmp_path / "notify"))
    with (
        service(tmp_path, "coordinator", "") as coordinator,
        service(tmp_path, "node", systemd.address, coordinator.address) as process,
    ):
        sender, lines = systemd.received()
        assert (sender, lines[0]) == (process.pid, "READY=1")
        process.stop()
        assert systemd.received() == (sender, ["STOPPING=1"])
        assert not systemd.has_more()
    systemd.close()


def test_a_service_goes_on_without_a_receiver(tmp_path: Path) -> None:
    with service(tmp_path, "coordinator", str(tmp_path / "nobody")) as process:
        process.wait_for_log("systemd does not get")
        process.stop()
        assert process.returncode == 0
