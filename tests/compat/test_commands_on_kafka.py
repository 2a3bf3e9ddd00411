"""`headrace` on Apache Kafka: by a profile, with a schema registry that the profile names."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from cli.command import Command
from compat.kafka_tools.server import KafkaServer
from headrace import ConnectionSettings, Unreachable
from headrace.client.schemas import location
from headrace.testing.process import ServerProcess

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


class _OtherCluster(BaseHTTPRequestHandler):
    """A gateway that serves another cluster, and counts what it is asked for besides."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = b'{"data": [{"cluster_id": "another"}]}' if self.path == "/v3/clusters" else b"[]"
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def test_the_registry_of_another_cluster_on_this_machine_is_not_used(
    kafka_server: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`headrace schema delete` with the profile of one cluster must not change schemas of another one."""
    connection = ConnectionSettings(kafka_server.bootstrap)
    with ThreadingHTTPServer(("127.0.0.1", 0), _OtherCluster) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        try:
            monkeypatch.setattr(location, "USUAL", f"http://127.0.0.1:{server.server_port}")
            with pytest.raises(location.UnknownRegistry, match="names no schema registry: give its address"):
                location.discovered(connection)
        finally:
            server.shutdown()
            serving.join()
    assert _OtherCluster.asked == ["/v3/clusters"]
    with pytest.raises(Unreachable, match=r"no broker answers at 127\.0\.0\.1:1"):
        location.discovered(ConnectionSettings("127.0.0.1:1"))


def test_the_registry_of_the_same_cluster_on_this_machine_is_used(
    kafka_server: KafkaServer, registry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(location, "USUAL", registry)
    assert location.discovered(ConnectionSettings(kafka_server.bootstrap)).url == registry
