"""The embedded coordinator beside Apache ZooKeeper: writes, reads, latency, start, memory.

.venv/bin/python bench/coordination.py [--seconds 3] [--directory DIR]

Both run as a process of their own with their defaults, one after the other, on the same disk. The client
is a few lines of raw sockets, so that its own cost hides as little as possible.
"""

import argparse
import os
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.coordination.errors import ZooKeeperUnavailable
from headrace.coordination.zookeeper import PORTS_EACH, ZooKeeper
from headrace.system.ports import reserved

PATH = b"/bench"
DATA = b"x" * 100
IN_FLIGHT = 100
HEADRACE = Path(sys.executable).with_name("headrace")


class Client:
    """One session that keeps `window` requests in flight."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        self.socket.sendall(frame(struct.pack(">iqiq", 0, 0, 30_000, 0) + buffer(bytes(16)) + b"\0"))
        self._wait()

    def ask(self, request: bytes) -> None:
        self.socket.sendall(request)
        self._wait()

    def replies(self) -> int:
        """How many have arrived; blocks for the first."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the server hung up")
        self._buffer += data
        count = position = 0
        while len(self._buffer) - position >= 4:
            end = position + 4 + int.from_bytes(self._buffer[position : position + 4], "big")
            if end > len(self._buffer):
                break
            position = end
            count += 1
        del self._buffer[:position]
        return count

    def _wait(self) -> None:
        while not self.replies():
            pass


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3, help="for each line")
    parser.add_argument("--directory", type=Path, help="where to write; a temporary directory if not given")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        results = {"embedded": measure(embedded, Path(name) / "embedded", arguments.seconds)}
        try:
            results["ZooKeeper"] = measure(zookeeper, Path(name) / "zookeeper", arguments.seconds)
        except ZooKeeperUnavailable as reason:
            print(reason)
    print(f"{'':44}" + "".join(f"{kind:>14}" for kind in results))
    for line in results["embedded"]:
        print(f"{line:44}" + "".join(f"{values[line]:>14}" for values in results.values()))


Server = Callable[[Path], Iterator[tuple[str, int]]]


def measure(server: Server, directory: Path, seconds: float) -> dict[str, str]:
    figures = {}
    started = time.perf_counter()
    with contextmanager(server)(directory) as (address, pid):
        client = Client(address)
        figures["process start to first session"] = f"{(time.perf_counter() - started) * 1000:,.0f} ms"
        figures["memory when idle"] = memory(pid)
        client.ask(create(PATH))
        figures["set, one at a time, p50"] = latency(client, set_data(), seconds)
        figures["get, one at a time, p50"] = latency(client, get_data(), seconds)
        clients = [client, *(Client(address) for _ in range(3))]
        for title, request in (("sets", set_data()), ("gets", get_data())):
            for count in (1, 4):
                before = cpu_seconds(pid)
                done = pipelined(clients[:count], request, seconds)
                plural = "s" if count > 1 else ""
                name = f"{title}/s, {count} connection{plural}, {IN_FLIGHT} in flight"
                figures[name] = f"{done / seconds:,.0f}"
                figures[f"  {title}, {count} conn.: server CPU for one"] = (
                    f"{(cpu_seconds(pid) - before) / done * 1e6:,.0f} us"
                )
        figures["memory after that"] = memory(pid)
        for each in clients:
            each.socket.close()
    return figures


def embedded(directory: Path) -> Iterator[tuple[str, int]]:
    command = [str(HEADRACE), "coordinator", "--data", str(directory), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip().partition("=")[2], process.pid
    finally:
        process.terminate()
        process.communicate()


def zookeeper(directory: Path) -> Iterator[tuple[str, int]]:
    with reserved("127.0.0.1", 0, PORTS_EACH) as ports:
        (server,) = ZooKeeper(directory, port=ports).servers
        process = subprocess.Popen(server.prepare(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not server.serves():
                time.sleep(0.01)
            yield server.address, process.pid
        finally:
            process.terminate()
            process.communicate()


def latency(client: Client, request: bytes, seconds: float) -> str:
    times = []
    deadline = time.perf_counter() + seconds / 2
    while (before := time.perf_counter()) < deadline:
        client.ask(request)
        times.append(time.perf_counter() - before)
    return f"{statistics.median(times) * 1e6:,.0f} us"


def pipelined(clients: list[Client], request: bytes, seconds: float) -> int:
    done = 0
    selector = selectors.DefaultSelector()
    for client in clients:
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.socket.sendall(request * IN_FLIGHT)
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        for key, _ in selector.select(1):
            arrived = key.data.replies()
            done += arrived
            key.data.socket.sendall(request * arrived)
    left = [IN_FLIGHT] * len(clients)
    for number, client in enumerate(clients):  # so that the next line starts with nothing in flight
        while left[number] > 0:
            left[number] -= client.replies()
    return done


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def buffer(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def create(path: bytes) -> bytes:
    acl = struct.pack(">ii", 1, 31) + buffer(b"world") + buffer(b"anyone")
    return frame(struct.pack(">ii", 1, 1) + buffer(path) + buffer(b"") + acl + struct.pack(">i", 0))


def set_data() -> bytes:
    return frame(struct.pack(">ii", 1, 5) + buffer(PATH) + buffer(DATA) + struct.pack(">i", -1))


def get_data() -> bytes:
    return frame(struct.pack(">ii", 1, 4) + buffer(PATH) + b"\0")


def memory(pid: int) -> str:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return f"{pages * os.sysconf('SC_PAGE_SIZE') / 2**20:,.0f} MiB"


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
