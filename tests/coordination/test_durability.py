"""The embedded coordinator killed in the middle of a load: what it acknowledged is there afterwards."""

import threading
import time
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from coordination.conftest import WAIT_S, wait_until
from coordination.processes import CoordinatorProcess
from headrace.coordination.embedded import journal as journal_module
from headrace.coordination.embedded.journal import Journal

ROUNDS = 5
WRITERS = 3
MIN_ACKNOWLEDGED = 150  # in each round, before the kill


class Writer(threading.Thread):
    """Writes ever larger numbers, many at a time, and remembers the largest acknowledged of each node."""

    def __init__(self, address: str, number: int) -> None:
        super().__init__()
        self.client = KazooClient(address, timeout=10)
        self.path = f"/writer-{number}"
        self.acknowledged: dict[str, int] = {}
        self.sent = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        self.client.start(WAIT_S)
        self.client.retry(self.client.ensure_path, self.path)  # another writer may have been quicker
        while not self.stopped.is_set():
            results = [(path, self.sent, self._write(path)) for path in self._paths()]
            for path, value, result in results:
                try:
                    result.get(timeout=WAIT_S)
                except (KazooException, KazooTimeoutError):
                    continue
                self.acknowledged[path] = max(value, self.acknowledged.get(path, -1))

    def _paths(self) -> list[str]:
        self.sent += 1
        return [f"{self.path}/{self.sent}-{number}" for number in range(10)] + [self.path] * 10

    def _write(self, path: str) -> Any:
        data = str(self.sent).encode()
        return (
            self.client.set_async(path, data) if path == self.path else self.client.create_async(path, data)
        )

    def end(self) -> None:
        self.stopped.set()
        self.join(4 * WAIT_S)
        self.client.stop()
        self.client.close()


def test_every_acknowledged_write_survives_kill_9(data_dir: Path) -> None:
    with CoordinatorProcess(data_dir) as coordinator:
        writers = [Writer(coordinator.address, number) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        for _ in range(ROUNDS):
            target = sum(len(writer.acknowledged) for writer in writers) + MIN_ACKNOWLEDGED
            wait_until(lambda target=target: sum(len(w.acknowledged) for w in writers) > target)  # type: ignore[misc]
            coordinator.kill()
            coordinator.start()
        for writer in writers:
            writer.end()
        coordinator.kill()

    nodes = Journal(data_dir, tick_ms=1000).state.tree.nodes
    for writer in writers:
        assert len(writer.acknowledged) > ROUNDS
        for path, value in writer.acknowledged.items():
            assert path in nodes, path
            assert int(nodes[path].data or b"-1") >= value, path


def test_sessions_and_their_nodes_survive_a_kill(data_dir: Path) -> None:
    with CoordinatorProcess(data_dir, tick_ms=500) as coordinator:
        client = KazooClient(coordinator.address, timeout=8)
        client.start(WAIT_S)
        client.create("/mine", b"", ephemeral=True)
        session = client.client_id[0]
        coordinator.kill()
        coordinator.start()

        assert client.retry(client.exists, "/mine").ephemeralOwner == session
        assert client.client_id[0] == session
        client.stop()
        client.close()


def test_a_session_whose_client_died_meanwhile_expires_after_the_restart(data_dir: Path) -> None:
    with CoordinatorProcess(data_dir, tick_ms=100) as coordinator:
        client = KazooClient(coordinator.address, timeout=1)
        client.start(WAIT_S)
        client.create("/theirs", b"", ephemeral=True)
        coordinator.kill()
        client.stop()
        client.close()
        coordinator.start()
        watcher = KazooClient(coordinator.address, timeout=2)
        watcher.start(WAIT_S)

        assert watcher.exists("/theirs")  # a whole timeout from the start on
        wait_until(lambda: not watcher.exists("/theirs"))
        watcher.stop()
        watcher.close()


def test_a_clean_stop_and_start_goes_on_with_the_data(data_dir: Path) -> None:
    with CoordinatorProcess(data_dir) as coordinator:
        for number in range(3):
            client = KazooClient(coordinator.address)
            client.start(WAIT_S)
            client.create(f"/{number}")
            assert {str(each) for each in range(number + 1)} < set(client.get_children("/"))
            client.stop()
            client.close()
            assert coordinator.stop() == 0
            coordinator.start()


def test_snapshots_under_load_lose_nothing(data_dir: Path) -> None:
    """More writes than a log file takes; the directory stays small, and a kill costs nothing."""
    count = journal_module.SNAPSHOT_AFTER_ENTRIES + 3000
    with CoordinatorProcess(data_dir, options=("--no-sync",)) as coordinator:
        client = KazooClient(coordinator.address)
        client.start(WAIT_S)
        client.create("/a")
        for start in range(0, count, 1000):
            for result in [client.set_async("/a", str(start + number).encode()) for number in range(1000)]:
                result.get(WAIT_S)
        wait_until(lambda: list(data_dir.glob("*.snapshot")))
        last, stat = client.get("/a")
        coordinator.kill()
        started = time.monotonic()
        coordinator.start()
        assert client.retry(client.get, "/a") == (last, stat)
        assert time.monotonic() - started < WAIT_S
        client.stop()
        client.close()


def test_a_server_that_stood_still_does_not_blame_its_clients(data_dir: Path) -> None:
    import os  # noqa: PLC0415
    import signal  # noqa: PLC0415

    with CoordinatorProcess(data_dir, tick_ms=100) as coordinator:
        client = KazooClient(coordinator.address, timeout=1)
        client.start(WAIT_S)
        client.create("/mine", b"", ephemeral=True)
        os.kill(coordinator.pid, signal.SIGSTOP)
        time.sleep(2.5)  # more than two timeouts
        os.kill(coordinator.pid, signal.SIGCONT)

        assert client.retry(client.exists, "/mine").ephemeralOwner == client.client_id[0]
        client.stop()
        client.close()
