"""Rows per second of a core, from records in the registry's format to Arrow columns.

    python bench/registry_decode.py

CPU time, the best of several rounds over one batch of ten thousand records of nine fields, as an executor
decodes it; Spark's own part is not in it. "evolved" records were written with an older version of the schema.
The last column is the format's own library, which makes dictionaries of the same bytes and no columns, and
does not look whether JSON fits its schema.
"""

import io
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple

import fastavro
from google.protobuf.json_format import MessageToDict, ParseDict  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

from headrace.registry.formats import Schema, SchemaType
from headrace.registry.formats.protobuf.protobuf import ProtobufSchema
from headrace.tables.registry.batches import Batches, reader_of
from headrace.tables.registry.reader import ResolvedSchema

ROWS: Final = 10_000
ROUNDS: Final = 5
OLD_ID, NEW_ID = 1, 2
NOON_MS: Final = 1767268800000
NEW_FIELD: Final = "note"

ORDER: Final[dict[str, Any]] = {
    "id": 123456789,
    "customer": "customer-4711",
    "item": "a kettle of tea",
    "price": 12.5,
    "count": 3,
    "paid": True,
    "tags": ["kitchen", "sale"],
    "address": {"city": "Utrecht", "zip": "3511"},
}
STRING: Final = {"type": "string"}


class Case(NamedTuple):
    """A format: its schemas, a record of each, and what its own library does with them."""

    old: ResolvedSchema
    new: ResolvedSchema
    payloads: tuple[bytes, bytes]
    alone: Callable[[bytes], Any]


def avro() -> Case:
    address = {
        "type": "record",
        "name": "Address",
        "fields": [_field("city", "string"), _field("zip", "string")],
    }
    fields = [
        _field("id", "long"),
        _field("customer", "string"),
        _field("item", "string"),
        _field("price", ["null", "double"]),
        _field("count", "int"),
        _field("paid", "boolean"),
        _field("tags", {"type": "array", "items": "string"}),
        _field("address", address),
        _field("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ]
    old = {"type": "record", "name": "Order", "fields": fields}
    new = {**old, "fields": [*fields, {"name": NEW_FIELD, "type": ["null", "string"], "default": None}]}
    value = ORDER | {"at": NOON_MS}
    payloads = []
    for schema in (old, new):
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
        payloads.append(stream.getvalue())
    parsed = fastavro.parse_schema(new)
    return Case(
        _whole(SchemaType.AVRO, json.dumps(old)),
        _whole(SchemaType.AVRO, json.dumps(new)),
        (payloads[0], payloads[1]),
        lambda payload: fastavro.schemaless_reader(io.BytesIO(payload), parsed, None),
    )


def json_schema() -> Case:
    properties = {
        "id": {"type": "integer"},
        "customer": STRING,
        "item": STRING,
        "price": {"type": ["null", "number"]},
        "count": {"type": "integer"},
        "paid": {"type": "boolean"},
        "tags": {"type": "array", "items": STRING},
        "address": {"type": "object", "properties": {"city": STRING, "zip": STRING}},
        "at": {"type": "string", "format": "date-time"},
    }
    old = {"type": "object", "properties": properties, "required": ["id"]}
    new = {**old, "properties": {**properties, NEW_FIELD: STRING}}
    payload = json.dumps(ORDER | {"at": datetime.fromtimestamp(NOON_MS / 1000, UTC).isoformat()}).encode()
    schemas = [_whole(SchemaType.JSON, json.dumps(each)) for each in (old, new)]
    return Case(schemas[0], schemas[1], (payload, payload), json.loads)


def protobuf() -> Case:
    text = """syntax = "proto3"; import "google/protobuf/timestamp.proto"; message Order {
        int64 id = 1; string customer = 2; string item = 3; optional double price = 4; int32 count = 5;
        bool paid = 6; repeated string tags = 7; Address address = 8; google.protobuf.Timestamp at = 9; %s }
        message Address { string city = 1; string zip = 2; }"""
    old, new = (_whole(SchemaType.PROTOBUF, text % more) for more in ("", f"string {NEW_FIELD} = 10;"))
    parsed = new.parsed()
    assert isinstance(parsed, ProtobufSchema)
    kind = GetMessageClass(parsed.pool.FindMessageTypeByName("Order"))
    payload = b"\0" + ParseDict(ORDER | {"at": "2026-01-01T12:00:00Z"}, kind()).SerializeToString()
    return Case(old, new, (payload, payload), lambda each: MessageToDict(kind.FromString(each[1:])))


def rates(case: Case) -> Iterator[float]:
    """Rows per second: of the reader's own schema, of an older one, and of the library alone."""
    schemas: dict[int | bytes, ResolvedSchema] = {OLD_ID: case.old, NEW_ID: case.new}
    decoding = Batches(reader_of(case.new), schemas.__getitem__)
    for schema_id, payload in ((NEW_ID, case.payloads[1]), (OLD_ID, case.payloads[0])):
        values = [b"\0" + schema_id.to_bytes(4) + payload] * ROWS
        found = decoding.decode(values)
        assert found.field("reason").null_count == ROWS, found[0]
        yield _rate(partial(decoding.decode, values))
    yield _rate(lambda: [case.alone(case.payloads[1]) for _ in range(ROWS)])


def _rate(act: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        act()
        best = min(best, time.process_time() - begun)
    return ROWS / best


def _whole(type_: SchemaType, text: str) -> ResolvedSchema:
    return ResolvedSchema(Schema(type_, text))


def _field(name: str, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": type_}


def main() -> None:
    print(f"{'rows/s of a core':<18}{'same schema':>14}{'evolved':>14}{'library alone':>16}")
    for name, case in (("Avro", avro()), ("JSON Schema", json_schema()), ("Protobuf", protobuf())):
        same, evolved, alone = rates(case)
        print(f"{name:<18}{same:>14,.0f}{evolved:>14,.0f}{alone:>16,.0f}")


if __name__ == "__main__":
    main()
