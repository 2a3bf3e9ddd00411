"""Avro in the registry's format: each construct as a column, and one schema read as another."""

import io
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from headrace.tables.reader.errors import ReadError
from headrace.tables.registry.batches import decode_rows, reader_of
from headrace.tables.registry.reader import Unreadable
from headrace.tables.registry.shapes import columns_of
from unit.tables.registry.given import columns, rows, whole

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CUSTOMER = {"type": "record", "name": "Customer", "fields": [{"name": "name", "type": "string"}]}
REFUND = {"type": "record", "name": "Refund", "fields": [{"name": "of", "type": "long"}]}


def record(*fields: Any, name: str = "Order") -> Any:
    """A record with fields ("name", type) or ("name", type, default)."""
    keys = ("name", "type", "default")
    given = [dict(zip(keys, each, strict=False)) for each in fields]
    return {"type": "record", "name": name, "fields": given}


def logical(kind: str, meaning: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": meaning, **more}


def written(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def one(schema: Any, value: Any, reader: Any = None) -> Any:
    """The value, written with one schema and read with another."""
    writer = whole("AVRO", schema)
    (row,) = rows(writer if reader is None else whole("AVRO", reader), writer, written(schema, value))
    return row


@pytest.mark.parametrize(
    ("type_", "value", "column", "found"),
    [
        ("boolean", True, "boolean", True),
        ("int", -7, "int", -7),
        ("long", 1 << 40, "bigint", 1 << 40),
        ("float", 0.5, "float", 0.5),
        ("double", 0.1, "double", 0.1),
        ("string", "für", "string", "für"),
        ("bytes", b"\xff", "binary", b"\xff"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", "binary", b"ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "string", "B"),
        (["null", "long"], None, "bigint", None),
        (["null", "long"], 5, "bigint", 5),
        (["null", CUSTOMER], {"name": "Ada"}, "struct<name:string>", {"name": "Ada"}),
        (["int", "long", "null"], 5, "bigint", 5),
        (["int", "double"], 5, "double", 5.0),
        ({"type": "array", "items": ["null", "int"]}, [1, None], "array<int>", [1, None]),
        (
            {"type": "map", "values": CUSTOMER},
            {"a": {"name": "Ada"}},
            "map<string,struct<name:string>>",
            None,
        ),
        (logical("int", "date"), date(2026, 1, 1), "date", date(2026, 1, 1)),
        (logical("long", "timestamp-millis"), NOON, "timestamp", NOON),
        (logical("long", "timestamp-micros"), NOON, "timestamp", NOON),
        (logical("long", "local-timestamp-millis"), NOON, "timestamp_ntz", NOON.replace(tzinfo=None)),
        (logical("long", "local-timestamp-micros"), NOON, "timestamp_ntz", NOON.replace(tzinfo=None)),
        (logical("int", "time-millis"), 1000, "int", 1000),
        (
            logical("bytes", "decimal", precision=9, scale=2),
            Decimal("-1.25"),
            "decimal(9,2)",
            Decimal("-1.25"),
        ),
        (logical("bytes", "decimal", precision=50, scale=1), Decimal("1.5"), "string", "1.5"),
        (
            logical("fixed", "decimal", precision=38, scale=2, name="D", size=16),
            Decimal("123456789012345678901234567890123456.78"),
            "decimal(38,2)",
            Decimal("123456789012345678901234567890123456.78"),
        ),
        (logical("string", "uuid"), uuid.UUID(int=1), "string", str(uuid.UUID(int=1))),
        (
            logical("fixed", "uuid", name="U", size=16),
            uuid.UUID(int=2).bytes,
            "string",
            str(uuid.UUID(int=2)),
        ),
    ],
)
def test_each_type_has_a_column(type_: Any, value: Any, column: str, found: Any) -> None:
    schema = record(("x", type_))
    assert columns(whole("AVRO", schema)) == f"struct<x:{column}>"
    expected = [("a", {"name": "Ada"})] if column.startswith("map") else found
    assert one(schema, {"x": value}) == {"x": expected}


def test_a_schema_that_is_no_record_is_one_column() -> None:
    assert columns(whole("AVRO", '"string"')) == "struct<value:string>"
    assert one({"type": "string"}, "a") == {"value": "a"}
    assert one({"type": "long"}, 3, reader={"type": "double"}) == {"value": 3.0}


def test_a_record_within_itself_is_json() -> None:
    schema = record(("n", "int"), ("next", ["null", "Order"]))
    assert columns(whole("AVRO", schema)) == "struct<n:int,next:string>"
    chain = {"n": 1, "next": {"n": 2, "next": {"n": 3, "next": None}}}
    assert one(schema, chain) == {"n": 1, "next": '{"n":2,"next":{"n":3,"next":null}}'}


@pytest.mark.parametrize(
    ("value", "set_"),
    [
        (("Customer", {"name": "Ada"}), {"Customer": {"name": "Ada"}}),
        (("Refund", {"of": 7}), {"Refund": {"of": 7}}),
        ("text", {"string": "text"}),
        (None, None),
    ],
)
def test_a_union_of_several_is_a_struct_with_one_branch_set(value: Any, set_: Any) -> None:
    schema = record(("x", ["null", CUSTOMER, REFUND, "string"]))
    assert columns(whole("AVRO", schema)) == (
        "struct<x:struct<Customer:struct<name:string>,Refund:struct<of:bigint>,string:string>>"
    )
    nothing = {"Customer": None, "Refund": None, "string": None}
    assert one(schema, {"x": value}) == {"x": set_ and nothing | set_}


def test_what_was_one_record_is_a_branch_of_a_union_to_a_later_reader() -> None:
    found = one(record(("x", REFUND)), {"x": {"of": 7}}, reader=record(("x", [CUSTOMER, REFUND])))
    assert found == {"x": {"Customer": None, "Refund": {"of": 7}}}


def test_references_are_followed() -> None:
    schema = whole("AVRO", record(("by", "Customer")), {"Customer": CUSTOMER})
    assert columns(schema) == "struct<by:struct<name:string>>"
    assert rows(schema, schema, written(record(("by", CUSTOMER)), {"by": {"name": "Ada"}})) == [
        {"by": {"name": "Ada"}}
    ]


def test_fields_come_and_go_between_versions() -> None:
    old = record(("id", "int"), ("gone", "string"))
    new = record(("id", "long"), ("price", ["null", "double"], None), ("currency", "string", "EUR"))
    assert one(old, {"id": 1, "gone": "x"}, reader=new) == {"id": 1, "price": None, "currency": "EUR"}
    assert one(new, {"id": 1}, reader=record(("id", "long"))) == {"id": 1}


def test_a_field_that_was_renamed_is_found_by_its_alias() -> None:
    new = record(("number", "int"))
    new["fields"][0]["aliases"] = ["id"]
    assert one(record(("id", "int")), {"id": 1}, reader=new) == {"number": 1}


@pytest.mark.parametrize(
    ("old", "new", "value", "found"),
    [
        (logical("long", "timestamp-millis"), logical("long", "timestamp-micros"), NOON, NOON),
        (logical("long", "timestamp-micros"), logical("long", "timestamp-millis"), NOON, NOON),
        (["null", logical("long", "timestamp-millis")], logical("long", "timestamp-micros"), NOON, NOON),
        ("long", logical("long", "timestamp-millis"), 1000, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (logical("long", "timestamp-millis"), "long", NOON, 1767268800000),
        (
            logical("bytes", "decimal", precision=9, scale=2),
            logical("bytes", "decimal", precision=9, scale=3),
            Decimal("1.25"),
            Decimal("1.250"),
        ),
        ("bytes", logical("bytes", "decimal", precision=9, scale=2), b"\x7d", Decimal("1.25")),
        (logical("bytes", "decimal", precision=9, scale=2), "bytes", Decimal("1.25"), b"\x7d"),
        (logical("string", "uuid"), "string", uuid.UUID(int=1), str(uuid.UUID(int=1))),
    ],
)
def test_a_value_stays_what_it_is_when_its_logical_type_changes(
    old: Any, new: Any, value: Any, found: Any
) -> None:
    assert one(record(("x", old)), {"x": value}, reader=record(("x", new))) == {"x": found}


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"", "it is not such an Avro record"),
        (b"\x02", "it is not such an Avro record"),
        (b"\x02\x02ax", "1 byte follows the Avro record"),
        (b"\x02\x02axyz", "3 bytes follow the Avro record"),
        (b"\x02\x02\xff", "it is not such an Avro record: UnicodeDecodeError"),
    ],
)
def test_what_is_no_record_says_why(payload: bytes, said: str) -> None:
    schema = whole("AVRO", record(("id", "int"), ("name", "string")))
    with pytest.raises(Unreadable) as why:
        rows(schema, schema, payload)
    assert str(why.value).startswith(said)


