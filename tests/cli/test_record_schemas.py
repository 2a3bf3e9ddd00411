"""`produce` and `consume` with schemas of the registry that `headrace up` runs, which the brokers name."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from cli.command import Command
from headrace import Producer, Unreachable
from headrace.cli.produce import explain
from headrace.cli.support.session import Session
from support.process import UpProcess
from wire.requests import fresh_name

FORMATS = {
    "order.avsc": json.dumps(
        {
            "type": "record",
            "name": "Order",
            "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
        }
    ),
    "order.json": json.dumps(
        {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "item": {"type": "string"}},
            "required": ["id", "item"],
        }
    ),
    "order.proto": 'syntax = "proto2"; message Order { required int32 id = 1; required string item = 2; }',
}
TEA = {"id": 1, "item": "tea"}
MISSING = {
    "order.avsc": "the field item is missing",
    "order.json": "the field item is missing",
    "order.proto": "item",
}


@pytest.fixture
def topic() -> str:
    return fresh_name("schemas")


def register(headrace: Command, subject: str, name: str, directory: Path) -> int:
    file = directory / name
    file.write_text(FORMATS.get(name, '"string"'))
    return int(headrace.ok("schema", "register", subject, str(file), "--json").json["id"])


@pytest.mark.parametrize("name", FORMATS)
def test_a_record_is_encoded_and_decoded_by_the_schema_of_its_topic(
    headrace: Command, tmp_path: Path, topic: str, name: str
) -> None:
    schema_id = register(headrace, f"{topic}-value", name, tmp_path)
    headrace.ok("produce", topic, json.dumps(TEA))

    assert headrace.ok("consume", topic, "--exit-at-end").text == '{"id":1,"item":"tea"}\n'
    line = headrace.ok("consume", topic, "--exit-at-end", "--json").json
    assert (line["value"], line["value_schema_id"], line["key"]) == (TEA, schema_id, None)
    raw = headrace.ok("consume", topic, "--exit-at-end", "--raw").out
    assert raw.startswith(b"\0" + schema_id.to_bytes(4))
    assert "value_schema_id" not in headrace.ok("consume", topic, "-e", "--raw", "--json").json

    again = headrace.ok("consume", topic, "--exit-at-end", "--json").out
    headrace.ok("produce", topic, "--from-json", stdin=again)
    assert headrace.ok("consume", topic, "--from", "-1", "--exit-at-end", "--raw").out == raw


@pytest.mark.parametrize("name", FORMATS)
def test_an_error_names_the_record_and_the_field_and_nothing_is_written(
    headrace: Command, tmp_path: Path, topic: str, name: str
) -> None:
    register(headrace, f"{topic}-value", name, tmp_path)
    refused = headrace("produce", topic, json.dumps(TEA), '{"id": 2}').complaint
    assert refused.startswith("record 2, value: ")
    assert MISSING[name] in refused
    assert refused.endswith("--raw writes bytes as they are; nothing was written")
    assert "record 1, value: this is not JSON" in headrace("produce", topic, "{").complaint

    headrace.ok("produce", topic, "--raw", "{")
    assert headrace.ok("consume", topic, "--exit-at-end").text == "{\n"


def test_a_key_has_a_schema_of_its_own_and_a_word_is_a_string(
    headrace: Command, tmp_path: Path, topic: str
) -> None:
    schema_id = register(headrace, f"{topic}-key", "key.avsc", tmp_path)
    headrace.ok("produce", topic, "--key", "alice", "plain text")
    headrace.ok("produce", topic, "--key", '"bob"', "{}")

    shown = headrace.ok("consume", topic, "--exit-at-end", "--format", r"%k %v\n").text
    assert sorted(shown.splitlines()) == ['"alice" plain text', '"bob" {}']
    lines = headrace.ok("consume", topic, "--exit-at-end", "--json").text.splitlines()
    assert {json.loads(line)["key_schema_id"] for line in lines} == {schema_id}


def test_a_schema_in_a_header_is_used(headrace: Command, up: UpProcess, topic: str) -> None:
    headrace.ok("topic", "create", topic)
    with SchemaRegistryClient({"url": up.http}) as registry:
        write = AvroSerializer(
            registry, FORMATS["order.avsc"], conf={"schema.id.serializer": header_schema_id_serializer}
        )
        headers: list[tuple[str, Any]] = []
        value = write(TEA, SerializationContext(topic, MessageField.VALUE, headers))
    with Producer(up.bootstrap) as producer:
        producer.send(topic, value, headers=headers)

    assert (
        headrace.ok("consume", topic, "--exit-at-end", "--format", r"%v\n").text == '{"id":1,"item":"tea"}\n'
    )
    line = headrace.ok("consume", topic, "--exit-at-end", "--json").out
    headrace.ok("produce", topic, "--from-json", stdin=line)  # with the id before the value, and no header
    again = headrace.ok("consume", topic, "--from", "-1", "--exit-at-end", "--json").json
    assert (again["value"], again["headers"]) == (TEA, [])


EVENT = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "data", "type": ["null", "bytes", "string"]},
    ],
}
EVENTS = [
    {"at": "2026-01-02T03:04:05.678000+00:00", "price": "1.50", "data": {"bytes": "AP8="}},
    {"at": "2026-01-02T03:04:05+00:00", "price": "-0.01", "data": {"string": "AP8="}},
    {"at": "1969-12-31T23:59:59+00:00", "price": "0.00", "data": None},
]


def copied(headrace: Command, topic: str) -> tuple[list[bytes], list[bytes]]:
    """Write what `consume --json` prints to the same topic; return the bytes of both."""
    once = headrace.ok("consume", topic, "--exit-at-end", "--json")
    headrace.ok("produce", topic, "--from-json", stdin=once.out)
    shown = headrace.ok("consume", topic, "--exit-at-end", "--json", "--raw").text.splitlines()
    values = [json.dumps(json.loads(line)["value"]).encode() for line in shown]
    return values[: len(values) // 2], values[len(values) // 2 :]


def test_times_decimals_and_bytes_are_the_same_after_a_copy_by_json(
    headrace: Command, tmp_path: Path, topic: str
) -> None:
    file = tmp_path / "event.avsc"
    file.write_text(json.dumps(EVENT))
    headrace.ok("schema", "register", f"{topic}-value", str(file))
    headrace.ok("topic", "create", topic, "--partitions", "1")
    headrace.ok("produce", topic, *map(json.dumps, EVENTS))

    shown = headrace.ok("consume", topic, "--exit-at-end").text.splitlines()
    assert [json.loads(line) for line in shown] == EVENTS
    before, after = copied(headrace, topic)
    assert before == after


def test_a_null_that_a_schema_encodes_does_not_become_a_tombstone(
    headrace: Command, tmp_path: Path, topic: str
) -> None:
    file = tmp_path / "maybe.avsc"
    file.write_text('["null", "string"]')
    schema_id = headrace.ok("schema", "register", f"{topic}-value", str(file), "--json").json["id"]
    headrace.ok("topic", "create", topic, "--partitions", "1")
    headrace.ok("produce", topic, "--raw", "--whole", stdin=b"\0" + schema_id.to_bytes(4) + b"\0")

    before, after = copied(headrace, topic)
    assert before == after != [b"null"]


PROTO = """syntax = "proto3"; package shop; message First { int32 n = 1; }
message Second { int32 n = 1; message Inner { string n = 1; } }"""


def test_a_message_that_is_not_the_first_of_its_file_stays_what_it_is(
    headrace: Command, tmp_path: Path, topic: str
) -> None:
    file = tmp_path / "shop.proto"
    file.write_text(PROTO)
    schema_id = headrace.ok("schema", "register", f"{topic}-value", str(file), "--json").json["id"]
    headrace.ok("topic", "create", topic, "--partitions", "1")
    for path, data in ((b"\x00", b"\x08\x07"), (b"\x02\x02", b"\x08\x07"), (b"\x04\x02\x00", b"\x0a\x01x")):
        value = b"\0" + schema_id.to_bytes(4) + path + data
        headrace.ok("produce", topic, "--raw", "--whole", stdin=value)

    lines = headrace.ok("consume", topic, "--exit-at-end", "--json").text.splitlines()
    assert [json.loads(line)["value_message"] for line in lines] == [
        "shop.First",
        "shop.Second",
        "shop.Second.Inner",
    ]
    before, after = copied(headrace, topic)
    assert before == after
    unknown = lines[0].replace("shop.First", "shop.Third").encode()
    refused = headrace("produce", topic, "--from-json", stdin=unknown).complaint
    assert "record 1, value: the Protobuf schema has no message shop.Third" in refused


def test_lines_that_are_nested_deeply_are_refused(headrace: Command, topic: str) -> None:
    refused = headrace("produce", topic, "--from-json", stdin=b'{"value":' + b"[" * 200_000).complaint
    assert refused.startswith("line 1: expected an object such as")


def test_what_cannot_be_decoded_is_shown_as_before_with_one_warning(
    headrace: Command, tmp_path: Path, topic: str
) -> None:
    schema_id = register(headrace, f"{topic}-value", "order.avsc", tmp_path)
    unknown, damaged = b"\0\0\xff\xff\xff123", b"\0" + schema_id.to_bytes(4) + b"\2\xfe\xff"
    for value in (unknown, damaged, unknown):
        headrace.ok("produce", topic, "--raw", "--whole", stdin=value)
    headrace.ok("produce", topic, json.dumps(TEA))

    shown = headrace("consume", topic, "--exit-at-end")
    assert shown.status == 0
    assert shown.out == b"\n".join([unknown, damaged, unknown, b'{"id":1,"item":"tea"}', b""])
    assert shown.err.count("\n") == 1
    assert f"the value of {topic}-0 offset 0: schema 16777215 cannot be read from" in shown.err


def test_a_value_that_would_need_gigabytes_is_shown_as_bytes(
    headrace: Command, tmp_path: Path, topic: str
) -> None:
    file = tmp_path / "nulls.avsc"
    file.write_text('{"type": "array", "items": "null"}')
    schema_id = headrace.ok("schema", "register", f"{topic}-value", str(file), "--json").json["id"]
    bomb = b"\0" + schema_id.to_bytes(4) + b"\xfe\xff\xff\xff\xff\xff\x01\0"
    headrace.ok("produce", topic, "--raw", "--whole", stdin=bomb)

    shown = headrace("consume", topic, "--exit-at-end")
    assert (shown.status, shown.out) == (0, bomb + b"\n")
    assert "takes too much CPU time" in shown.err


def test_a_registry_that_does_not_answer_stops_produce_and_not_consume(headrace: Command, topic: str) -> None:
    headrace.ok("produce", topic, "--raw", "--whole", stdin=b"\0\0\0\0\1xyz")
    nowhere = {"HEADRACE_REGISTRY": "http://127.0.0.1:1"}

    shown = headrace("consume", topic, "--exit-at-end", environment=nowhere)
    assert (shown.status, shown.out) == (0, b"\0\0\0\0\1xyz\n")
    assert shown.err.startswith("headrace: no registry answers at http://127.0.0.1:1: connection refused")
    refused = headrace("produce", topic, "{}", environment=nowhere)
    assert "no registry answers at http://127.0.0.1:1" in refused.complaint
    assert "--raw writes bytes as they are" in refused.complaint
    assert headrace("produce", topic, "--raw", "{}", environment=nowhere).status == 0


def test_decoded_records_are_not_written_where_no_schema_encodes_them(headrace: Command, topic: str) -> None:
    line = b'{"value": {"id": 1}, "value_schema_id": 1}\n'
    refused = headrace("produce", topic, "--from-json", stdin=line).complaint
    assert f"there is no subject {topic}-value: register its schema" in refused


def test_brokers_say_where_the_registry_is(headrace: Command, up: UpProcess) -> None:
    settings = headrace.ok("config", "describe", "broker", "1", "--json").json
    assert {each["name"]: each["value"] for each in settings}["http.advertised.url"] == up.http


# -- the wrong port --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [("topic", "list"), ("produce", "t", "v"), ("consume", "t")], ids=" ".join
)
def test_the_port_of_the_console_is_not_a_brokers(up: UpProcess, command: tuple[str, ...]) -> None:
    address = up.http.removeprefix("http://")
    complaint = Command(address)(*command).complaint
    assert complaint.startswith(f"{address} speaks HTTP, not Kafka's protocol: give the address of a broker")


def test_records_that_no_broker_takes_are_not_blamed_on_replicas() -> None:
    """A port that accepts connections and stays silent takes half a minute: what is said then."""
    late = Unreachable(
        "orders: not acknowledged in time: fewer replicas are in sync than min.insync.replicas"
    )
    explained = explain(Session(bootstrap_option="127.0.0.1:1"), "orders", late)
    assert str(explained).startswith("no broker answers at 127.0.0.1:1: ")


def test_a_web_server_that_waits_for_a_line_is_recognised() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        address = f"127.0.0.1:{server.server_port}"
        serving = Thread(target=server.serve_forever)
        serving.start()
        try:
            complaint = Command(address)("topic", "list").complaint
        finally:
            server.shutdown()
            serving.join()
    assert complaint.startswith(f"{address} speaks HTTP, not Kafka's protocol")


def test_the_port_of_a_broker_is_not_a_registrys(headrace: Command, up: UpProcess) -> None:
    complaint = headrace("schema", "list", "--registry", f"http://{up.bootstrap}").complaint
    assert complaint.startswith(f"{up.bootstrap} speaks Kafka's protocol, not HTTP: give the address of the")
