"""confluent-kafka's registry client and its serialisers, end to end: a real broker, a real registry."""

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

from compat.kafka_tools.server import KafkaServer
from compat.protobuf_messages import messages
from headrace.gateway.serving import serve_in_thread
from headrace.testing import Broker

ONE = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
TWO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string", "default": "tea"}],
    }
)
PERSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Person",
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    }
)
COMMON_PROTO = 'syntax = "proto3"; package shop; message Item { string name = 1; }'
ORDER_PROTO = (
    'syntax = "proto3"; package shop; import "common.proto"; import "google/protobuf/timestamp.proto";'
    "message Order { int64 id = 1; repeated Item items = 2; google.protobuf.Timestamp at = 3; }"
)
_numbers = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def registry(broker: Broker) -> Iterator[SchemaRegistryClient]:
    """A client that has cached nothing."""
    with SchemaRegistryClient({"url": broker.http}) as client:
        yield client


@pytest.fixture
def other(broker: Broker) -> Iterator[SchemaRegistryClient]:
    """Another one."""
    with SchemaRegistryClient({"url": broker.http}) as client:
        yield client


@pytest.fixture
def third(broker: Broker) -> Iterator[SchemaRegistryClient]:
    """A third one."""
    with SchemaRegistryClient({"url": broker.http}) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"topic-{next(_numbers)}"


@dataclass
class Wire:
    """A topic that values are written to and read from."""

    broker: Broker
    topic: str

    @property
    def context(self) -> SerializationContext:
        return SerializationContext(self.topic, MessageField.VALUE)

    def write(self, serialize: Callable[..., bytes | None], *values: Any) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for value in values:
            producer.produce(self.topic, serialize(value, self.context), partition=0)
        assert producer.flush(30) == 0

    def read(self, deserialize: Callable[..., Any], number: int) -> list[Any]:
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": "unused"})
        consumer.assign([TopicPartition(self.topic, 0, 0)])
        messages = consumer.consume(number, 30)
        consumer.close()
        assert len(messages) == number
        return [deserialize(each.value(), self.context) for each in messages]


@pytest.fixture
def wire(broker: Broker, topic: str) -> Wire:
    broker.create_topic(topic, partitions=1)
    return Wire(broker, topic)


# -- the client ------------------------------------------------------------------------------------


def test_every_call_of_the_client(registry: SchemaRegistryClient, topic: str) -> None:
    subject = f"{topic}/value"
    schema_id = registry.register_schema(subject, Schema(ONE, "AVRO"))
    assert registry.get_schema(schema_id).schema_str == registry.get_latest_version(subject).schema.schema_str
    assert registry.lookup_schema(subject, Schema(ONE, "AVRO")).schema_id == schema_id
    assert subject in registry.get_subjects()
    assert registry.get_versions(subject) == [1]
    assert registry.get_version(subject, 1).schema_id == schema_id
    assert registry.get_subjects_by_schema_id(schema_id) == [subject]
    places = registry.get_schema_versions(schema_id)
    assert [(each.subject, each.version) for each in places] == [(subject, 1)]
    assert set(registry.get_schema_types()) == {"AVRO", "JSON", "PROTOBUF"}
    guid = registry.get_latest_version(subject).guid
    assert guid is not None
    assert json.loads(registry.get_schema_by_guid(guid).schema_str or "") == json.loads(ONE)

    assert registry.set_compatibility(subject, "FULL") == {"compatibility": "FULL"}
    assert registry.get_compatibility(subject) == "FULL"
    assert registry.test_compatibility(subject, Schema(TWO, "AVRO"))
    assert not registry.test_compatibility(subject, Schema('"string"', "AVRO"))
    assert registry.test_compatibility_all_versions(subject, Schema(TWO, "AVRO"))
    registry.set_config(subject, ServerConfig(ConfigCompatibilityLevel.NONE, compatibility_group="major"))
    assert registry.get_config(subject).compatibility_group == "major"
    registry.delete_config(subject)
    assert registry.get_compatibility() == "BACKWARD"

    assert registry.get_global_mode() == "READWRITE"
    assert registry.update_mode(subject, "READONLY") == "READONLY"
    assert registry.get_mode(subject) == "READONLY"
    assert registry.delete_mode(subject) == "READONLY"
    assert registry.get_contexts() == ["."]

    assert registry.delete_version(subject, 1) == 1
    assert registry.delete_version(subject, 1, permanent=True) == 1
    registry.register_schema(f"{subject}-2", Schema(ONE, "AVRO"))
    assert registry.delete_subject(f"{subject}-2") == [1]
    assert registry.delete_subject(f"{subject}-2", permanent=True) == [1]


