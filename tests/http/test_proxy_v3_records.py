"""REST proxy, v3: records, one in a request or many in a stream, and a report for each."""

import base64
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from http_support.asking import Asking


@pytest.fixture(scope="module")
def topics(gateway: Asking) -> str:
    """The address of the cluster's topics."""
    (only,) = gateway.get("/v3/clusters")["data"]
    return f"{only['metadata']['self']}/topics"


def lines(answer: requests.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.text.splitlines()]


def record(value: object, **fields: Any) -> dict[str, Any]:
    return {"value": {"type": "JSON", "data": value}, **fields}


def test_one_record_and_its_report(gateway: Asking, topics: str) -> None:
    topic = gateway.topic(partitions=2)
    body = {
        "partition_id": 1,
        "headers": [{"name": "from", "value": "dGVzdA=="}, {"name": "none", "value": None}],
        "key": {"type": "STRING", "data": "k"},
        "value": {"type": "BINARY", "data": "/wA="},
        "timestamp": "2026-01-31T12:00:00.123+01:00",
    }
    report = gateway.post(f"{topics}/{topic}/records", body)
    assert report.pop("cluster_id") in topics
    assert report == {
        "error_code": 200,
        "topic_name": topic,
        "partition_id": 1,
        "offset": 0,
        "timestamp": "2026-01-31T11:00:00.123Z",
        "key": {"type": "STRING", "size": 1},
        "value": {"type": "BINARY", "size": 2},
    }
    (found,) = gateway.get(f"/api/v1/topics/{topic}/messages")["messages"]
    assert (found["key"], found["value"], found["value_encoding"]) == ("k", "/wA=", "base64")
    assert [(each["name"], each["value"]) for each in found["headers"]] == [("from", "test"), ("none", None)]


def test_several_records_have_a_line_each(gateway: Asking, topics: str) -> None:
    topic = gateway.topic()
    body = (
        b'{"value":{"type":"JSON","data":"}{"}} {"value":{"type":"JSON","data":1}}\n'
        + json.dumps({"value": {"type": "BINARY", "data": "?"}}).encode()
    )
    answer = gateway("POST", f"{topics}/{topic}/records", body)
    assert answer.status_code == 200
    assert [(each["error_code"], each.get("offset")) for each in lines(answer)] == [
        (200, 0),
        (200, 1),
        (42206, None),
    ]
    assert gateway.values(topic) == ['"}{"', "1"]


