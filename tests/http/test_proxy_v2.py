"""REST proxy, v2: topics, and records written."""

import base64
from typing import Any

import pytest

from http_support.asking import Asking, v2
from support.process import UpProcess


def produced(gateway: Asking, path: str, embedded: str, *records: dict[str, Any]) -> list[tuple[int, int]]:
    answer = gateway("POST", path, {"records": list(records)}, kind=v2(embedded))
    assert answer.ok, answer.text
    assert answer.headers["content-type"] == "application/vnd.kafka.v2+json"
    said = answer.json()
    assert (said["key_schema_id"], said["value_schema_id"]) == (None, None)
    assert all(each["error"] is each["error_code"] is None for each in said["offsets"])
    return [(each["partition"], each["offset"]) for each in said["offsets"]]


def test_topics_and_their_partitions(gateway: Asking, broker: UpProcess) -> None:
    topic = gateway.topic(partitions=2, configs={"retention.ms": "12345"})
    assert topic in gateway.get("/topics")
    found = gateway.get(f"/topics/{topic}")
    expected = [
        {"partition": index, "leader": 1, "replicas": [{"broker": 1, "leader": True, "in_sync": True}]}
        for index in range(2)
    ]
    assert found["name"] == topic
    assert found["configs"]["retention.ms"] == "12345"
    assert found["partitions"] == gateway.get(f"/topics/{topic}/partitions") == expected
    assert gateway.get(f"/topics/{topic}/partitions/1") == expected[1]
    assert gateway.get("/brokers") == {"brokers": [1]}
    assert broker.running


def test_json_records_are_written_as_json(gateway: Asking) -> None:
    topic = gateway.topic(partitions=2)
    where = produced(
        gateway, f"/topics/{topic}", "json", {"key": "k", "value": {"n": 1}, "partition": 1}, {"value": None}
    )
    assert where[0] == (1, 0)
    found = gateway.get(f"/api/v1/topics/{topic}/messages")["messages"]
    assert ('"k"', {"n": 1}) in [(each["key"], each["value"]) for each in found if each["partition"] == 1]
    assert {each["value_encoding"] for each in found} == {"json", "null"}
    assert gateway.get(f"/topics/{topic}/partitions/1/offsets")["beginning_offset"] == 0


def test_binary_records_are_written_as_they_are(gateway: Asking) -> None:
    topic = gateway.topic()
    data = bytes(range(256))
    assert produced(
        gateway,
        f"/topics/{topic}/partitions/0",
        "binary",
        {"key": "/w==", "value": base64.b64encode(data).decode()},
        {"value": "_-8" + "="},
    ) == [(0, 0), (0, 1)]
    first, second = gateway.get(f"/api/v1/topics/{topic}/messages")["messages"]
    assert base64.b64decode(first["value"]) == data
    assert first["key"] == "/w=="
    assert base64.b64decode(second["value"]) == b"\xff\xef"
    assert gateway.get(f"/topics/{topic}/partitions/0/offsets") == {"beginning_offset": 0, "end_offset": 2}


def test_many_records_of_one_request_keep_their_order(gateway: Asking) -> None:
    topic = gateway.topic()
    where = produced(gateway, f"/topics/{topic}", "json", *({"value": number} for number in range(5000)))
    assert where == [(0, number) for number in range(5000)]
    assert gateway.values(topic, "offset=4998") == ["4998", "4999"]


