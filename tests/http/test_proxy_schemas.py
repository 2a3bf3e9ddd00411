"""Records by schemas of the registry: written by one client, read by another, shown to people."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from http_support.asking import Asking, v2, wait_until
from support.process import UpProcess

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "raw", "type": "bytes", "default": ""},
        ],
    }
)
PERSON = json.dumps({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]})
TRUCK = """syntax = "proto3"; package fleet;
message Truck { message At { double lat = 1; } int32 id = 1; At at = 2; }"""


def values(gateway: Asking, topic: str, embedded: str) -> list[Any]:
    """The values of a topic, as a consumer of the proxy reads them."""
    body = {"format": embedded, "auto.offset.reset": "earliest"}
    uri = gateway.post(f"/consumers/{topic}", body)["base_uri"]
    gateway.post(f"{uri}/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
    found = wait_until(lambda: gateway.get(f"{uri}/records", accept=v2(embedded)), "no record has come")
    gateway.delete(uri)
    return [each["value"] for each in found]


def first(broker: UpProcess, topic: str, read: Callable[[bytes, SerializationContext], Any]) -> Any:
    """The first value of a topic, as confluent-kafka reads it."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"read-{topic}"} | EARLIEST)
    consumer.subscribe([topic])
    message = wait_until(lambda: consumer.poll(0.2), "no record has come")
    consumer.close()
    return read(message.value(), SerializationContext(topic, MessageField.VALUE))


EARLIEST = {"auto.offset.reset": "earliest"}


def test_avro_goes_from_the_proxy_to_confluents_client(gateway: Asking, broker: UpProcess) -> None:
    topic = gateway.topic()
    order = {"id": 7, "note": {"string": "tea"}, "at": 1_700_000_000_123, "raw": "\u00ff"}
    body = {"value_schema": ORDER, "records": [{"value": order}]}
    answer = gateway("POST", f"/topics/{topic}", body, kind=v2("avro")).json()
    assert gateway.get(f"/subjects/{topic}-value/versions/latest")["id"] == answer["value_schema_id"]

    with SchemaRegistryClient({"url": gateway.url}) as registry:
        found = first(broker, topic, AvroDeserializer(registry))
    assert (found["id"], found["note"], found["raw"]) == (7, "tea", b"\xff")
    assert values(gateway, topic, "avro") == [order]
    (shown,) = gateway.get(f"/api/v1/topics/{topic}/messages?text=TEA")["messages"]
    assert (shown["value_encoding"], shown["value_schema_id"]) == ("avro", answer["value_schema_id"])
    assert shown["value"] == {"id": 7, "note": "tea", "at": "2023-11-14T22:13:20.123000+00:00", "raw": "/w=="}


def test_avro_goes_from_confluents_client_to_the_proxy(gateway: Asking, broker: UpProcess) -> None:
    topic = gateway.topic()
    with SchemaRegistryClient({"url": gateway.url}) as registry:
        write = AvroSerializer(registry, ORDER)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        value = {"id": 1, "note": None, "at": 5, "raw": b""}
        producer.produce(topic, write(value, SerializationContext(topic, MessageField.VALUE)))
        producer.flush()
    assert values(gateway, topic, "avro") == [{"id": 1, "note": None, "at": 5, "raw": ""}]


def test_json_by_a_schema(gateway: Asking, broker: UpProcess) -> None:
    topic = gateway.topic()
    body = {"value_schema": PERSON, "records": [{"value": {"age": 5}}]}
    gateway.post(f"/topics/{topic}", body, kind=v2("jsonschema"))
    assert first(broker, topic, JSONDeserializer(PERSON)) == {"age": 5}
    assert values(gateway, topic, "jsonschema") == [{"age": 5}]

    body = {"value_schema": PERSON, "records": [{"value": {"age": "five"}}]}
    status, code, said = gateway.refused("POST", f"/topics/{topic}", body, kind=v2("jsonschema"))
    assert (status, code) == (422, 42203)
    assert '"five" is not of type "integer"' in said


def test_protobuf_by_a_schema(gateway: Asking) -> None:
    topic = gateway.topic()
    body = {"value_schema": TRUCK, "records": [{"value": {"id": 3, "at": {"lat": 1.5}}}]}
    gateway.post(f"/topics/{topic}", body, kind=v2("protobuf"))
    assert values(gateway, topic, "protobuf") == [{"id": 3, "at": {"lat": 1.5}}]
    (shown,) = gateway.get(f"/api/v1/topics/{topic}/messages")["messages"]
    assert (shown["value_encoding"], shown["value"]) == ("protobuf", {"id": 3, "at": {"lat": 1.5}})


