"""Topics that want schemas, written to over HTTP: a refusal says which record it is about, and why."""

import base64
import json
from collections.abc import Iterator
from uuid import UUID

import pytest

from headrace.gateway.serving import serve_in_thread
from headrace.testing import Broker
from http_support.asking import Asking, v2

VALIDATED = {"confluent.value.schema.validation": "true"}
BY_RECORD = VALIDATED | {
    "confluent.value.subject.name.strategy": "io.confluent.kafka.serializers.subject.RecordNameStrategy"
}
ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
NO_SCHEMA = (
    "its value has no schema id: it begins with 0x70, expected 00 and an id of 4 bytes, "
    "or 01 and a fingerprint of 16"
)


def framed(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + b"\x02"


def in_base64(*values: bytes) -> list[str]:
    return [base64.b64encode(value).decode() for value in values]


def register(gateway: Asking, subject: str, schema: str = ORDER) -> int:
    return int(gateway.post(f"/subjects/{subject}/versions", {"schema": schema})["id"])


def test_v2_refuses_the_bad_records_alone_and_says_why(gateway: Asking) -> None:
    topic = gateway.topic("validated", configs=VALIDATED)
    good = framed(register(gateway, f"{topic}-value"))
    other = register(gateway, f"{topic}-other", '"string"')
    values = in_base64(good, b"plain", framed(other), good)
    said = gateway.post(
        f"/topics/{topic}", {"records": [{"value": each} for each in values]}, kind=v2("binary")
    )

    assert [(each["offset"], each["error_code"], each["error"]) for each in said["offsets"]] == [
        (0, None, None),
        (None, 50002, f"{topic}: {NO_SCHEMA}"),
        (None, 50002, f"{topic}: its value has schema {other}, which is none of {topic}-value"),
        (1, None, None),
    ]


def test_v3_refuses_the_bad_records_alone_and_says_why(gateway: Asking) -> None:
    topic = gateway.topic("validated", configs=VALIDATED)
    good = framed(register(gateway, f"{topic}-value"))
    (cluster,) = gateway.get("/v3/clusters")["data"]
    entries = [
        {"id": str(place), "value": {"type": "BINARY", "data": value}}
        for place, value in enumerate(in_base64(b"plain", good))
    ]
    at = f"{cluster['metadata']['self']}/topics/{topic}"
    said = gateway.post(f"{at}/records:batch", {"entries": entries})

    assert said["failures"] == [{"id": "0", "error_code": 40002, "message": f"{topic}: {NO_SCHEMA}"}]
    assert [(each["id"], each["offset"]) for each in said["successes"]] == [("1", 0)]
    assert gateway.refused("POST", f"{at}/records", {"value": {"type": "STRING", "data": "plain"}}) == (
        400,
        40002,
        f"{topic}: {NO_SCHEMA}",
    )


def test_messages_of_the_console_are_refused_with_the_reason(gateway: Asking) -> None:
    topic = gateway.topic("validated", configs=VALIDATED)
    at = f"/api/v1/topics/{topic}/messages"

    assert gateway.refused("POST", at, {"value": "plain"}) == (400, 40002, f"{topic}: {NO_SCHEMA}")
    gateway.post(at, {"key": "a tombstone has no schema", "value": None})


def test_records_are_judged_by_their_names_and_by_headers_where_the_topic_says_so(gateway: Asking) -> None:
    topic = gateway.topic("validated", configs=BY_RECORD)
    made = gateway.post("/subjects/acme.Order/versions", {"schema": ORDER.replace('"Order"', '"acme.Order"')})
    other = register(gateway, f"{topic}-value")
    fingerprint = base64.b64encode(b"\x01" + UUID(made["guid"]).bytes).decode()
    in_header = {"name": "__value_schema_id", "value": fingerprint, "encoding": "base64"}
    in_data = in_base64(framed(made["id"]), framed(other))
    messages = [
        *({"value": each, "encoding": "base64"} for each in in_data),
        {"value": "whatever", "headers": [in_header]},
    ]
    said = gateway.post(f"/api/v1/topics/{topic}/messages", {"messages": messages})["messages"]

    assert [(each["offset"], each["error"]) for each in said] == [
        (0, None),
        (None, f"{topic}: its value has schema {other}, which is none of Order"),
        (1, None),
    ]


@pytest.fixture
def alone() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def test_brokers_judge_alone_while_the_registry_cannot_be_read(
    alone: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.gateway.registry.store.TIMEOUT_S", 0.5)
    with serve_in_thread(alone.bootstrap) as served:
        asking = Asking(served.url)
        topic = asking.topic("validated", configs=VALIDATED)
        register(asking, f"{topic}-value")
        with alone.faults.fail(
            "Fetch", error="NOT_LEADER_OR_FOLLOWER", topic="_schemas", client_id="headrace-gateway"
        ):
            status, _, said = asking.refused("POST", f"/api/v1/topics/{topic}/messages", {"value": "plain"})
        asking.close()

    assert status == 400
    assert "failed to validate" in said  # which is all that librdkafka tells
