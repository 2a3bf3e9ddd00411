"""Schemas that make much of little, over HTTP: they are refused, and the gateway goes on."""

import json
from typing import Any

from confluent_kafka import Producer

from http_support.asking import Asking, v2
from support.process import UpProcess

EXPANDED = "with its references it has more than 100,000 subschemas for one value"


def register(gateway: Asking, subject: str, kind: str, schema: Any, *references: str) -> int:
    named = [{"name": each, "subject": each, "version": 1} for each in references]
    body = {"schemaType": kind, "schema": json.dumps(schema), "references": named}
    return int(gateway.post(f"/subjects/{subject}/versions", body)["id"])


def test_a_chain_of_27_schemas_that_refer_to_the_one_before_twice_is_refused(gateway: Asking) -> None:
    topic = gateway.topic()
    before = [f"{topic}-{number}" for number in range(27)]
    register(gateway, before[0], "JSON", {"type": "object"})
    for name, other in zip([*before[1:], f"{topic}-value"], before, strict=True):
        register(gateway, name, "JSON", {"allOf": [{"$ref": other}, {"$ref": other}]}, other)
    latest = gateway.get(f"/subjects/{topic}-value/versions/latest")["id"]
    body = {"value_schema_id": latest, "records": [{"value": {}}]}
    status, code, said = gateway.refused("POST", f"/topics/{topic}", body, kind=v2("jsonschema"))
    assert (status, code) == (422, 42205)
    assert EXPANDED in said


def test_defaults_are_bounded_as_they_are_written(gateway: Asking) -> None:
    topic = gateway.topic()
    field = {"name": "f", "type": "string", "default": "x" * 900_000}
    schema = json.dumps({"type": "record", "name": "R", "fields": [field]})
    body = {"value_schema": schema, "records": [{"value": {}}] * 2000}
    status, _, said = gateway.refused("POST", f"/topics/{topic}", body, kind=v2("avro"))
    assert status == 413
    assert "the encoded values have more than" in said


def test_a_record_that_is_a_billion_nulls_or_a_deep_chain_is_shown_as_bytes(
    broker: UpProcess, gateway: Asking
) -> None:
    topic = gateway.topic()
    nulls = register(gateway, f"{topic}-key", "AVRO", {"type": "array", "items": "null"})
    chain = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
    deep = register(gateway, f"{topic}-value", "AVRO", chain)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    a_billion = b"\x80\xa8\xd6\xb9\x07\x00"
    producer.produce(topic, bytes([0, *nulls.to_bytes(4), *a_billion]))
    producer.produce(topic, bytes([0, *deep.to_bytes(4)]) + b"\2" * 500_000 + b"\0")
    producer.produce(topic, bytes([0, *deep.to_bytes(4), 2, 0]))
    assert producer.flush(30) == 0
    found = gateway.get(f"/api/v1/topics/{topic}/messages?max_value_bytes=1000000&timeout_ms=30000")[
        "messages"
    ]
    assert [each["value_encoding"] for each in found] == ["base64", "base64", "avro"]
    assert found[2]["value"] == {"next": {"next": None}}


def test_a_request_may_have_one_record_that_is_too_costly_and_not_many(gateway: Asking) -> None:
    topic = gateway.topic()
    both = [
        "null",
        "A",
        {"type": "record", "name": "B", "fields": [{"name": "f", "type": ["null", "A", "B"]}]},
    ]
    schema = json.dumps({"type": "record", "name": "A", "fields": [{"name": "f", "type": both}]})
    value: Any = {"f": "no record"}
    for _ in range(60):
        value = {"f": value}
    costly = {"value": {"type": "AVRO", "schema": schema, "data": value}}
    entries = [
        *({"id": str(n), **costly} for n in range(50)),
        {"id": "x", "value": {"type": "JSON", "data": 1}},
    ]
    cluster = gateway.get("/v3/clusters")["data"][0]["cluster_id"]
    path = f"/v3/clusters/{cluster}/topics/{topic}/records:batch"
    answer = gateway.post(path, {"entries": entries})  # fifty of them would take far longer than we wait
    assert {each["error_code"] for each in answer["failures"]} == {42210}
    assert [each["id"] for each in answer["successes"]] == ["x"]