def test_what_is_refused_is_an_error_with_its_number(registry: SchemaRegistryClient, topic: str) -> None:
    with pytest.raises(SchemaRegistryError) as missing:
        registry.get_latest_version("no such subject")
    registry.register_schema(topic, Schema(ONE, "AVRO"))
    with pytest.raises(SchemaRegistryError) as incompatible:
        registry.register_schema(topic, Schema('"string"', "AVRO"))
    with pytest.raises(SchemaRegistryError) as invalid:
        registry.register_schema(topic, Schema("{", "AVRO"))

    assert [each.value.error_code for each in (missing, incompatible, invalid)] == [40401, 409, 42201]


def test_metadata_of_a_schema_reaches_other_clients(
    registry: SchemaRegistryClient, other: SchemaRegistryClient, topic: str
) -> None:
    metadata = Metadata(tags=None, properties=MetadataProperties({"owner": "us"}), sensitive=[])
    registry.register_schema(topic, Schema(ONE, "AVRO", metadata=metadata))

    found = other.get_latest_with_metadata(topic, {"owner": "us"})
    assert found.schema.metadata == metadata


# -- serialisers -----------------------------------------------------------------------------------


def test_avro_evolves(registry: SchemaRegistryClient, other: SchemaRegistryClient, wire: Wire) -> None:
    wire.write(AvroSerializer(registry, ONE), {"id": 1})
    wire.write(AvroSerializer(registry, TWO), {"id": 2, "item": "cake"})

    assert wire.read(AvroDeserializer(other), 2) == [{"id": 1}, {"id": 2, "item": "cake"}]
    as_two = wire.read(AvroDeserializer(other, TWO), 2)
    assert as_two == [{"id": 1, "item": "tea"}, {"id": 2, "item": "cake"}]
    assert other.get_versions(f"{wire.topic}-value") == [1, 2]


def test_avro_without_registering_uses_what_is_there(registry: SchemaRegistryClient, wire: Wire) -> None:
    serializer = AvroSerializer(registry, ONE, conf={"auto.register.schemas": False})
    with pytest.raises((SchemaRegistryError, SerializationError)):
        wire.write(serializer, {"id": 1})
    registry.register_schema(f"{wire.topic}-value", Schema(ONE, "AVRO"))
    wire.write(AvroSerializer(registry, ONE, conf={"auto.register.schemas": False}), {"id": 1})

    assert wire.read(AvroDeserializer(registry), 1) == [{"id": 1}]


def test_avro_writes_with_the_latest_version(registry: SchemaRegistryClient, wire: Wire) -> None:
    for text in (ONE, TWO):
        registry.register_schema(f"{wire.topic}-value", Schema(text, "AVRO"))
    serializer = AvroSerializer(
        registry, ONE, conf={"auto.register.schemas": False, "use.latest.version": True}
    )
    wire.write(serializer, {"id": 1, "item": "cake"})

    assert wire.read(AvroDeserializer(registry), 1) == [{"id": 1, "item": "cake"}]


def test_avro_refers_to_what_is_registered_elsewhere(registry: SchemaRegistryClient, wire: Wire) -> None:
    registry.register_schema(f"{wire.topic}-order", Schema(ONE, "AVRO"))
    orders = {"name": "orders", "type": {"type": "array", "items": "Order"}}
    text = json.dumps({"type": "record", "name": "Basket", "fields": [orders]})
    reference = SchemaReference("Order", f"{wire.topic}-order", 1)
    wire.write(
        AvroSerializer(registry, Schema(text, "AVRO", [reference])), {"orders": [{"id": 1}, {"id": 2}]}
    )

    assert wire.read(AvroDeserializer(registry), 1) == [{"orders": [{"id": 1}, {"id": 2}]}]


def test_an_incompatible_schema_stops_the_producer(registry: SchemaRegistryClient, wire: Wire) -> None:
    wire.write(AvroSerializer(registry, ONE), {"id": 1})
    with pytest.raises(SchemaRegistryError, match="incompatible"):
        wire.write(AvroSerializer(registry, '"string"'), "text")


