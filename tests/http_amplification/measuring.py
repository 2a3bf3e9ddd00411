"""Sending attacks to a gateway, and what they cost it."""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import requests

from http_amplification.attacks import Attack, Request

PATIENCE_S: Final = 60.0  # for an answer; one that takes longer is a finding
_SERVED: Final = (sys.executable, "-m", "http_amplification.served")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What an attack took of the gateway: CPU and event loop in seconds, memory at its peak."""

    label: str
    sent_bytes: int
    statuses: tuple[int | None, ...]
    cpu_s: float
    children_cpu_s: float
    held_s: float
    grown_bytes: int

    def findings(self) -> list[str]:
        """Which bounds it exceeds."""
        return [said for said, is_over in _BOUNDS.items() if is_over(self)]

    def __str__(self) -> str:
        return (
            f"{self.cpu_s:7.2f} s {self.children_cpu_s:6.2f} s {1000 * self.held_s:7.0f} ms "
            f"{self.grown_bytes / 2**20:8.1f} MB {self.sent_bytes / 2**10:8.0f} kB "
            f"{self.statuses} {self.label}"
        )


HEAD: Final = "    CPU  children  loop held   memory     sent  statuses"

# What a request may cost whatever its size, and how much more for each byte.
CPU_S, CPU_S_BYTE = 0.5, 5e-6
CHILDREN_S = 3.0  # a job of the codecs' processes is ended after two
HELD_S, HELD_S_BYTE = 0.4, 2e-7  # Python's own collection of garbage may take 0.3 s of it
GROWN_BYTES, GROWN_BYTE = 48 * 2**20, 60

_BOUNDS: Final[Mapping[str, Callable[[Cost], bool]]] = {
    "CPU": lambda cost: cost.cpu_s > CPU_S + CPU_S_BYTE * cost.sent_bytes,
    "CPU of its processes": lambda cost: cost.children_cpu_s > CHILDREN_S + CPU_S_BYTE * cost.sent_bytes,
    "event loop": lambda cost: cost.held_s > HELD_S + HELD_S_BYTE * cost.sent_bytes,
    "memory": lambda cost: cost.grown_bytes > GROWN_BYTES + GROWN_BYTE * cost.sent_bytes,
    "no answer": lambda cost: None in cost.statuses,
    "a failure": lambda cost: 500 in cost.statuses,
}


class Served:
    """A gateway that is measured, in a process of its own."""

    def __init__(self, bootstrap: str, path: str) -> None:
        environment = {"PYTHONPATH": path, "PATH": "/usr/bin:/bin"}
        self._process = subprocess.Popen(
            [*_SERVED, bootstrap], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        self._address = self.url.removeprefix("http://")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def warm(self, attack: Attack) -> None:
        """Send it, and do not measure."""
        for request in attack.requests:
            self._send(request)

    def cost(self, attack: Attack) -> Cost:
        """Send all of it, and return what it took."""
        for request in attack.requests[: attack.prepared]:
            self._send(request)
        before = self.measured()
        sent = attack.requests[attack.prepared :]
        statuses = tuple(self._send(each) for each in sent)
        after = self.measured()
        return Cost(
            label=attack.label,
            sent_bytes=sum(each.size for each in sent),
            statuses=statuses,
            cpu_s=after["cpu_s"] - before["cpu_s"],
            children_cpu_s=after["children_cpu_s"] - before["children_cpu_s"],
            held_s=after["held_s"],
            grown_bytes=int(after["peak_bytes"] - before["rss_bytes"]),
        )

    def measured(self) -> dict[str, Any]:
        """Return what the gateway has used; `peak_bytes` since the last call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline()))

    def _send(self, request: Request) -> int | None:
        connection = http.client.HTTPConnection(self._address, timeout=PATIENCE_S)
        try:
            connection.putrequest(request.method, request.target)
            given = dict(request.headers)
            if request.body is not None:
                given["content-length"] = str(len(request.body))
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders(request.body)
            answer = connection.getresponse()
            while answer.read(1 << 16):
                pass
        except TimeoutError:
            return None
        except (OSError, http.client.HTTPException):
            return 0 if self.is_alive else None  # it may close before all is sent
        else:
            return answer.status
        finally:
            connection.close()


def known_names(url: str) -> dict[str, str]:
    """Make a topic, a group, a consumer and a subject, and return what they and the cluster are called."""
    topic = f"attacked-{time.time_ns()}"
    requests.post(
        f"{url}/api/v1/topics", json={"name": topic, "partitions": 1}, timeout=30
    ).raise_for_status()
    requests.post(f"{url}/api/v1/topics/{topic}/messages", json={"value": "x"}, timeout=30).raise_for_status()
    requests.post(
        f"{url}/subjects/{topic}-value/versions", json={"schema": '"string"'}, timeout=30
    ).raise_for_status()
    consumer = {"name": "c", "format": "json", "auto.offset.reset": "earliest"}
    kind = {"content-type": "application/vnd.kafka.v2+json"}
    requests.post(
        f"{url}/consumers/g", data=json.dumps(consumer), headers=kind, timeout=30
    ).raise_for_status()
    cluster = requests.get(f"{url}/v3/clusters", timeout=30).json()["data"][0]["cluster_id"]
    topic_names = dict.fromkeys(("name", "topic", "topic_name"), topic)
    return topic_names | {
        "cluster_id": cluster,
        "group": "g",
        "consumer_group_id": "g",
        "instance": "c",
        "consumer_id": "c",
        "subject": f"{topic}-value",
        "version": "1",
        "id": "1",
        "schema_id": "1",
        "partition": "0",
        "partition_id": "0",
        "broker_id": "1",
    }
