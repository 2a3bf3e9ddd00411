"""Values by schemas: written, read again, and refused if they do not fit."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.serializers.codecs.base import BadValue, Codec
from headrace.client.serializers.codecs.codec import codec_of
from headrace.registry.formats import Reference, Schema, SchemaType, parse

MEASURED = {
    "type": "record",
    "name": "Measured",
    "fields": [
        {"name": "who", "type": ["null", "string", {"type": "array", "items": "string"}]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "ratio", "type": "double"},
    ],
}
NESTED = """syntax = "proto3"; package p;
message First { int32 n = 1; }
message Second { message Inner { string name = 1; } map<string, int64> counts = 1; }"""


def codec(kind: SchemaType, text: str, **referenced: str) -> Codec:
    references = tuple(Reference(name, name, 1) for name in referenced)
    return codec_of(parse(Schema(kind, text, references), lambda each: Schema(kind, referenced[each.name])))


def test_avro_values_are_read_as_avros_json_and_plainly() -> None:
    avro = codec(SchemaType.AVRO, json.dumps(MEASURED))
    value = {"who": {"array": ["x"]}, "price": "\u0001", "day": 1, "kind": "A", "ratio": 0.5}
    data = avro.encode(value)
    assert avro.decode(data, tagged=True) == value
    assert avro.decode(data) == {
        "who": ["x"],
        "price": "0.01",
        "day": "1970-01-02",
        "kind": "A",
        "ratio": 0.5,
    }
    assert avro.name == "Measured"


def test_avro_takes_plain_values_where_that_is_clear() -> None:
    avro = codec(SchemaType.AVRO, '["null", "string"]')
    assert avro.encode("x") == avro.encode({"string": "x"})
    assert avro.decode(avro.encode(None)) is None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ('"int"', "x"),
        ('"int"', 2**31),
        ('"int"', None),
        ('"string"', 5),
        ('"string"', {"a": 1}),
        ('["null", "int"]', "x"),
        ('{"type": "array", "items": "int"}', [1, "x"]),
        ('{"type": "enum", "name": "E", "symbols": ["A"]}', "B"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}', {}),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}', []),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}', {"a": [[[]]]}),
        ('{"type": "record", "name": "R", "fields": [{"name": "only", "type": "string"}]}', "x"),
    ],
)
def test_what_does_not_fit_an_avro_schema_is_refused(schema: str, value: Any) -> None:
    with pytest.raises(BadValue):
        codec(SchemaType.AVRO, schema).encode(value)


BASKET = """{"type": "record", "name": "Basket", "fields": [{"name": "orders", "type":
    {"type": "array", "items":
        {"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "int"}]}}}]}"""
BASKET_JSON = '{"properties": {"orders": {"items": {"required": ["amount"]}}}, "required": ["orders"]}'
BASKET_PROTO = """syntax = "proto2";
message Basket { repeated Order orders = 1; } message Order { required int32 amount = 1; }"""


@pytest.mark.parametrize(
    ("kind", "schema"),
    [(SchemaType.AVRO, BASKET), (SchemaType.JSON, BASKET_JSON), (SchemaType.PROTOBUF, BASKET_PROTO)],
)
def test_a_missing_field_is_named_with_its_path(kind: SchemaType, schema: str) -> None:
    made = codec(kind, schema)
    with pytest.raises(BadValue, match=r"the field orders\[1\]\.amount is missing$"):
        made.encode({"orders": [{"amount": 1}, {}]})


@given(st.binary(max_size=60))
def test_bytes_that_no_schema_wrote_are_refused_or_read(data: bytes) -> None:
    for each in (
        codec(SchemaType.AVRO, json.dumps(MEASURED)),
        codec(SchemaType.JSON, "true"),
        codec(SchemaType.PROTOBUF, NESTED),
    ):
        try:
            json.dumps(each.decode(data), allow_nan=False)
            each.decode(data, tagged=True)
        except BadValue as error:
            assert str(error)  # noqa: PT017  either is fine, and nothing else


def test_json_is_checked_with_what_its_schema_refers_to() -> None:
    checked = codec(
        SchemaType.JSON,
        '{"properties": {"a": {"$ref": "other.json"}}}',
        **{"other.json": '{"type": "string"}'},
    )
    assert checked.decode(checked.encode({"a": "x"})) == {"a": "x"}
    with pytest.raises(BadValue, match='1 is not of type "string"'):
        checked.encode({"a": 1})


def test_the_first_message_of_a_protobuf_schema_is_written() -> None:
    first = codec(SchemaType.PROTOBUF, NESTED)
    assert first.encode({"n": 3}) == b"\x00\x08\x03"
    assert first.decode(b"\x00\x08\x03") == {"n": 3}
    assert first.name == "p.First"
    others: list[Any] = [{"n": "x"}, {"unknown": 1}, {"n": 2**40}, [], 5, "x"]
    for bad in others:
        with pytest.raises(BadValue):
            first.encode(bad)


def test_other_messages_of_a_protobuf_schema_are_read_by_their_indexes() -> None:
    read = codec(SchemaType.PROTOBUF, NESTED).decode
    assert read(b"\x04\x02\x00" + b"\x0a\x01x") == {"name": "x"}  # [1, 0]: p.Second.Inner
    assert read(b"\x02\x02" + b"\x0a\x05\x0a\x01k\x10\x07") == {"counts": {"k": "7"}}  # [1]: p.Second
    for bad in (b"", b"\x02\x08", b"\x04\x00\x00", b"\xff" * 9, b"\x01", b"\x00\xff"):
        with pytest.raises(BadValue):
            read(bad)


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {
            "name": "address",
            "type": {"type": "record", "name": "Address", "fields": [{"name": "street", "type": "string"}]},
        },
        {"name": "lines", "type": {"type": "array", "items": "int"}, "default": []},
        {"name": "second", "type": ["null", "Address"], "default": None},
    ],
}
STREET = {"street": "Main"}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"address": STREET}, "the field id is missing"),
        ({"id": 1, "address": {}}, "the field address.street is missing"),
        ({"id": "1", "address": STREET}, "the field id is a string, expected long"),
        ({"id": 1, "address": STREET, "note": 7}, "the field note is a number, expected string"),
        ({"id": 1, "address": STREET, "lines": [1, "x"]}, "the field lines[1] is a string, expected int"),
        ({"id": 1, "address": STREET, "second": {}}, "the field second.street is missing"),
        ({"id": 1, "address": STREET, "second": {"Address": {}}}, "the field second.street is missing"),
        ("tea", "the value is a string, expected an object for record Order"),
        (
            {"id": 1, "address": "Main"},
            "the field address is a string, expected an object for record Address",
        ),
        (
            {"id": 1, "address": STREET, "second": {"Address": "Main"}},
            "the field second is a string, expected an object for record Address",
        ),
    ],
)
def test_an_avro_error_names_the_field(value: Any, why: str) -> None:
    with pytest.raises(BadValue) as refused:
        codec(SchemaType.AVRO, json.dumps(ORDER)).encode(value)
    assert str(refused.value) == f"this does not fit the Avro schema: {why}"


def test_a_required_field_of_protobuf_is_named() -> None:
    schema = 'syntax = "proto2"; message Order { required int64 id = 1; }'
    with pytest.raises(BadValue, match="id"):
        codec(SchemaType.PROTOBUF, schema).encode({})
