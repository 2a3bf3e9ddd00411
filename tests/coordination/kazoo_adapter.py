"""Lets kazoo's own test suite, as it comes with the package, run against the embedded coordinator.

A pytest plugin: `pytest -p coordination.kazoo_adapter --pyargs kazoo.tests`. The suite asks
`kazoo.testing.common` for a cluster and would start ZooKeeper from a distribution; here that module is
replaced by one whose cluster is a single `headrace coordinator` process.
"""

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ports import free_port

# The harness reads the version to know what the server can do.
os.environ.setdefault("ZOOKEEPER_VERSION", "3.9.5")
ALLOWED = os.environ.get("KAZOO_ALLOWED", "")
"""Names of the tests to run, with blanks between; all of them if empty."""

STOP_TIMEOUT_S = 10


class ManagedCoordinator:
    """Has the parts of kazoo's ManagedZooKeeper that its tests use."""

    def __init__(self) -> None:
        self.working_path = tempfile.mkdtemp(prefix="kazoo-suite-")
        self.host = "127.0.0.1"
        self.process: subprocess.Popen[str] | None = None
        self.client_port = free_port()

    @property
    def running(self) -> bool:
        return self.process is not None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.client_port}"

    secure_address = address

    def run(self) -> None:
        if self.process is not None:
            return
        command = [Path(sys.executable).with_name("headrace"), "coordinator", "--port", str(self.client_port)]
        command += ["--data", self.working_path, "--no-sync"]
        self.process = subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready"), line

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.communicate(timeout=STOP_TIMEOUT_S)
            self.process = None

    def destroy(self) -> None:
        self.stop()
        shutil.rmtree(self.working_path, ignore_errors=True)

    def get_logs(self, num_lines: int = 100) -> list[str]:  # noqa: ARG002 - kazoo's signature
        return []


class ZookeeperCluster:
    def __init__(self, **_settings: Any) -> None:
        self._servers = [ManagedCoordinator()]

    def __getitem__(self, index: int) -> ManagedCoordinator:
        return self._servers[index]

    def __iter__(self) -> Iterator[ManagedCoordinator]:
        return iter(self._servers)

    def start(self) -> None:
        for server in self._servers:
            server.run()

    def stop(self) -> None:
        for server in self._servers:
            server.stop()

    reset = stop

    def terminate(self) -> None:
        for server in self._servers:
            server.destroy()

    def get_logs(self) -> list[str]:
        return []


_common: Any = types.ModuleType("kazoo.testing.common")
_common.ZookeeperCluster = ZookeeperCluster
_common.ManagedZooKeeper = ManagedCoordinator
sys.modules["kazoo.testing.common"] = _common


def _count(name: str) -> int:
    return sum(type(each).__name__ == name for each in gc.get_objects())


_objgraph: Any = types.ModuleType("objgraph")  # of which the suite wants one function
_objgraph.count = _count
sys.modules.setdefault("objgraph", _objgraph)


def name_of(item: pytest.Item) -> str:
    """`test_lock.py::KazooLockTests::test_lock`, wherever the package is installed."""
    return item.nodeid.rpartition("/")[2]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what the allow list names; a name that the suite no longer has is an error."""
    if not ALLOWED:
        return
    allowed = set(ALLOWED.split())
    if unknown := allowed - {name_of(item) for item in items}:
        raise pytest.UsageError(f"kazoo's suite has no {', '.join(sorted(unknown))}")
    config.hook.pytest_deselected(items=[item for item in items if name_of(item) not in allowed])
    items[:] = [item for item in items if name_of(item) in allowed]