def test_a_stream_is_answered_while_it_comes(gateway: Asking, topics: str) -> None:
    topic = gateway.topic()
    url = urlsplit(f"{topics}/{topic}/records")
    assert url.hostname is not None
    with socket.create_connection((url.hostname, url.port or 80), timeout=30) as connection:
        stream = connection.makefile("rwb")
        head = f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
        stream.write(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        for number in range(3):
            text = json.dumps(record(number)).encode()
            for part in (text[:10], text[10:]):
                stream.write(b"%x\r\n%b\r\n" % (len(part), part))
            stream.flush()
            report = _next_report(stream)  # before the next record is sent
            assert (report["error_code"], report["offset"]) == (200, number)
        stream.write(b"0\r\n\r\n")
        stream.flush()
    assert gateway.values(topic) == ["0", "1", "2"]


def _next_report(stream: Any) -> dict[str, Any]:
    for line in stream:
        if line.startswith(b"{"):
            found: dict[str, Any] = json.loads(line)
            return found
    raise AssertionError("the connection was closed")


def test_a_stream_that_breaks_off_says_so_and_keeps_what_was_whole(gateway: Asking, topics: str) -> None:
    topic = gateway.topic()

    def parts() -> Iterator[bytes]:
        yield json.dumps(record("whole")).encode()
        yield b'{"value": {"type": "JS'

    answer = requests.post(
        f"{topics}/{topic}/records", data=parts(), headers={"content-type": "application/json"}, timeout=30
    )
    assert [each["error_code"] for each in lines(answer)] == [200, 400]
    assert gateway.values(topic) == ['"whole"']


def test_a_batch_is_reported_by_its_ids(gateway: Asking, topics: str) -> None:
    topic = gateway.topic()
    entries = [record(1, id="a"), record(2, id="b", partition_id=7), record(3, id="c")]
    answer = gateway("POST", f"{topics}/{topic}/records:batch", {"entries": entries})
    assert answer.status_code == 207
    said = answer.json()
    assert [(each["id"], each["offset"]) for each in said["successes"]] == [("a", 0), ("c", 1)]
    assert [(each["id"], each["error_code"]) for each in said["failures"]] == [("b", 40402)]
    twice = {"entries": [record(1, id="a"), record(1, id="a")]}
    assert gateway.refused("POST", f"{topics}/{topic}/records:batch", twice)[0] == 400
    assert gateway.refused("POST", f"{topics}/{topic}/records:batch", {"entries": []})[0] == 422


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, 400),
        (b"{", 400, 400),
        (b"[1]", 400, 400),
        (b"{]", 400, 400),
        (b'{"value": ' + b"[" * 100_000, 400, 400),
        (b'{"value": {"type": "JSON", "data": ' + b"[" * 5000 + b"]" * 5000 + b"}}", 400, 400),
        (b'{"value": {"type": "JSON", "data": 1e999}}', 400, 400),
        (b"\xff{}", 400, 400),
        ({"surprise": 1}, 400, 400),
        ({"partition_id": "0"}, 400, 400),
        ({"partition_id": -1}, 400, 400),
        ({"partition_id": 10**30}, 400, 400),
        ({"partition_id": 3}, 404, 40402),
        ({"value": {"type": "XML", "data": "x"}}, 400, 400),
        ({"value": {"type": "BINARY", "data": "?"}}, 422, 42206),
        ({"value": {"type": "STRING", "data": 7}}, 422, 42206),
        ({"value": {"type": "JSON", "data": 7, "schema_id": 1}}, 422, 42206),
        ({"headers": [{"name": "x", "value": "?"}]}, 422, 42206),
        ({"timestamp": "yesterday"}, 400, 400),
        ({"timestamp": "1900-01-01T00:00:00Z"}, 400, 400),
        ({"timestamp": "2026-01-01T00:00:00"}, 400, 400),
        ({"value": {"data": 7}}, 422, 42205),
        ({"value": {"type": "AVRO", "schema_id": 4711, "data": 7}}, 422, 42205),
        ({"value": {"schema": '"int"', "data": 7}}, 400, 400),
        ({"value": {"type": "AVRO", "schema": "{", "data": 7}}, 422, 42205),
        ({"value": {"type": "AVRO", "schema": '"int"', "data": "x"}}, 422, 42206),
    ],
)
def test_a_record_that_cannot_be_written_leaves_no_trace(
    gateway: Asking, topics: str, body: Any, status: int, code: int
) -> None:
    topic = gateway.topic()
    subjects = gateway.get("/subjects")
    assert gateway.refused("POST", f"{topics}/{topic}/records", body)[:2] == (status, code)
    assert gateway.values(topic) == []
    assert gateway.get("/subjects") == subjects


def test_a_topic_that_is_not_there_and_a_body_that_is_no_json(gateway: Asking, topics: str) -> None:
    assert gateway.refused("POST", f"{topics}/nowhere/records", record(1))[:2] == (404, 40403)
    topic = gateway.topic()
    assert gateway.refused("POST", f"{topics}/{topic}/records", b"x", kind="text/plain")[:2] == (415, 415)
    noise = base64.b64encode(bytes(range(256)) * 10).decode()
    small = gateway.topic(configs={"max.message.bytes": "1000"})
    status, code, said = gateway.refused("POST", f"{topics}/{small}/records", record(noise))
    assert (status, code) == (400, 40002), said


def test_a_body_has_as_many_records_as_a_batch(gateway: Asking, topics: str) -> None:
    topic = gateway.topic()

    status, code, said = gateway.refused("POST", f"{topics}/{topic}/records", b"{}" * 10_001)

    assert (status, code) == (413, 413)
    assert "10,000" in said
    assert gateway.get(f"/api/v1/topics/{topic}/messages")["messages"] == []
