"""/api/v1: messages, written and searched for."""

import base64
import json
import time

import pytest
from confluent_kafka import Producer

from headrace.gateway.admin.display import MAX_HEADERS
from http_support.asking import Asking, quoted, v2
from support.process import UpProcess


def test_what_is_written_is_found_as_it_was(gateway: Asking) -> None:
    topic = gateway.topic()
    message = {
        "key": "Köln",
        "value": {"n": 1, "deep": [None, 1.5, "ü"]},
        "headers": [
            {"name": "from", "value": "test"},
            {"name": "raw", "value": "/w==", "encoding": "base64"},
        ],
        "timestamp_ms": 1_700_000_000_123,
    }
    answer = gateway.post(f"/api/v1/topics/{topic}/messages", message)
    assert answer["messages"] == [
        {"partition": 0, "offset": 0, "timestamp_ms": 1_700_000_000_123, "error_code": None, "error": None}
    ]
    (found,) = gateway.get(f"/api/v1/topics/{topic}/messages")["messages"]
    assert (found["key"], found["key_encoding"]) == ("Köln", "text")
    assert (found["value"], found["value_encoding"]) == (message["value"], "json")
    assert found["timestamp_ms"] == 1_700_000_000_123
    assert [(each["name"], each["value"], each["encoding"]) for each in found["headers"]] == [
        ("from", "test", "text"),
        ("raw", "/w==", "base64"),
    ]


def test_a_search_is_followed_while_it_runs(gateway: Asking) -> None:
    topic = gateway.topic(partitions=2)
    gateway.write(topic, "tea", "coffee", "green tea")
    at = f"/api/v1/topics/{topic}/messages"

    events = list(gateway.events(f"{at}/stream?text=tea&last=10"))

    answer = gateway.get(f"{at}?text=tea&last=10")
    assert {each.kind for each in events} == {"progress", "message", "done"}
    assert [each.data for each in events if each.kind == "message"] == answer.pop("messages")
    assert events[-1].kind == "done"
    for found in (events[-1].data, answer):
        found["scanned"].pop("took_ms")
    assert events[-1].data == answer
    refused = list(gateway.events(f"{at}/stream?filter={quoted('value >')}"))[-1]
    assert (refused.kind, refused.data["error_code"]) == ("error", 40002)


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
AVRO_ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "total", "type": DECIMAL}, {"name": "tip", "type": ["null", DECIMAL]}],
}
PROTOBUF_ORDER = """syntax = "proto3";
message Order { int64 total = 1; map<string, uint64> parts = 2; repeated Order more = 3; }"""
LONG = "9007199254740993"  # which is no double
LONG_ORDER = {"total": "101", "parts": {"tea": "5"}, "more": [{"total": LONG, "parts": {}, "more": []}]}


@pytest.mark.parametrize(
    ("kind", "schema", "values", "expression"),
    [
        ("AVRO", json.dumps(DECIMAL), ["12.00", "7.00"], "value < 10"),
        (
            "AVRO",
            json.dumps(AVRO_ORDER),
            [{"total": "99.50", "tip": None}, {"total": "100.50", "tip": "7.00"}],
            "value.total > 100 && value.tip == 7.0",
        ),
        (
            "PROTOBUF",
            PROTOBUF_ORDER,
            [{"total": "99"}, LONG_ORDER],
            f'value.total > 100 && value.parts["tea"] == 5 && value.more[0].total == {LONG}',
        ),
    ],
)
def test_a_filter_compares_numbers_that_are_shown_as_text(
    gateway: Asking, kind: str, schema: str, values: list[object], expression: str
) -> None:
    topic = gateway.topic()
    gateway.post(f"/subjects/{topic}-value/versions", {"schema": schema, "schemaType": kind})
    for value in values:
        gateway.post(f"/api/v1/topics/{topic}/messages", {"value": value, "encoding": "schema"})

    answer = gateway.get(f"/api/v1/topics/{topic}/messages?filter={quoted(expression)}")

    assert (answer["filter_error"], [each["offset"] for each in answer["messages"]]) == ("", [1])
    assert answer["messages"][0]["value"] == values[1]  # which is shown as it was given


