"""Kafka Connect: distributed workers with exactly.once.source.support, and what their REST API says."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import requests

from ports import free_port
from transactions.java_programs import JavaPrograms, Process

REQUEST_TIMEOUT_S: Final = 20  # a worker may wait for a rebalance before it answers, or be paused
SETTINGS: Final = {
    "group.id": "connect",
    "exactly.once.source.support": "enabled",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "offset.storage.partitions": "5",
    "status.storage.topic": "connect-status",
    "plugin.discovery": "service_load",
    "session.timeout.ms": "6000",  # the tasks of a worker that was killed are assigned anew after it
    "heartbeat.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "0",
    # A worker that starts reads the committed offsets to their end, so that it waits for open transactions of
    # workers that were killed.
    "producer.transaction.timeout.ms": "15000",
}


class Worker(Process):
    """One worker, with its REST API on a port of its own."""

    def __init__(self, programs: JavaPrograms, bootstrap: str, root: Path, name: str) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        settings = SETTINGS | {"bootstrap.servers": bootstrap, "listeners": self.url}
        properties = root / f"{name}.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        super().__init__(programs.command(main, str(properties)), root / f"{name}.log")


class Connect:
    """The REST API, of any worker that answers."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers

    def configure(self, name: str, settings: Mapping[str, str]) -> bool:
        """Create a connector or change its settings; False if no worker can do that just now."""
        return self._ask("PUT", f"/connectors/{name}/config", settings) is not None

    def restart_tasks(self, name: str) -> bool:
        """Restart a connector and its tasks; False if no worker can do that just now."""
        return self._ask("POST", f"/connectors/{name}/restart?includeTasks=true") is not None

    def failures(self, name: str) -> list[str]:
        """Return the stack traces of failed tasks, as far as a worker knows them."""
        status = self._ask("GET", f"/connectors/{name}/status") or {"tasks": []}
        return [each.get("trace", "") for each in status["tasks"] if each["state"] == "FAILED"]

    def tasks_of(self, name: str) -> dict[str, list[int]]:
        """Return the running tasks of a connector, by the address of their worker."""
        status = self._ask("GET", f"/connectors/{name}/status") or {"tasks": []}
        found: dict[str, list[int]] = {}
        for each in status["tasks"]:
            if each["state"] == "RUNNING":
                found.setdefault(f"http://{each['worker_id']}", []).append(each["id"])
        return found

    def _ask(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        for worker in self._workers:
            try:
                answer = requests.request(method, worker.url + path, json=body, timeout=REQUEST_TIMEOUT_S)
            except (requests.ConnectionError, requests.Timeout):
                continue
            if answer.ok:
                return answer.json() if answer.content else {}
            assert answer.status_code in {404, 409, 500, 503}, answer.text  # starting, or rebalancing
        return None
