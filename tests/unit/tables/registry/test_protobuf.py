"""Protobuf in the registry's format: each construct as a column, and one schema read as another."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

from headrace.registry.formats.protobuf.protobuf import ProtobufSchema
from headrace.tables.reader.errors import ReadError
from headrace.tables.registry.batches import reader_of
from headrace.tables.registry.reader import Unreadable
from headrace.tables.registry.shapes import build, columns_of, truncating
from unit.tables.registry.given import columns, rows, whole

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIRST = b"\0"  # the first message of the file
EVERYTHING = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/empty.proto";
import "google/protobuf/any.proto";
message Order {
  bool a_bool = 1; int32 an_int32 = 2; sint64 a_sint64 = 3; uint32 a_uint32 = 4; fixed64 a_fixed64 = 5;
  float a_float = 6; double a_double = 7; string a_string = 8; bytes some_bytes = 9;
  optional int32 an_optional = 10;
  repeated string some_strings = 11;
  map<string, Customer> a_map = 12;
  Customer a_message = 13;
  repeated Customer some_messages = 14;
  Kind a_kind = 15;
  oneof one { string this = 16; Customer that = 17; }
  google.protobuf.Timestamp a_timestamp = 18;
  google.protobuf.Duration a_duration = 19;
  google.protobuf.Int64Value a_wrapper = 20;
  google.protobuf.UInt64Value a_large_wrapper = 21;
  google.protobuf.Struct a_struct = 22;
  google.protobuf.Value a_value = 23;
  google.protobuf.ListValue a_list = 24;
  google.protobuf.Empty an_empty = 25;
  Order an_order = 26;
  uint64 a_uint64 = 27;
  string from = 28;
  map<int32, Kind> kinds = 29;
  enum Kind { UNKNOWN = 0; LARGE = 1; }
}
message Customer { string name = 1; }
"""


@lru_cache(maxsize=1)
def everything() -> Any:
    return whole("PROTOBUF", EVERYTHING)


def written(schema: Any, value: dict[str, Any], name: str) -> bytes:
    parsed = schema.parsed()
    assert isinstance(parsed, ProtobufSchema)
    message = ParseDict(value, GetMessageClass(parsed.pool.FindMessageTypeByName(name))())
    return bytes(message.SerializeToString())


def one(schema: str, value: dict[str, Any], reader: str | None = None, name: str = "Order") -> Any:
    writer = whole("PROTOBUF", f'syntax = "proto3"; {schema}')
    wanted = writer if reader is None else whole("PROTOBUF", f'syntax = "proto3"; {reader}')
    (row,) = rows(wanted, writer, FIRST + written(writer, value, name))
    return row