PAYMENT = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "receipt", "type": ["null", "bytes"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


def test_what_a_schema_has_decoded_is_encoded_by_it_as_it_was(gateway: Asking) -> None:
    topic = gateway.topic()
    for part, schema in (("value", PAYMENT), ("key", "string")):
        gateway.post(f"/subjects/{topic}-{part}/versions", {"schema": json.dumps(schema)})
    value = {"amount": "12.50", "receipt": "/wAB", "at": "2026-01-31T12:00:00+00:00"}
    message = {"key": "alice", "key_encoding": "schema", "value": value, "encoding": "schema"}

    gateway.post(f"/api/v1/topics/{topic}/messages", {"messages": [message, message | {"value": None}]})

    first, second = gateway.get(f"/api/v1/topics/{topic}/messages")["messages"]
    assert (first["key"], first["value"], first["value_encoding"]) == ("alice", value, "avro")
    assert (second["key"], second["value"]) == ("alice", None)
    wrong = message | {"value": value | {"amount": "12.505"}}
    refused = gateway.refused("POST", f"/api/v1/topics/{topic}/messages", {"messages": [message, wrong]})
    assert "message 1: this does not fit the Avro schema: the field amount is '12.505'" in refused[2]


@pytest.mark.parametrize(
    ("value", "encoding", "shown", "shown_as"),
    [
        ("text", "auto", "text", "text"),
        (None, "auto", None, "null"),
        (7, "auto", "7", "text"),
        ('{"a": 1}', "text", {"a": 1}, "json"),
        ('{"a": 1', "text", '{"a": 1', "text"),
        ('{"a": NaN}', "text", '{"a": NaN}', "text"),
        ("[1e999]", "text", "[1e999]", "text"),
        ("[" * 5000 + "]" * 5000, "text", "[" * 5000 + "]" * 5000, "text"),
        ('["\\ud800"]', "text", ["\ud800"], "json"),
        ("", "text", "", "text"),
        ("\x07", "text", "Bw==", "base64"),
        ("//8=", "base64", "//8=", "base64"),
        ("AAAAAAE=", "base64", "AAAAAAE=", "base64"),
        ("x", "json", '"x"', "text"),
    ],
)
def test_values_are_shown_as_what_they_are(
    gateway: Asking, value: object, encoding: str, shown: object, shown_as: str
) -> None:
    topic = gateway.topic()
    gateway.write(topic, value, encoding=encoding)
    (found,) = gateway.get(f"/api/v1/topics/{topic}/messages")["messages"]
    assert (found["value"], found["value_encoding"]) == (shown, shown_as)


def test_a_key_has_one_partition_for_all_clients(gateway: Asking) -> None:
    topic = gateway.topic(partitions=8)
    by_kafkas_own = {"truck-17": 6, "alice": 5, "Köln": 6}
    for key, expected in by_kafkas_own.items():
        assert {gateway.write(topic, "x", key=key)[0][0] for _ in range(3)} == {expected}


def test_messages_are_found_by_offset_time_and_from_the_end(gateway: Asking) -> None:
    topic = gateway.topic()
    for number in range(10):
        gateway.write(topic, f"m{number}", timestamp_ms=1_700_000_000_000 + number * 1000)

    assert gateway.values(topic, "offset=7") == ["m7", "m8", "m9"]
    assert gateway.values(topic, "offset=999") == []
    assert gateway.values(topic, "time=1700000004001") == ["m5", "m6", "m7", "m8", "m9"]
    assert gateway.values(topic, f"time={int(time.time() * 1000) + 10**9}") == []
    assert gateway.values(topic, "last=3") == ["m9", "m8", "m7"]
    assert gateway.values(topic, "last=100&limit=2") == ["m9", "m8"]


def test_a_key_is_found_as_text_and_as_the_json_that_the_proxy_makes_of_it(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, "plain", key="Zoë")
    gateway.write(topic, "empty", key="")
    records = [{"key": key, "value": number} for number, key in enumerate(("Zoë", "", ["Zoë"], None))]
    gateway.post(f"/topics/{topic}", {"records": records}, kind=v2("json"))
    gateway.write(topic, "no JSON", key='"Zoë')

    assert gateway.values(topic, f"key={quoted('Zoë')}") == ["plain", "0"]
    assert gateway.values(topic, "key=") == ["empty", "1"]
    assert gateway.values(topic, "key=nobody") == []


def test_messages_are_found_by_key_and_by_what_is_in_them(gateway: Asking) -> None:
    topic = gateway.topic(partitions=3)
    gateway.write(topic, "Tea for Zoë", "coffee", key="alice")
    gateway.write(topic, {"drink": "TEA"}, key="bob")
    gateway.write(topic, "milk", key="tea")
    gateway.write(topic, "water", headers=[{"name": "note", "value": "no tea"}])

    assert gateway.values(topic, "key=alice") == ["Tea for Zoë", "coffee"]
    assert gateway.values(topic, f"text={quoted('ZOË')}") == ["Tea for Zoë"]
    found = {str(value) for value in gateway.values(topic, "text=tea")}
    assert found == {"Tea for Zoë", "{'drink': 'TEA'}", "milk", "water"}
    assert gateway.values(topic, "key=alice&text=tea") == ["Tea for Zoë"]
    assert gateway.values(topic, "text=nothing") == []


def test_a_search_that_is_cut_short_goes_on_where_it_ended(gateway: Asking) -> None:
    topic = gateway.topic(partitions=3)
    wanted = [f"m{number}" for number in range(50)]
    gateway.write(topic, *wanted)

    found, query = [], "limit=7"
    while True:
        answer = gateway.get(f"/api/v1/topics/{topic}/messages?{query}")
        found += [each["value"] for each in answer["messages"]]
        if answer["stopped_by"] == "end":
            break
        assert answer["stopped_by"] == "limit"
        query = f"limit=7&from={answer['next']}"
    assert sorted(found) == sorted(wanted)


def test_a_search_looks_at_no_more_than_it_may(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, *[f"m{number}" for number in range(100)])
    answer = gateway.get(f"/api/v1/topics/{topic}/messages?scan=30&text=m99")

    assert (answer["messages"], answer["stopped_by"], answer["next"]) == ([], "records", "0:30")
    assert answer["scanned"]["messages"] == 30
    assert gateway.values(topic, f"text=m99&from={answer['next']}") == ["m99"]


def test_the_newest_are_found_though_a_search_may_not_look_at_all(gateway: Asking) -> None:
    topic = gateway.topic()
    for first in range(0, 3000, 500):
        gateway.write(topic, *[f"m{number}" for number in range(first, first + 500)])
    path = f"/api/v1/topics/{topic}/messages?last=3000"

    answer = gateway.get(f"{path}&scan=1000&limit=3")
    assert [each["offset"] for each in answer["messages"]] == [2999, 2998, 2997]
    assert (answer["stopped_by"], answer["next"]) == ("limit", "0:2997")
    answer = gateway.get(f"{path}&scan=1000&text=m1999")
    assert (answer["messages"], answer["stopped_by"], answer["next"]) == ([], "records", "0:2000")
    assert answer["scanned"]["messages"] == 1000
    answer = gateway.get(f"{path}&scan=1000&text=m1999&from={answer['next']}")
    assert [each["offset"] for each in answer["messages"]] == [1999]


@pytest.mark.parametrize("bound", ["limit=7", "limit=1", "scan=5", "limit=20&scan=30"])
def test_a_search_of_the_newest_goes_on_backwards_and_leaves_nothing_out(gateway: Asking, bound: str) -> None:
    topic = gateway.topic(partitions=3)
    for number in range(90):  # the first partition has all of the new ones
        partition = 0 if number >= 60 else number % 3
        gateway.write(topic, f"m{number}", partition=partition, timestamp_ms=1_700_000_000_000 + number)

    found, query = [], f"last=1000&{bound}"
    for _ in range(200):
        answer = gateway.get(f"/api/v1/topics/{topic}/messages?{query}")
        found += [each["value"] for each in answer["messages"]]
        if answer["stopped_by"] == "end":
            break
        query = f"last=1000&{bound}&from={answer['next']}"
    assert sorted(found) == sorted(f"m{number}" for number in range(90))
    if "scan" not in bound:
        assert found == [f"m{number}" for number in reversed(range(90))]


def test_a_long_value_is_cut_and_says_so(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, "ü" * 1000)
    path = f"/api/v1/topics/{topic}/messages"
    (found,) = gateway.get(f"{path}?max_value_bytes=11")["messages"]
    assert (found["value"], found["truncated"], found["value_size"]) == ("üüüüü", True, 2000)
    (found,) = gateway.get(path)["messages"]
    assert (found["value"], found["truncated"]) == ("ü" * 1000, False)


@pytest.mark.parametrize(
    "query",
    [
        "offset=1&last=1",
        "offset=-1",
        "offset=99999999999999999999",
        "limit=0",
        "limit=x",
        "partition=-1",
        "from=abc",
        "from=0:1,0:2",
        "from=0:99999999999999999999",
        "from=9:1",
        "timeout_ms=999999",
    ],
)
def test_a_search_that_makes_no_sense_is_refused(gateway: Asking, query: str) -> None:
    topic = gateway.topic()
    assert gateway.refused("GET", f"/api/v1/topics/{topic}/messages?{query}")[0] in {400, 422}


def test_nothing_is_made_by_asking_for_it(gateway: Asking) -> None:
    for method, path, body in (
        ("GET", "/api/v1/topics/nowhere/messages", None),
        ("GET", "/api/v1/topics/nowhere/tail", None),
        ("POST", "/api/v1/topics/nowhere/messages", {"value": "x"}),
        ("GET", "/api/v1/topics/nowhere/configs", None),
    ):
        assert gateway.refused(method, path, body) == (404, 40401, "there is no topic nowhere")
    assert "nowhere" not in {each["name"] for each in gateway.get("/api/v1/topics")}


@pytest.mark.parametrize(
    "body",
    [
        {"value": "x", "encoding": "base64!"},
        {"value": "!", "encoding": "base64"},
        {"value": 1, "encoding": "text"},
        {"value": "\ud800", "encoding": "text"},
        {"key": "\ud800", "value": "x"},
        {"value": "x", "partition": -1},
        {"value": "x", "partition": 5},
        {"value": "x", "partition": 10**20},
        {"value": "x", "timestamp_ms": -5},
        {"value": "x", "headers": [{"value": "x"}]},
        {"value": "x", "headers": {"a": "b"}},
        {"value": "x", "unknown": 1},
        {"messages": []},
        {"messages": [{"value": "good"}, {"value": "!", "encoding": "base64"}]},
        {"messages": [{"value": "good"}, {"value": "x", "partition": 5}]},
    ],
)
def test_messages_that_cannot_be_written_leave_no_trace(gateway: Asking, body: object) -> None:
    topic = gateway.topic()
    status, _, said = gateway.refused("POST", f"/api/v1/topics/{topic}/messages", body)
    assert status in {400, 404, 422}, said
    assert gateway.values(topic) == []


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"value": "x", "unknown": 1}, "body.unknown: is not known here"),
        ({"messages": [{"value": "x", "unknown": 1}]}, "body.messages.0.unknown: is not known here"),
        ({"messages": [{"value": "x"}], "value": "y"}, "body.value: is not known here"),
        ({"value": "x", "headers": [{"value": "x"}]}, "body.headers.0.name: is missing"),
        (["x"], "body: expected an object"),
    ],
)
def test_what_is_wrong_with_a_message_is_said_of_the_form_that_it_has(
    gateway: Asking, body: object, sentence: str
) -> None:
    topic = gateway.topic()
    assert gateway.refused("POST", f"/api/v1/topics/{topic}/messages", body) == (422, 422, sentence)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"value": NaN}', b'{"value": 1e999}', b"nul\0"]
)
def test_a_body_that_is_not_json_is_refused(gateway: Asking, body: bytes) -> None:
    topic = gateway.topic()
    assert gateway.refused("POST", f"/api/v1/topics/{topic}/messages", body)[0] in {400, 422}
    assert gateway.values(topic) == []


