"""Apache Kafka's own programs, for tests that want its opinion; the tests skip where it cannot be had."""

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat.kafka_tools.java import CLIENTS, KafkaJava, KafkaUnavailableError, find_kafka
from compat.kafka_tools.server import KafkaServer
from compat.kafka_tools.tools import KafkaTools
from compat.kafka_tools.written import SETTINGS, WrittenDirectory, write_directory
from compat.locking import only_one_process
from compat.secured_kafka import Files, SecuredKafka


@pytest.fixture(scope="session")
def kafka_java() -> KafkaJava:
    try:
        return find_kafka()
    except KafkaUnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def kafka_clients() -> KafkaJava:
    """Kafka's clients, of the version whose message definitions our schema has."""
    try:
        return find_kafka(CLIENTS)
    except KafkaUnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def kafka_tools(kafka_java: KafkaJava) -> KafkaTools:
    return KafkaTools(kafka_java)


@pytest.fixture
def kafka_server(kafka_java: KafkaJava, tmp_path: Path) -> Iterator[KafkaServer]:
    """A fresh, running Apache Kafka."""
    with KafkaServer(kafka_java, tmp_path, SETTINGS) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def kafka_written_directory(
    kafka_java: KafkaJava, tmp_path_factory: pytest.TempPathFactory
) -> WrittenDirectory:
    """What Apache Kafka left after a clean stop."""
    return _written_once(kafka_java, tmp_path_factory, "kafka-written", KafkaServer.stop)


@pytest.fixture(scope="session")
def kafka_killed_directory(
    kafka_java: KafkaJava, tmp_path_factory: pytest.TempPathFactory
) -> WrittenDirectory:
    """What Apache Kafka left after SIGKILL: stale checkpoints, padded indexes, no clean-shutdown mark."""
    return _written_once(kafka_java, tmp_path_factory, "kafka-killed", KafkaServer.kill)


def _written_once(
    java: KafkaJava, factory: pytest.TempPathFactory, name: str, end: Callable[[KafkaServer], None]
) -> WrittenDirectory:
    """Return the directory that Kafka left: one pytest process has it written for all of them."""
    base = factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"{name}-by-one"
    description = shared / "written.pickle"
    with only_one_process(shared):
        if not description.exists():
            with KafkaServer(java, factory.mktemp(name), SETTINGS) as kafka:
                written = write_directory(kafka)
                end(kafka)
            description.write_bytes(pickle.dumps(written))
        found: WrittenDirectory = pickle.loads(description.read_bytes())
    return found


@pytest.fixture(scope="session")
def secured_files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Certificates, and what else a secured cluster and its clients need."""
    return Files(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def secured_kafka(
    kafka_java: KafkaJava, secured_files: Files, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredKafka]:
    """An Apache Kafka that wants to know who asks, with some topics; nobody writes to `empty`."""
    with SecuredKafka(kafka_java, tmp_path_factory.mktemp("secured-kafka"), secured_files) as server:
        server.add_user()
        for topic in ("orders", "large", "brief", "empty"):
            server.create_topic(topic)
        yield server