@pytest.mark.parametrize(
    ("field", "value", "column", "found", "unset"),
    [
        ("a_bool", True, "boolean", True, False),
        ("an_int32", -5, "int", -5, 0),
        ("a_sint64", "-5", "bigint", -5, 0),
        ("a_uint32", 4294967295, "bigint", 4294967295, 0),
        ("a_fixed64", str(2**64 - 1), "decimal(20,0)", Decimal(2**64 - 1), Decimal(0)),
        ("a_uint64", "7", "decimal(20,0)", Decimal(7), Decimal(0)),
        ("a_float", 0.5, "float", 0.5, 0.0),
        ("a_double", 0.1, "double", 0.1, 0.0),
        ("a_string", "für", "string", "für", ""),
        ("some_bytes", "/w==", "binary", b"\xff", b""),
        ("an_optional", 0, "int", 0, None),
        ("some_strings", ["a", "b"], "array<string>", ["a", "b"], []),
        ("a_map", {"a": {"name": "Ada"}}, "map<string,struct<name:string>>", [("a", {"name": "Ada"})], []),
        ("kinds", {"1": "LARGE"}, "map<int,string>", [(1, "LARGE")], []),
        ("a_message", {"name": "Ada"}, "struct<name:string>", {"name": "Ada"}, None),
        (
            "some_messages",
            [{"name": "Ada"}, {}],
            "array<struct<name:string>>",
            [{"name": "Ada"}, {"name": ""}],
            [],
        ),
        ("a_kind", "LARGE", "string", "LARGE", "UNKNOWN"),
        ("a_kind", 7, "string", "7", "UNKNOWN"),
        ("this", "", "string", "", None),
        ("that", {}, "struct<name:string>", {"name": ""}, None),
        ("a_timestamp", "2026-01-01T12:00:00Z", "timestamp", NOON, None),
        ("a_duration", "-1.5s", "interval day to second", timedelta(seconds=-1.5), None),
        ("a_wrapper", "0", "bigint", 0, None),
        ("a_large_wrapper", "5", "decimal(20,0)", Decimal(5), None),
        ("a_struct", {"a": [1, None]}, "string", '{"a":[1.0,null]}', None),
        ("a_value", "x", "string", '"x"', None),
        ("a_list", [True], "string", "[true]", None),
        ("an_empty", {}, "string", "{}", None),
        ("an_order", {"an_int32": 1}, "string", '{"an_int32":1}', None),
        ("from", "x", "string", "x", ""),
    ],
)
def test_each_construct_has_a_column(field: str, value: Any, column: str, found: Any, unset: Any) -> None:
    schema = everything()
    told = columns(schema).removeprefix("struct<").removesuffix(">")
    assert f",{field}:{column}," in f",{told},"
    set_, empty = rows(schema, schema, FIRST + written(schema, {field: value}, "shop.Order"), FIRST)
    assert set_[field] == found
    assert empty[field] == unset


def test_fields_that_were_not_set_are_their_defaults_in_proto2() -> None:
    proto2 = 'syntax = "proto2"; message Order { optional int32 a = 1; optional int32 b = 2 [default = 5]; }'
    schema = whole("PROTOBUF", proto2)
    assert rows(schema, schema, FIRST) == [{"a": None, "b": 5}]


def test_fields_are_known_by_their_numbers_between_versions() -> None:
    old = "message Order { int64 id = 1; string gone = 2; }"
    new = "message Order { int64 number = 1; optional double price = 3; }"
    assert one(old, {"id": 1, "gone": "x"}, reader=new) == {"number": 1, "price": None}
    assert one(new, {"number": 1, "price": 2}, reader=old) == {"id": 1, "gone": ""}


def test_a_message_that_was_renamed_is_the_one_at_its_place() -> None:
    assert one("message Ordr { int32 id = 1; }", {"id": 1}, "message Order { int32 id = 1; }", "Ordr") == {
        "id": 1
    }


def test_the_columns_are_those_of_one_message_and_others_are_refused() -> None:
    schema = whole(
        "PROTOBUF",
        'syntax = "proto3"; package shop; message Order { message Line { string item = 1; } int32 id = 1; } '
        "message Refund { int32 of = 1; }",
    )
    assert columns(schema) == "struct<id:int>"
    assert columns(schema, "shop.Refund") == "struct<of:int>"
    line = written(schema, {"item": "tea"}, "shop.Order.Line")
    assert rows(schema, schema, b"\x04\0\0" + line, message="shop.Order.Line") == [{"item": "tea"}]
    with pytest.raises(Unreadable, match=r"it is a shop\.Refund, and the columns are those of shop.Order"):
        rows(schema, schema, b"\x02\x02" + written(schema, {"of": 1}, "shop.Refund"))
    with pytest.raises(
        ReadError, match=r"no message 'shop\.Nobody', only shop\.Order, shop\.Refund, shop\.Order"
    ):
        columns(schema, "shop.Nobody")


