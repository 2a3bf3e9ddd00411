"""The two contenders as processes: started, asked for Metadata, stopped whatever happens.

Each gets what its own documentation starts it with: Headrace `headrace up`, Kafka the JVM options of
bin/kafka-server-start.sh and its default settings.
"""

import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

from confluent_kafka.admin import AdminClient, NewTopic

from compare import process
from compare.drive import Endpoint
from compare.node import Node
from compare.wire import answers_metadata, topic_id
from compat.kafka_tools.java import KafkaJava, find_kafka
from compat.kafka_tools.server import CLUSTER_ID, SINGLE_NODE, client_settings
from headrace.client.wire.connection import Address

START_TIMEOUT_S: Final = 60
STOP_TIMEOUT_S: Final = 20
HOST: Final = "127.0.0.1"
HEADRACE_UP: Final = f"{Path(sys.executable).with_name('headrace')} up --data {{data}} --port {{port}}"
KAFKA_JVM: Final = (  # what bin/kafka-server-start.sh and bin/kafka-run-class.sh pass
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


class Contender(Protocol):
    """What a load needs of what it runs on: one broker, or a cluster of them."""

    @property
    def name(self) -> str: ...

    @property
    def bootstrap(self) -> str: ...

    def cpu_seconds(self) -> float: ...

    def resident_bytes(self) -> int: ...

    def create_topic(self, name: str, *, partitions: int = 1) -> None:
        """Return when the leaders of all its partitions answer for them."""

    def delete_topic(self, name: str) -> None: ...


class Server:
    """A broker that runs, and what its process costs."""

    def __init__(
        self,
        name: str,
        command: list[str],
        port: int,
        log: Path,
        environment: Mapping[str, str] = os.environ,
        *,
        load: Endpoint | None = None,
        before: Node | None = None,
    ) -> None:
        self.name: Final = name
        self.address: Final = Address(HOST, port)
        self.load: Final = load or Endpoint(self.address)
        self.bootstrap: Final = f"{HOST}:{port}"
        self.seconds_to_metadata = 0.0
        self._command = command
        self._log = log
        self._environment = environment
        self._before = before  # a process that the broker needs; its CPU time does not count
        self._process: subprocess.Popen[bytes] | None = None
        self._admin: Any = None

    def __enter__(self) -> Self:
        if self._before is not None:
            self._before.start()
            self._before.wait_until_it_says("ready")
        started = time.perf_counter()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=self._environment,
            )
        try:
            self._wait_for_metadata(self._process)
        except BaseException:
            self.stop()
            raise
        self.seconds_to_metadata = time.perf_counter() - started
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait_for_metadata(self, child: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and child.poll() is None:
            if answers_metadata(self.address):
                return
            time.sleep(0.005)
        last = "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
        raise ChildProcessError(f"{self.name} does not answer; the end of its log:\n{last}")

    def stop(self) -> None:
        """Ask it to end, and make it end if it does not."""
        child, self._process = self._process, None
        if child is not None:
            child.terminate()
            try:
                child.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        if self._before is not None:
            self._before.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    def cpu_seconds(self) -> float:
        return process.cpu_seconds(self.pid)

    def resident_bytes(self) -> int:
        return process.resident_bytes(self.pid)

    def create_topic(self, name: str, *, partitions: int = 1) -> None:
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1)
        self._client().create_topics([topic])[name].result(timeout=30)
        topic_id(self.address, name)  # waits for leaders

    def delete_topic(self, name: str) -> None:
        self._client().delete_topics([name])[name].result(timeout=30)

    def _client(self) -> Any:
        if self._admin is None:
            self._admin = AdminClient(client_settings(self.bootstrap))
        return self._admin


MakeServer = Callable[[], Server]
"""Makes a server with a directory and a port of its own, ready to be entered."""


def free_port() -> int:
    with socket.create_server((HOST, 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def headrace(root: Path, command: str = HEADRACE_UP, settings: Mapping[str, str] | None = None) -> MakeServer:
    sets = [f"--set={name}={value}" for name, value in (settings or {}).items()]
    # Bytecode is kept, as it is by an installed package: the first start makes it, the others use it.
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(root / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def make() -> Server:
        directory = Path(tempfile.mkdtemp(prefix="headrace-", dir=root))
        port = free_port()
        words = shlex.split(command.format(data=directory / "data", port=port)) + sets
        return Server("headrace", words, port, directory / "server.log", environment)

    return make


def kafka(root: Path, settings: Mapping[str, str] | None = None) -> MakeServer:
    java = find_kafka()

    def make() -> Server:
        directory = Path(tempfile.mkdtemp(prefix="kafka-", dir=root))
        port = free_port()
        listeners = {"listeners": f"PLAINTEXT://{HOST}:{port}"}
        command = formatted_kafka(java, directory, {**(settings or {}), **listeners})
        return Server("kafka", command, port, directory / "server.log")

    return make


def formatted_kafka(java: KafkaJava, directory: Path, settings: Mapping[str, str]) -> list[str]:
    """Format the storage of a Kafka with these settings, and return the command that starts it."""
    properties = _write_properties(directory, settings)
    options = ["--config", str(properties), "--cluster-id", CLUSTER_ID]
    formatting = java.command("kafka.tools.StorageTool", "format", *options)
    subprocess.run(formatting, check=True, capture_output=True, timeout=START_TIMEOUT_S)
    return java_server(java, properties)


def java_server(java: KafkaJava, properties: Path) -> list[str]:
    return [str(java.java), *KAFKA_JVM, "-cp", f"{java.jars}/*", "kafka.Kafka", str(properties)]


def _write_properties(directory: Path, settings: Mapping[str, str]) -> Path:
    controller = f"{HOST}:{free_port()}"
    every = SINGLE_NODE | {
        "controller.quorum.voters": f"1@{controller}",
        "log.dirs": str(directory / "data"),
        "log.segment.delete.delay.ms": "1000",  # deleted topics leave the disk to the next line
        **settings,
        "listeners": f"{settings['listeners']},CONTROLLER://{controller}",
    }
    path = directory / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in every.items()))
    return path
