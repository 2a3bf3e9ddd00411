"""Schemas, values and bytes that cost more than their size says, and the bounds that refuse them."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.client.serializers.codecs.base import BadValue, TooCostly
from headrace.client.serializers.codecs.codec import codec_of
from headrace.client.serializers.codecs.processes import PROCESSES, CodecProcesses
from headrace.client.serializers.codecs.worker import Job, Worker
from headrace.gateway.problems import Problem
from headrace.gateway.rest.schemas import SchemaCodec
from headrace.registry.formats import Reference, Schema, SchemaType, parse
from headrace.registry.formats.json.schema import JsonSchema
from headrace.registry.formats.limits import MAX_EXPANSION

MOST = 10_000_000
CPU_S = 0.5


@pytest.fixture(scope="module")
def processes() -> Iterator[CodecProcesses]:
    made = CodecProcesses(cpu_s=CPU_S)
    yield made
    made.close()


def codec(
    processes: CodecProcesses, kind: SchemaType, schema: Any, others: dict[Reference, Schema] | None = None
) -> SchemaCodec:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    referenced = others or {}
    whole = Schema(kind, text, tuple(referenced)[-1:])
    return SchemaCodec(codec_of(parse(whole, referenced.__getitem__)), whole, referenced, processes, MOST)


def record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields]}


BOTH = record("A", ("f", ["null", "A", record("B", ("f", ["null", "A", "B"]), ("x", "int"))]), ("x", "int"))
LIST = record("L", ("next", ["null", "L"]))
NULLS = {"type": "array", "items": "null"}
EMPTY = {"type": "array", "items": record("Empty", ("f", record("Inner", ("n", "null"))))}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
ASKED = {"properties": {"a": {"allOf": [{"$ref": "#/definitions/A"}, {"$ref": "#/definitions/B"}]}}}
TWICE = {"definitions": {"A": ASKED, "B": {**ASKED, "title": "B"}}, "$ref": "#/definitions/A"}
FIELDS = "".join(f"int32 f{n} = {n};" for n in range(2, 2000))
WIDE = f'syntax = "proto3"; message M {{ repeated M m = 1; {FIELDS} }}'


def length(number: int) -> bytes:
    """A length or count as Avro writes it."""
    number, data = number << 1, bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


def nested(depth: int, last: Any, **fields: Any) -> Any:
    value = last
    for _ in range(depth):
        value = {**fields, "f": value}
    return value


def within(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("kind", "schema", "value"),
    [
        (SchemaType.AVRO, BOTH, nested(60, {"x": "no number", "f": None}, x=1)),
        (SchemaType.JSON, TWICE, within(60)),
    ],
    ids=["a union of records in themselves", "a property that is asked about twice"],
)
def test_a_value_that_can_be_tried_in_very_many_ways_is_refused_and_others_are_not(
    processes: CodecProcesses, kind: SchemaType, schema: Any, value: Any
) -> None:
    made = codec(processes, kind, schema)
    with pytest.raises(TooCostly, match="too much CPU time or more than 1024 MiB"):
        made.encode([value])
    assert codec(processes, SchemaType.AVRO, '"string"').encode(["x"]) == [b"\x02x"]


@pytest.mark.parametrize(
    ("kind", "schema", "data"),
    [
        (SchemaType.AVRO, NULLS, length(2**40) + b"\0"),
        (SchemaType.AVRO, EMPTY, length(2**40) + b"\0"),
        (SchemaType.AVRO, LIST, b"\2" * 2_000_000 + b"\0"),
        (SchemaType.AVRO, DECIMAL, length(900_000) + b"\x7f" * 900_000),
        (SchemaType.PROTOBUF, WIDE, b"\0" + b"\x0a\x00" * 500_000),
    ],
    ids=["nulls", "empty records", "a chain", "a decimal", "fields that are not there"],
)
def test_bytes_that_are_far_more_than_they_seem_are_refused(
    processes: CodecProcesses, kind: SchemaType, schema: Any, data: bytes
) -> None:
    made = codec(processes, kind, schema)
    with pytest.raises(
        BadValue, match=r"too much CPU time or more than 1024 MiB|does not fit the \w+ schema"
    ):
        made.decode(data)
    with pytest.raises(BadValue, match=r"time or memory before|does not fit the \w+ schema"):
        made.decode(data)
    assert codec(processes, SchemaType.AVRO, NULLS).decode(length(3) + b"\0") == [None] * 3


def test_defaults_count_as_what_they_are_written_as(processes: CodecProcesses) -> None:
    field = {"name": "f", "type": "string", "default": "x" * 900_000}
    made = codec(processes, SchemaType.AVRO, {"type": "record", "name": "R", "fields": [field]})
    assert len(made.encode([{}])[0]) == 900_003
    with pytest.raises(Problem, match=f"more than {MOST:,} bytes|more than .* bytes") as refused:
        made.encode([{}] * 2000)
    assert refused.value.code == 413


def test_a_value_that_does_not_fit_is_told_by_its_place(processes: CodecProcesses) -> None:
    made = codec(processes, SchemaType.AVRO, '"int"')
    with pytest.raises(BadValue) as refused:
        made.encode([*range(2500), "x"])
    assert refused.value.index == 2500
    assert len(made.encode(range(2500))) == 2500


def test_a_worker_asks_for_a_schema_that_it_has_forgotten() -> None:
    spec = Schema(SchemaType.AVRO, '"int"'), dict[Reference, Schema]()
    worker = Worker()
    assert worker.do(Job(b"1", None, "decode", [b"\x02"], 0)).outcome == "unknown"
    assert worker.do(Job(b"1", spec, "decode", [b"\x02"], 0)).done == [1]
    assert worker.do(Job(b"1", None, "decode", [b"\x02"], 0)).done == [1]


def test_processes_end_with_the_pool() -> None:
    made = CodecProcesses()
    used = codec(made, SchemaType.AVRO, '"string"')
    used.encode(["x"])
    pids = [each._process.pid for each in made._all]
    assert 0 < len(pids) <= PROCESSES
    made.close()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)  # noqa: PTH110


# -- references of JSON schemas ----------------------------------------------------------------


def chain(count: int) -> tuple[dict[str, Any], dict[Reference, Schema]]:
    """Schemas that each refer to the one before twice, and the last of them."""
    others: dict[Reference, Schema] = {}
    text: Any = {"type": "object"}
    for number in range(count):
        reference = Reference(f"s{number}", f"s{number}", 1)
        others[reference] = Schema(SchemaType.JSON, json.dumps(text), tuple(others)[-1:])
        text = {"allOf": [{"$ref": f"s{number}"}, {"$ref": f"s{number}"}]}
    return text, others


def parsed(count: int) -> JsonSchema:
    text, others = chain(count)
    schema = Schema(SchemaType.JSON, json.dumps(text), tuple(others)[-1:])
    found = parse(schema, others.__getitem__)
    assert isinstance(found, JsonSchema)
    return found


def test_references_are_counted_by_what_they_expand_to() -> None:
    assert [parsed(count).resources.expansion() for count in (0, 1, 2, 3)] == [1, 5, 13, 29]
    assert parsed(27).resources.expansion() == MAX_EXPANSION + 1


def test_a_schema_that_leads_back_to_itself_is_counted_once() -> None:
    schema = Schema(SchemaType.JSON, json.dumps({"anyOf": [{"type": "null"}, {"items": {"$ref": "#"}}]}))
    found = parse(schema, dict[Reference, Schema]().__getitem__)
    assert isinstance(found, JsonSchema)
    assert found.resources.expansion() == 4


def test_27_schemas_that_each_refer_to_the_one_before_twice_are_refused(processes: CodecProcesses) -> None:
    text, others = chain(27)
    with pytest.raises(BadValue, match=f"more than {MAX_EXPANSION:,} subschemas for one value"):
        codec(processes, SchemaType.JSON, text, others)
    text, others = chain(10)
    assert codec(processes, SchemaType.JSON, text, others).encode([{}]) == [b"{}"]