def test_imports_are_followed() -> None:
    schema = whole(
        "PROTOBUF",
        'syntax = "proto3"; import "customer.proto"; message Order { Customer by = 1; }',
        {"customer.proto": 'syntax = "proto3"; message Customer { string name = 1; }'},
    )
    assert rows(schema, schema, FIRST + written(schema, {"by": {"name": "Ada"}}, "Order")) == [
        {"by": {"name": "Ada"}}
    ]


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"", "it ends within its message index"),
        (b"\x04\0", "it ends within its message index"),
        (b"\x02\x04", "its schema has no message 2"),
        (b"\x01", "it has a message index of -1 steps"),
        (b"\xff\xff\xff\xff\xff\xff", "it has a number of more than five bytes in its message index"),
        (b"\0\x0a\x05ab", "it is not such a Protobuf message"),
    ],
)
def test_what_is_no_message_says_why(payload: bytes, said: str) -> None:
    schema = whole("PROTOBUF", 'syntax = "proto3"; message A { string a = 1; } message B { int32 b = 1; }')
    with pytest.raises(Unreadable) as why:
        rows(schema, schema, payload)
    assert str(why.value).startswith(said)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("string x = 1;", "int32 x = 1;", "field 1 of Order is string in its schema, and int32 in that"),
        ("repeated int32 x = 1;", "int32 x = 1;", "is repeated int32 in its schema, and int32 in that"),
        ("A a = 1;", "B a = 1;", "field 1 of B is int32 in its schema, and string in that"),
    ],
)
def test_a_field_that_is_written_otherwise_is_not_misread(old: str, new: str, said: str) -> None:
    parts = "message A { int32 x = 1; } message B { string x = 1; }"
    with pytest.raises(Unreadable, match=said):
        one(f"message Order {{ {old} }} {parts}", {}, f"message Order {{ {new} }} {parts}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int64 x = 1;", "int32 x = 1;"),
        ("int32 x = 1;", "uint32 x = 1;"),
        ("uint64 x = 1;", "int64 x = 1;"),
        ("int32 x = 1;", "bool x = 1;"),
        ("repeated string x = 1;", "string x = 1;"),
        ("repeated A x = 1;", "A x = 1;"),
        ("repeated int64 x = 1;", "repeated int32 x = 1;"),
        ("map<string, int64> x = 1;", "map<string, int32> x = 1;"),
        ("map<int32, string> x = 1;", "map<uint32, string> x = 1;"),
        ("B x = 1;", "C x = 1;"),
        ("int32 x = 1; int32 y = 2;", "oneof o { int32 x = 1; int32 y = 2; }"),
    ],
)
def test_a_type_that_cannot_hold_every_value_that_was_written_is_refused(old: str, new: str) -> None:
    parts = "message A {} message B { int64 n = 1; } message C { int32 n = 1; }"
    with pytest.raises(Unreadable, match=r"in its schema, and .* in that of the columns"):
        one(f"message Order {{ {old} }} {parts}", {}, f"message Order {{ {new} }} {parts}")


def test_a_wider_type_is_read() -> None:
    old = "message Order { int32 a = 1; string b = 2; uint32 c = 3; Order d = 4; bool e = 5; }"
    new = "message Order { int64 a = 1; repeated string b = 2; uint64 c = 3; Order d = 4; int32 e = 5; }"
    value = {"a": -5, "b": "x", "c": 1, "d": {"a": 7}, "e": True}
    assert one(old, value, new) == {"a": -5, "b": ["x"], "c": 1, "d": '{"a":"7"}', "e": 1}


def test_nanoseconds_are_refused_or_truncated() -> None:
    schema = everything()
    times = {"a_timestamp": "2026-01-01T12:00:00.000000999Z", "a_duration": "-1.000000999s"}
    payload = FIRST + written(schema, times, "shop.Order")
    shape = columns_of(reader_of(schema).shape)
    message = reader_of(schema).decoder_for(schema)(payload)
    with pytest.raises(ValueError, match="fractions of a microsecond"):
        build(shape, [message])
    (row,) = build(truncating(shape), [message]).to_pylist()
    assert (row["a_timestamp"], row["a_duration"]) == (NOON, timedelta(seconds=-1))
