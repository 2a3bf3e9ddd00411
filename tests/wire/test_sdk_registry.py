"""The SDK's formats with the schema registry that a broker has beside it."""

from typing import Any

import pytest
from confluent_kafka.schema_registry import header_schema_id_serializer
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

from headrace import Avro, Consumer, JsonSchema, NotReadable, NotSerializable, Producer, Protobuf
from wire.process import BrokerProcess
from wire.sdk import QUICK, topic_of

AVRO = {"type": "record", "name": "Order", "fields": [{"name": "count", "type": "int"}]}
JSON_SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}


def protobuf_class() -> Any:
    """What protoc would make of `message Order { int32 count = 1; }`."""
    described = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    field = described.message_type.add(name="Order").field.add(name="count", number=1)
    field.type, field.label = field.TYPE_INT32, field.LABEL_OPTIONAL
    pool = descriptor_pool.DescriptorPool()
    pool.Add(described)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


@pytest.mark.parametrize(("written", "read"), [(Avro(AVRO), Avro()), (JsonSchema(JSON_SCHEMA), JsonSchema())])
def test_records_are_written_with_their_schema_and_read_by_its_id(
    broker: BrokerProcess, written: Any, read: Any
) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Producer(broker.bootstrap, value=written, registry=broker.http) as producer:
        for count in range(5):
            producer.send(topic, {"count": count})
        with pytest.raises(NotSerializable, match=f"the value for topic {topic}"):
            producer.send(topic, {"count": "many"})
    with Consumer(broker.bootstrap, topic, value=read, registry=broker.http, **QUICK) as consumer:
        assert [message.value["count"] for message in consumer.read(stop_at_end=True)] == [0, 1, 2, 3, 4]


def test_a_schema_s_id_may_be_in_a_header_of_each_record_s_own(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    by_header = Avro(AVRO, settings={"schema.id.serializer": header_schema_id_serializer})
    headers = [("who", b"alice")]
    with Producer(broker.bootstrap, value=by_header, registry=broker.http, receipts=True) as producer:
        producer.send(topic, {"count": 1000})
        producer.send(topic, {"count": 2000}, headers=headers)
        producer.post(topic, {"count": 3000}, headers={"who": b"bob"})
    assert headers == [("who", b"alice")]
    with Consumer(broker.bootstrap, topic, **QUICK) as consumer:
        raw = list(consumer.read(stop_at_end=True))
    assert [[name for name, _ in message.headers] for message in raw] == [
        ["__value_schema_id"],
        ["who", "__value_schema_id"],
        ["who", "__value_schema_id"],
    ]
    assert raw[0].value == b"\xd0\x0f"  # Avro's 1000, and nothing before it


def test_protobuf_records_come_back_as_objects_of_their_class(broker: BrokerProcess) -> None:
    topic, order = topic_of(broker.bootstrap, []), protobuf_class()
    with Producer(broker.bootstrap, value=Protobuf(order), registry=broker.http) as producer:
        producer.send(topic, order(count=3))
    with Consumer(broker.bootstrap, topic, value=Protobuf(order), registry=broker.http, **QUICK) as consumer:
        assert [message.value for message in consumer.read(stop_at_end=True)] == [order(count=3)]


def test_a_record_without_a_schema_s_id_cannot_be_read(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [b"plain"])
    with (
        Consumer(broker.bootstrap, topic, value=Avro(), registry=broker.http, **QUICK) as consumer,
        pytest.raises(NotReadable, match=f"{topic}-0 at offset 0"),
    ):
        next(iter(consumer))
