"""Schemas that headers name, by what they are called in every registry: confluent-kafka's serialisers."""

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

import headrace
from compat.protobuf_messages import messages
from headrace.testing import Broker

BY_HEADER = {"schema.id.serializer": header_schema_id_serializer}
PROTO = """syntax = "proto3"; package shop;
message Item { string name = 1; }
message Order { int64 id = 1; message Line { int64 count = 1; } }
"""
_numbers = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def registry(broker: Broker) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": broker.http}) as client:
        yield client


@pytest.fixture
def other(broker: Broker) -> Iterator[SchemaRegistryClient]:
    """A client that has cached nothing, and so has to ask for what the header says."""
    with SchemaRegistryClient({"url": broker.http}) as client:
        yield client


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"headed-{next(_numbers)}"
    broker.create_topic(name, partitions=1)
    return name


def sent(broker: Broker, topic: str, serialize: Callable[..., bytes | None], value: object) -> Message:
    """The value as it comes back."""
    headers: list[tuple[str, bytes]] = [("trace", b"7")]
    data = serialize(value, SerializationContext(topic, MessageField.VALUE, headers))
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, data, headers=headers, partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    (message,) = consumer.consume(1, 30)
    consumer.close()
    return message


def read(message: Message, deserialize: Callable[..., Any]) -> Any:
    context = SerializationContext(str(message.topic()), MessageField.VALUE, message.headers())
    return deserialize(message.value(), context)


def test_avro_is_read_by_the_schema_that_the_header_names(
    broker: Broker, registry: SchemaRegistryClient, other: SchemaRegistryClient, topic: str
) -> None:
    schema = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "item", "type": "string"}]})
    order = {"item": "green tea"}  # data of five bytes or less is too short for AvroDeserializer 2.16
    message = sent(broker, topic, AvroSerializer(registry, schema, conf=BY_HEADER), order)

    assert message.value() == b"\x12green tea"  # the data, and nothing before it
    named = dict(message.headers() or ())["__value_schema_id"]
    guid = other.get_latest_version(f"{topic}-value").guid
    assert named == b"\1" + bytes.fromhex((guid or "").replace("-", ""))
    assert read(message, AvroDeserializer(other)) == order


def test_json_is_read_by_the_schema_that_the_header_names(
    broker: Broker, registry: SchemaRegistryClient, other: SchemaRegistryClient, topic: str
) -> None:
    schema = json.dumps({"title": "Person", "type": "object"})
    message = sent(broker, topic, JSONSerializer(schema, registry, conf=BY_HEADER), {"name": "Ada"})

    assert json.loads(message.value() or b"") == {"name": "Ada"}
    assert read(message, JSONDeserializer(None, schema_registry_client=other)) == {"name": "Ada"}


@pytest.fixture(params=["Item", "Order", "Order.Line"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A class of messages."""
    return messages(tmp_path, shop=PROTO)[request.param]


def test_protobuf_is_read_by_the_schema_and_as_the_message_that_the_header_names(
    broker: Broker, registry: SchemaRegistryClient, other: SchemaRegistryClient, topic: str, made: Any
) -> None:
    value = made(name="tea") if made.DESCRIPTOR.name == "Item" else made()
    message = sent(broker, topic, ProtobufSerializer(made, registry, BY_HEADER), value)

    assert message.value() == value.SerializeToString()
    assert read(message, ProtobufDeserializer(made, schema_registry_client=other)) == value


def test_our_sdk_writes_and_reads_them(broker: Broker, topic: str) -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "string"}]}
    order = {"item": "green tea"}
    with headrace.Producer(
        broker.bootstrap, value=headrace.Avro(schema, settings=BY_HEADER), registry=broker.http
    ) as producer:
        producer.send(topic, order, headers=[("trace", b"7")])
    with headrace.Consumer(
        broker.bootstrap, topic, group="sdk", value=headrace.Avro(), registry=broker.http
    ) as consumer:
        (message,) = consumer.read(stop_at_end=True)

    assert [name for name, _ in message.headers] == ["trace", "__value_schema_id"]
    assert message.value == order