def test_a_message_that_is_too_large_is_refused_by_the_brokers_word(gateway: Asking) -> None:
    topic = gateway.topic(configs={"max.message.bytes": "1000"})
    noise = base64.b64encode(bytes(range(256)) * 40).decode()
    status, code, said = gateway.refused("POST", f"/api/v1/topics/{topic}/messages", {"value": noise})
    assert (status, code) == (400, 40002)
    assert "message size too large" in said
    answer = gateway.post(f"/api/v1/topics/{topic}/messages", {"messages": [{"value": "small"}]})
    assert answer["messages"][0]["offset"] == 0


def test_an_answer_is_bounded_by_what_is_written_into_it_and_goes_on(gateway: Asking) -> None:
    topic = gateway.topic()
    value = ["x" * 1000] * 800  # short as a record's bytes go, long when sixteen of them are shown
    for _ in range(3):
        gateway.write(topic, *[value] * 4)
    seen: list[int] = []
    start = ""
    while True:
        answer = gateway.get(f"/api/v1/topics/{topic}/messages?limit=1000&max_value_bytes=1000000{start}")
        seen += [each["offset"] for each in answer["messages"]]
        if answer["stopped_by"] == "end":
            break
        assert answer["stopped_by"] == "bytes"
        assert len(answer["messages"]) == 11  # the last of which went over 8 MiB
        start = f"&from={answer['next']}"
    assert seen == list(range(12))


def test_headers_without_number_are_cut(broker: UpProcess, gateway: Asking) -> None:
    topic = gateway.topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"x", headers=[("h", b"")] * (MAX_HEADERS + 1))
    assert producer.flush(30) == 0
    (found,) = gateway.get(f"/api/v1/topics/{topic}/messages")["messages"]
    assert len(found["headers"]) == MAX_HEADERS
    assert found["truncated"]