def test_json_schema_refuses_what_does_not_fit(registry: SchemaRegistryClient, wire: Wire) -> None:
    serializer = JSONSerializer(PERSON, registry)
    wire.write(serializer, {"name": "Ada"})
    with pytest.raises(SerializationError):
        wire.write(serializer, {"name": 1})

    deserializer = JSONDeserializer(None, schema_registry_client=registry)
    assert wire.read(deserializer, 1) == [{"name": "Ada"}]


def test_json_schema_refers_to_what_is_registered_elsewhere(
    registry: SchemaRegistryClient, wire: Wire
) -> None:
    registry.register_schema(f"{wire.topic}-person", Schema(PERSON, "JSON"))
    text = json.dumps({"type": "object", "properties": {"who": {"$ref": "person.json"}}})
    reference = SchemaReference("person.json", f"{wire.topic}-person", 1)
    serializer = JSONSerializer(Schema(text, "JSON", [reference]), registry)
    wire.write(serializer, {"who": {"name": "Ada"}})
    with pytest.raises(SerializationError):
        wire.write(serializer, {"who": {}})

    assert wire.read(JSONDeserializer(None, schema_registry_client=registry), 1) == [{"who": {"name": "Ada"}}]


def test_protobuf_registers_what_it_imports_and_is_read_by_others(
    registry: SchemaRegistryClient, other: SchemaRegistryClient, wire: Wire, tmp_path: Path
) -> None:
    made = messages(tmp_path, common=COMMON_PROTO, order=ORDER_PROTO)
    order = made["Order"](id=7, items=[made["Item"](name="tea")])
    wire.write(ProtobufSerializer(made["Order"], registry), order)

    assert wire.read(ProtobufDeserializer(made["Order"], schema_registry_client=other), 1) == [order]
    latest = other.get_latest_version(f"{wire.topic}-value")
    assert "common.proto" in [each.name for each in latest.schema.references or ()]
    assert "message Order" in (latest.schema.schema_str or "")


def test_protobuf_without_registering_finds_what_is_there(
    registry: SchemaRegistryClient,
    other: SchemaRegistryClient,
    third: SchemaRegistryClient,
    wire: Wire,
    tmp_path: Path,
) -> None:
    made = messages(tmp_path, common=COMMON_PROTO, order=ORDER_PROTO)["Order"]
    wire.write(ProtobufSerializer(made, registry), made(id=1))
    by_lookup = {"auto.register.schemas": False}
    wire.write(ProtobufSerializer(made, other, by_lookup), made(id=2))
    by_latest = {"auto.register.schemas": False, "use.latest.version": True}
    wire.write(ProtobufSerializer(made, third, by_latest), made(id=3))

    found = wire.read(ProtobufDeserializer(made, schema_registry_client=registry), 3)
    assert [each.id for each in found] == [1, 2, 3]
    assert registry.get_versions(f"{wire.topic}-value") == [1]


def test_protobuf_evolves(registry: SchemaRegistryClient, wire: Wire, tmp_path: Path) -> None:
    versions = []
    for number, more in enumerate(("", "string note = 2;")):
        directory = tmp_path / str(number)
        directory.mkdir()
        text = f'syntax = "proto3"; package shop; message Order {{ int64 id = 1; {more} }}'
        versions.append(messages(directory, order=text)["Order"])
    wire.write(ProtobufSerializer(versions[0], registry), versions[0](id=1))
    wire.write(ProtobufSerializer(versions[1], registry), versions[1](id=2, note="soon"))

    found = wire.read(ProtobufDeserializer(versions[1], schema_registry_client=registry), 2)
    assert [(each.id, each.note) for each in found] == [(1, ""), (2, "soon")]


def test_schemas_are_kept_by_apache_kafka_too(
    kafka_server: KafkaServer, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING),
        serve_in_thread(kafka_server.bootstrap) as gateway,
        SchemaRegistryClient({"url": gateway.url}) as client,
    ):
        made = [client.register_schema("s", Schema(text, "AVRO")) for text in (ONE, TWO)]
    assert made == [1, 2]
    assert sum("only one gateway" in each for each in caplog.messages) == 1

    with serve_in_thread(kafka_server.bootstrap) as later, SchemaRegistryClient({"url": later.url}) as client:
        assert client.get_versions("s") == [1, 2]