def test_schemas_that_do_not_go_together_make_no_row() -> None:
    with pytest.raises(Unreadable, match="id is string in its schema, and int in that of the columns"):
        one(record(("id", "string")), {"id": "a"}, reader=record(("id", "int")))
    with pytest.raises(Unreadable, match="its schema is JSON, and the schema of the columns is AVRO"):
        rows(whole("AVRO", '"int"'), whole("JSON", "{}"), b"1")


def test_fields_that_sql_would_mix_up_are_refused() -> None:
    with pytest.raises(ReadError, match="'id' and 'ID' of the schema differ only in case"):
        columns(whole("AVRO", record(("id", "int"), ("ID", "int"))))


@pytest.mark.parametrize(
    ("old", "new", "value", "said"),
    [
        (
            logical("int", "date"),
            logical("long", "timestamp-millis"),
            20_000,
            "x is int (date) in its schema, and",
        ),
        (
            logical("int", "time-millis"),
            logical("long", "timestamp-millis"),
            5,
            "x is int (time-millis) in its",
        ),
        (
            logical("long", "timestamp-micros"),
            logical("long", "timestamp-millis"),
            1001,
            "cannot hold exactly",
        ),
        ("long", "double", 2**53 + 1, "9007199254740993 is not a double exactly"),
        ("int", "float", 2**24 + 1, "16777217 is not a float of 32 bits exactly"),
        ("long", ["null", "double"], 2**53 + 1, "9007199254740993 is not a double exactly"),
        (
            ["long", "double"],
            ["long", "double", "null"],
            2**53 + 1,
            "9007199254740993 is not a double exactly",
        ),
        ("bytes", "string", b"\xff", "'utf-8' codec can't decode byte 0xff"),
        (["null", "int"], "int", None, "x is null in its schema, and int in that of the columns"),
    ],
)
def test_a_value_that_the_column_cannot_hold_is_refused(old: Any, new: Any, value: Any, said: str) -> None:
    plain = {"type": old["type"]} if isinstance(old, dict) else old
    writer, reader = (whole("AVRO", record(("x", each))) for each in (old, new))
    found = reader_of(reader)
    decode = found.decoder_for(writer)
    payload = written(record(("x", plain)), {"x": value})

    (reason,) = decode_rows(columns_of(found.shape), decode, [payload]).field("reason").to_pylist()

    assert said in reason


