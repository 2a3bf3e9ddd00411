"""Topics that validate, by any strategy of subjects, written to by confluent-kafka's serialisers."""

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from compat.protobuf_messages import messages
from headrace.testing import Broker

CLASSES = "io.confluent.kafka.serializers.subject"
STRATEGIES = {
    "TopicNameStrategy": topic_subject_name_strategy,
    "RecordNameStrategy": record_subject_name_strategy,
    "TopicRecordNameStrategy": topic_record_subject_name_strategy,
}
PROTO = """syntax = "proto3"; package shop;
message Item { string name = 1; }
message Order { int64 id = 1; map<string, int64> prices = 2; message Line { int64 count = 1; } }
"""
_numbers = count()

Serialize = Callable[[Any, SerializationContext], bytes | None]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def registry(broker: Broker) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": broker.http}) as client:
        yield client


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[prefix_schema_id_serializer, header_schema_id_serializer])
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Where the serialiser says which schema it is."""
    return {"schema.id.serializer": request.param}


def topic_of(broker: Broker, strategy: str) -> str:
    name = f"by-{strategy}-{next(_numbers)}"
    configs = {
        "confluent.value.schema.validation": "true",
        "confluent.value.subject.name.strategy": f"{CLASSES}.{strategy}",
    }
    broker.create_topic(name, partitions=1, configs=configs)
    return name


def written(broker: Broker, topic: str, serialize: Serialize, value: object) -> KafkaError | None:
    """What became of a value."""
    outcomes: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    headers: list[tuple[str, bytes]] = []
    data = serialize(value, SerializationContext(topic, MessageField.VALUE, headers))
    producer.produce(topic, data, headers=headers, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(30) == 0
    return outcomes[0]


def other_than(strategy: str) -> list[str]:
    return [each for each in STRATEGIES if each != strategy]


def check_that_only(
    strategy: str, broker: Broker, make: Callable[[dict[str, Any]], Serialize], value: object
) -> None:
    """A topic takes what is registered by its own strategy, and nothing that is by the others alone."""
    topic = topic_of(broker, strategy)
    for each in other_than(strategy):
        error = written(broker, topic, make({"subject.name.strategy": STRATEGIES[each]}), value)
        assert error is not None, each
        assert error.code() == KafkaError.INVALID_RECORD
    assert written(broker, topic, make({"subject.name.strategy": STRATEGIES[strategy]}), value) is None


def test_avro_goes_by_the_strategy_of_the_topic(
    broker: Broker, registry: SchemaRegistryClient, strategy: str, where: dict[str, Any]
) -> None:
    record = {"type": "record", "name": f"Order{next(_numbers)}", "namespace": "acme", "fields": []}
    text = json.dumps(record)
    check_that_only(strategy, broker, lambda conf: AvroSerializer(registry, text, conf=conf | where), {})


def test_json_schema_goes_by_the_strategy_of_the_topic(
    broker: Broker, registry: SchemaRegistryClient, strategy: str, where: dict[str, Any]
) -> None:
    schema = json.dumps({"title": f"Person {next(_numbers)}", "type": "object"})
    check_that_only(strategy, broker, lambda conf: JSONSerializer(schema, registry, conf=conf | where), {})


@pytest.fixture(params=["Item", "Order", "Order.Line"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A class of messages in a package of its own."""
    text = PROTO.replace("package shop", f"package shop{next(_numbers)}")
    return messages(tmp_path, shop=text)[request.param]


def test_protobuf_goes_by_the_strategy_of_the_topic_and_by_the_message(
    broker: Broker, registry: SchemaRegistryClient, strategy: str, where: dict[str, Any], made: Any
) -> None:
    check_that_only(strategy, broker, lambda conf: ProtobufSerializer(made, registry, conf | where), made())


def test_another_message_of_the_same_file_needs_a_subject_of_its_own(
    broker: Broker, registry: SchemaRegistryClient, tmp_path: Path
) -> None:
    topic = topic_of(broker, "RecordNameStrategy")
    made = messages(tmp_path, shop=PROTO.replace("package shop", f"package other{next(_numbers)}"))
    by_name = {"subject.name.strategy": record_subject_name_strategy}
    assert written(broker, topic, ProtobufSerializer(made["Item"], registry, by_name), made["Item"]()) is None

    as_item: dict[str, Any] = {
        "subject.name.strategy": lambda _context, _name: made["Item"].DESCRIPTOR.full_name,
        "auto.register.schemas": False,
    }
    error = written(broker, topic, ProtobufSerializer(made["Order"], registry, as_item), made["Order"]())
    assert error is not None
    assert error.code() == KafkaError.INVALID_RECORD
    assert (
        written(broker, topic, ProtobufSerializer(made["Order"], registry, by_name), made["Order"]()) is None
    )


def test_one_topic_takes_records_of_several_types(broker: Broker, registry: SchemaRegistryClient) -> None:
    topic = topic_of(broker, "TopicRecordNameStrategy")
    conf = {"subject.name.strategy": topic_record_subject_name_strategy}
    for name in ("Placed", "Paid", "Sent"):
        record = json.dumps({"type": "record", "name": name, "fields": []})
        assert written(broker, topic, AvroSerializer(registry, record, conf=conf), {}) is None

    assert {f"{topic}-{name}" for name in ("Placed", "Paid", "Sent")} <= set(registry.get_subjects())


def test_a_strategy_that_is_none_is_refused_as_a_setting(broker: Broker) -> None:
    with pytest.raises(Exception, match="MyOwnStrategy"):
        topic_of(broker, "MyOwnStrategy")