def test_v3_names_a_schema_in_four_ways(gateway: Asking) -> None:
    topic = gateway.topic()
    (cluster,) = gateway.get("/v3/clusters")["data"]
    at = f"{cluster['metadata']['self']}/topics/{topic}/records"
    made = gateway.post(at, {"value": {"type": "AVRO", "schema": '"long"', "data": 1}})["value"]
    assert (made["subject"], made["schema_version"], made["size"]) == (f"{topic}-value", 1, 6)
    gateway.post(at, {"value": {"schema_id": made["schema_id"], "data": 2}})
    gateway.post(at, {"value": {"schema_version": 1, "data": 3}})
    gateway.post(at, {"value": {"data": 4}})
    gateway.post(at, {"value": {"subject": f"{topic}-value", "data": 5}})
    assert values(gateway, topic, "avro") == [1, 2, 3, 4, 5]


def test_an_id_has_to_be_one_of_the_subject(gateway: Asking) -> None:
    topic, other = gateway.topic(), gateway.topic()
    subject = f"/subjects/{other}-value/versions"
    schema_id = gateway.post(subject, {"schema": '"long"'})["id"]
    (cluster,) = gateway.get("/v3/clusters")["data"]
    at = f"{cluster['metadata']['self']}/topics/{topic}/records"

    gateway.get(f"/schemas/ids/{schema_id}?subject=of%20{topic}-value")  # which is another question
    asked = {"value_schema_id": schema_id, "records": [{"value": 1}]}
    refused = gateway.refused("POST", f"/topics/{topic}", asked, kind=v2("avro"))
    assert refused[:2] == (422, 42205)
    assert refused[2].startswith(f"schema {schema_id} is not registered for subject '{topic}-value'")
    asked = {"value": {"schema_id": schema_id, "data": 1}}
    assert gateway.refused("POST", at, asked)[:2] == (422, 42205)
    assert gateway.values(topic) == []

    gateway.post(at, {"value": {"schema_id": schema_id, "subject": f"{other}-value", "data": 2}})
    assert values(gateway, topic, "avro") == [2]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"records": [{"value": 1}]}, 42202),
        ({"records": [{"key": 1, "value": 1}], "value_schema": '"int"'}, 42201),
        ({"records": [{"value": "x"}], "value_schema": '"int"'}, 42203),
        ({"records": [{"value": 1}, {"value": "x"}], "value_schema": '"int"'}, 42203),
        ({"records": [{"value": 1}], "value_schema": "{"}, 42205),
        ({"records": [{"value": 1}], "value_schema": '"nonsense"'}, 42205),
        ({"records": [{"value": 1}], "value_schema_id": 4711}, 42205),
        ({"records": [{"value": 1}], "value_schema_id": -1}, 422),
        ({"records": [{"value": 1}], "value_schema": 7}, 422),
        ({"records": [{"key": "x", "value": 1}], "value_schema": '"int"', "key_schema": '"int"'}, 42203),
    ],
)
def test_what_does_not_fit_is_neither_written_nor_registered(
    gateway: Asking, fields: dict[str, Any], code: int
) -> None:
    topic = gateway.topic()
    subjects = gateway.get("/subjects")
    assert gateway.refused("POST", f"/topics/{topic}", fields, kind=v2("avro"))[:2] == (422, code)
    assert gateway.values(topic) == []
    assert gateway.get("/subjects") == subjects


def test_a_schema_that_breaks_a_subjects_rules_is_refused(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.post(
        f"/topics/{topic}", {"value_schema": '"string"', "records": [{"value": "x"}]}, kind=v2("avro")
    )
    body = {"value_schema": '"int"', "records": [{"value": 1}]}
    assert gateway.refused("POST", f"/topics/{topic}", body, kind=v2("avro"))[0] == 409
    assert len(values(gateway, topic, "avro")) == 1


def test_a_value_that_only_looks_like_one_of_a_schema_is_shown_as_bytes(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, "AAAAEgcB", encoding="base64")
    (shown,) = gateway.get(f"/api/v1/topics/{topic}/messages")["messages"]
    assert (shown["value"], shown["value_encoding"]) == ("AAAAEgcB", "base64")
