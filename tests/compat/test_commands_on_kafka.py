"""`headrace` on Apache Kafka: by a profile, with a schema registry that the profile names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.command import Command
from compat.kafka_tools.server import KafkaServer
from support.process import ServerProcess

SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'


@pytest.fixture
def registry(kafka_server: KafkaServer, tmp_path: Path) -> Iterator[str]:
    arguments = ["gateway", "--port", "0", "--bootstrap", kafka_server.bootstrap]
    with ServerProcess(arguments, tmp_path / "gateway.log") as gateway:
        yield gateway.http


def test_records_are_encoded_and_decoded_by_the_registry_of_a_profile(
    kafka_server: KafkaServer, registry: str, tmp_path: Path
) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path), "HEADRACE_BOOTSTRAP": ""}
    run = Command("")
    file = tmp_path / "order.avsc"
    file.write_text(SCHEMA)
    settings = ("-X", f"schema.registry.url={registry}")
    assert (
        run("profile", "add", "kafka", "-b", kafka_server.bootstrap, *settings, environment=home).status == 0
    )
    assert run("profile", "use", "kafka", environment=home).status == 0
    kafka_server.create_topic("orders")
    kafka_server.create_topic("plain")

    assert run("schema", "register", "orders-value", str(file), environment=home).status == 0
    written = run("produce", "orders", '{"id": 7}', environment=home)
    assert (written.status, written.err) == (0, "")
    shown = run("consume", "orders", "--exit-at-end", environment=home)
    assert (shown.text, shown.err) == ('{"id":7}\n', "")
    refused = run("produce", "orders", "{}", environment=home).complaint
    assert "record 1, value: this does not fit the Avro schema: the field id is missing" in refused

    assert run("produce", "plain", "text", environment=home).status == 0
    assert run("consume", "plain", "--exit-at-end", environment=home).text == "text\n"


def test_without_a_registry_records_of_kafka_stay_as_they_are(kafka_server: KafkaServer) -> None:
    kafka_server.create_topic("orders")
    run = Command(kafka_server.bootstrap)
    run.ok("produce", "orders", "--whole", stdin=b"\0\0\0\0\1xyz")
    assert run.ok("consume", "orders", "--exit-at-end").out == b"\0\0\0\0\1xyz\n"
