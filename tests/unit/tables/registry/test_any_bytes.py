"""Whatever the bytes are: a row or a reason, for each record, and never an error that ends the query."""

import io
import json
import os
from functools import lru_cache

import fastavro
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.registry.schema_ids import SchemaRef
from headrace.tables.registry.batches import Batches, reader_of
from headrace.tables.registry.client import Clock, UnknownSchema
from headrace.tables.registry.reader import ResolvedSchema
from unit.tables.registry.given import whole

EXAMPLES = int(os.environ.get("HEADRACE_EXAMPLES", "1")) * 100
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "more", "type": {"type": "map", "values": ["int", "string", "Kind"]}},
    ],
}
JSON = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "items": {"type": ["null", "number"]}},
        "more": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {},
    },
}
PROTOBUF = """syntax = "proto3";
import "google/protobuf/timestamp.proto"; import "google/protobuf/struct.proto";
message Order { int64 id = 1; google.protobuf.Timestamp at = 2; repeated Order orders = 3; uint64 large = 4;
  map<string, google.protobuf.Value> more = 5; string name = 6; }"""
VALUE = {
    "id": 1,
    "name": "a",
    "at": 5,
    "day": 3,
    "price": b"\x05",
    "kind": "B",
    "tags": ["x"],
    "more": {"a": 1},
}


@lru_cache(maxsize=1)
def decoders() -> dict[int, Batches]:
    """One for each format; all of them know the schemas of all."""
    schemas = {1: whole("AVRO", AVRO), 2: whole("JSON", JSON), 3: whole("PROTOBUF", PROTOBUF)}

    def ask(ref: SchemaRef) -> ResolvedSchema:
        if not isinstance(ref, int) or ref not in schemas:
            raise UnknownSchema(ref)
        return schemas[ref]

    clock = Clock(sleep=lambda _: None)
    return {number: Batches(reader_of(schema), ask, clock) for number, schema in schemas.items()}


def good_avro() -> bytes:
    stream = io.BytesIO()
    plain = json.loads(json.dumps(AVRO).replace('"logicalType"', '"meaning"'))
    fastavro.schemaless_writer(stream, fastavro.parse_schema(plain), VALUE)
    return stream.getvalue()


GOOD = {
    1: good_avro(),
    2: b'{"id": 1, "at": "2026-01-01T12:00:00Z", "tags": [1, null], "more": {"a": "b"}, "any": [1]}',
    3: b"\0\x08\x05\x12\x05\x08\x05\x10\xd8\x36\x1a\x02\x08\x06\x20\x01\x2a\x05\x0a\x01a\x12\x00\x32\x01a",
}


@st.composite
def records(draw: st.DrawFn) -> tuple[int, bytes]:
    """Of a format: anything, or a good one of which some bytes are others, or are missing, or too many."""
    schema_id = draw(st.sampled_from(sorted(GOOD)))
    payload = bytearray(GOOD[schema_id])
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(payload)))
        payload[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=6))
    found = draw(st.one_of(st.just(bytes(payload)), st.binary(max_size=40)))
    headed = draw(st.sampled_from([b"\0" + schema_id.to_bytes(4)] * 9 + [b""]))
    return schema_id, headed + found


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.lists(records(), min_size=1, max_size=5))
def test_any_bytes_are_a_row_or_have_a_reason(given_: list[tuple[int, bytes]]) -> None:
    for schema_id, decoding in decoders().items():
        values = [value for number, value in given_ if number == schema_id]
        found = decoding.decode(values)
        found.validate(full=True)
        rows, reasons = found.field("row").is_valid().to_pylist(), found.field("reason").to_pylist()
        assert rows == [reason is None for reason in reasons]
        assert len(rows) == len(values)


def test_the_good_ones_are_rows() -> None:
    for schema_id, payload in GOOD.items():
        (found,) = decoders()[schema_id].decode([b"\0" + schema_id.to_bytes(4) + payload]).field("reason")
        assert found.as_py() is None
