"""Whose fault it is that a record has no bytes: its own, or the registry's."""

import socket
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import SerializationError

from headrace.client.errors import Unreachable
from headrace.client.serializers.formats import format_of
from headrace.client.serializers.registry import Avro
from headrace.client.serializers.registry_errors import registry_unreachable

URL = "http://me:secret@127.0.0.1:{port}"


@pytest.fixture
def nobody() -> Any:
    """A registry's address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield {"url": URL.format(port=taken.getsockname()[1]), "max.retries": 0}


def test_a_registry_that_is_down_is_named_and_its_password_is_not(nobody: dict[str, Any]) -> None:
    with pytest.raises(Unreachable, match=r"at http://127.0.0.1:\d+: connection refused$"):
        Avro({"type": "string"}, nobody).serialize("x", "orders", "value", None)
    with pytest.raises(Unreachable, match=r"at http://127.0.0.1:\d+: connection refused$"):
        Avro(registry=nobody).deserialize(b"\0\0\0\0\1ab", "orders", "value", None)


def test_a_client_of_a_registry_knows_where_it_is(nobody: dict[str, Any]) -> None:
    client = SchemaRegistryClient(nobody)
    with pytest.raises(Unreachable, match=r"at http://127.0.0.1:\d+: "):
        Avro({"type": "string"}, client).serialize("x", "orders", "value", None)


def test_where_nobody_says_where_it_is_the_request_does(nobody: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="refused") as raised:
        SchemaRegistryClient(nobody).get_subjects()
    assert "at http://127.0.0.1:" in str(registry_unreachable(raised.value))
    assert "secret" not in str(registry_unreachable(raised.value))


@pytest.mark.parametrize("status", [500, 503, 401, 403, 429])
def test_an_answer_that_is_about_us_or_the_moment_is_not_the_record_s_fault(status: int) -> None:
    found = registry_unreachable(SchemaRegistryError(status, status * 100, "Not now"), "http://r:1")
    assert str(found).startswith(f"the schema registry at http://r:1 answers {status}: not now")


@pytest.mark.parametrize(("status", "code"), [(404, 404), (404, -1), (404, None), (405, 405)])
def test_a_path_that_is_not_there_is_no_registry(status: int, code: Any) -> None:
    found = registry_unreachable(SchemaRegistryError(status, code, "Not Found"), "http://r:1/wrong")
    assert str(found) == f"the server at http://r:1/wrong is not a schema registry: {status}"


@pytest.mark.parametrize(
    "error",
    [
        SchemaRegistryError(409, 409, "incompatible"),
        SchemaRegistryError(404, 40403, "no such schema"),
        SchemaRegistryError(422, 42201, "invalid schema"),
        SerializationError("no magic byte"),
        ValueError("an int is required"),
        FileNotFoundError(2, "no such file"),
    ],
)
def test_what_is_about_the_record_is_the_record_s_fault(error: Exception) -> None:
    assert registry_unreachable(error, "http://r:1") is None


def test_what_lies_beneath_other_errors_is_found() -> None:
    error = SerializationError("no schema")
    error.__cause__ = TimeoutError(110, "Connection timed out")
    found = registry_unreachable(error, "http://r:1, http://s:2")
    assert str(found) == "no schema registry answers at http://r:1,http://s:2: connection timed out"


def test_a_serialiser_of_confluent_kafka_s_names_the_registry_too(nobody: dict[str, Any]) -> None:
    avro = AvroSerializer(SchemaRegistryClient(nobody), '"string"')
    with pytest.raises(Unreachable, match=r"no schema registry answers at http://127.0.0.1:\d+: "):
        format_of(avro).serialize("x", "orders", "value", None)