def test_a_value_goes_to_the_branch_of_its_own_type() -> None:
    """Whatever the order of the reader's branches, and although a string may be read as bytes."""
    reader = record(("x", ["bytes", "double", "string", "long"]), ("y", "int", 0))
    nothing = {"bytes": None, "double": None, "string": None, "long": None}
    for value, set_ in (
        ("a", {"string": "a"}),
        (b"a", {"bytes": b"a"}),
        (5, {"long": 5}),
        (0.5, {"double": 0.5}),
    ):
        for writer in (["string", "bytes", "long", "double"], [type_of(value), "null"]):
            found = one(record(("x", writer)), {"x": value}, reader=reader)
            assert found == {"x": nothing | set_, "y": 0}


def type_of(value: Any) -> str:
    return {str: "string", bytes: "bytes", int: "long", float: "double"}[type(value)]


def test_defaults_are_values_of_their_types() -> None:
    point = record(("x", "double", 0), ("y", ["null", "bytes"], None), name="Point")
    reader = record(
        ("id", "int"),
        ("raw", "bytes", "\u00ff"),
        ("price", logical("bytes", "decimal", precision=9, scale=2), "\u007d"),
        ("at", point, {"x": 5}),
        ("either", ["string", "int"], "a"),
    )
    assert one(record(("id", "int")), {"id": 1}, reader=reader) == {
        "id": 1,
        "raw": b"\xff",
        "price": Decimal("1.25"),
        "at": {"x": 5.0, "y": None},
        "either": {"string": "a", "int": None},
    }


def test_an_unknown_symbol_is_the_default_of_the_readers_enum_or_refused() -> None:
    old = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    new = {"type": "enum", "name": "E", "symbols": ["A", "OTHER"]}
    assert one(record(("x", old)), {"x": "B"}, reader=record(("x", {**new, "default": "OTHER"}))) == {
        "x": "OTHER"
    }
    with pytest.raises(Unreadable, match="x is B, which the schema of the columns does not have"):
        one(record(("x", old)), {"x": "B"}, reader=record(("x", new)))