def test_a_record_that_the_broker_refuses_is_reported_beside_the_others(gateway: Asking) -> None:
    topic = gateway.topic(partitions=2, configs={"max.message.bytes": "2000"})
    noise = base64.b64encode(bytes(range(256)) * 40).decode()
    body = {"records": [{"value": "small", "partition": 0}, {"value": noise, "partition": 1}]}
    answer = gateway("POST", f"/topics/{topic}", body, kind=v2("json"))
    good, bad = answer.json()["offsets"]
    assert (answer.status_code, good["offset"], good["error"]) == (200, 0, None)
    assert (bad["offset"], bad["error_code"]) == (None, 50002)
    assert "message size too large" in bad["error"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/topics/nowhere", 404, 40401),
        ("/topics/nowhere/partitions", 404, 40401),
        ("/topics/nowhere/partitions/0", 404, 40401),
        ("/topics/{}/partitions/3", 404, 40402),
        ("/topics/{}/partitions/3/offsets", 404, 40402),
        ("/topics/{}/partitions/x", 422, 422),
        ("/topics/{}/partitions/-1", 422, 422),
        ("/topics/{}/partitions/99999999999999", 422, 422),
        ("/topics/%00", 422, 422),
    ],
)
def test_what_is_not_there(gateway: Asking, path: str, status: int, code: int) -> None:
    assert gateway.refused("GET", path.format(gateway.topic()))[:2] == (status, code)


@pytest.mark.parametrize(
    ("kind", "body", "status", "code"),
    [
        ("application/json", {"records": [{"value": 1}]}, 415, 415),
        ("application/vnd.kafka.v2+json", {"records": [{"value": 1}]}, 415, 415),
        ("application/vnd.kafka.xml.v2+json", {"records": [{"value": 1}]}, 415, 415),
        ("text/plain", b"hello", 415, 415),
        (v2("json"), b"{", 422, 422),
        (v2("json"), b"", 422, 422),
        (v2("json"), b"[" * 100_000, 400, 400),
        (v2("json"), b'{"records": [{"value": NaN}]}', 422, 42206),
        (v2("json"), [], 422, 422),
        (v2("json"), {}, 422, 422),
        (v2("json"), {"records": []}, 422, 422),
        (v2("json"), {"records": [{"value": 1, "partition": "0"}]}, 422, 422),
        (v2("json"), {"records": [{"value": 1, "partition": -1}]}, 422, 422),
        (v2("json"), {"records": [{"value": 1, "partition": 2**40}]}, 422, 422),
        (v2("json"), {"records": [{"value": 1}, {"value": 1, "partition": 1}]}, 404, 40402),
        (v2("json"), {"records": [{"value": 1, "surprise": 1}]}, 422, 422),
        (v2("json"), {"records": [1]}, 422, 422),
        (v2("binary"), {"records": [{"value": "YQ=="}, {"value": "not base64"}]}, 422, 42206),
        (v2("binary"), {"records": [{"value": 7}]}, 422, 42206),
        (v2("binary"), {"records": [{"value": "\ud800"}]}, 422, 42206),
    ],
)
def test_a_request_that_cannot_be_carried_out_writes_nothing(
    gateway: Asking, kind: str, body: Any, status: int, code: int
) -> None:
    topic = gateway.topic()
    assert gateway.refused("POST", f"/topics/{topic}", body, kind=kind)[:2] == (status, code)
    assert gateway.values(topic) == []


def test_a_record_for_another_partition_than_the_address_says(gateway: Asking) -> None:
    topic = gateway.topic(partitions=2)
    body = {"records": [{"value": 1, "partition": 1}]}
    assert gateway.refused("POST", f"/topics/{topic}/partitions/0", body, kind=v2("json"))[0] == 422
    assert gateway.values(topic) == []


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        ("*/*", "application/vnd.kafka.v2+json"),
        ("application/vnd.kafka.v2+json", "application/vnd.kafka.v2+json"),
        ("application/json", "application/json"),
        ("text/html, application/json;q=0.5", "application/json"),
        ("application/vnd.kafka.json.v2+json", "application/vnd.kafka.v2+json"),
    ],
)
def test_answers_are_what_the_client_accepts(gateway: Asking, accept: str, answered: str) -> None:
    assert gateway("GET", "/topics", accept=accept).headers["content-type"] == answered


def test_a_client_that_accepts_nothing_of_ours_is_told(gateway: Asking) -> None:
    for accept in ("text/html", "application/json;q=0", "image/png, text/*"):
        assert gateway.refused("GET", "/topics", accept=accept)[:2] == (406, 406)
