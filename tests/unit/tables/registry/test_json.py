"""JSON Schema in the registry's format: each construct as a column, and one schema read as another."""

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest

from headrace.tables.registry.batches import decode_rows, reader_of
from headrace.tables.registry.reader import Unreadable
from headrace.tables.registry.shapes import build_fitting, columns_of
from unit.tables.registry.given import columns, rows, whole

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CUSTOMER = {"type": "object", "properties": {"name": {"type": "string"}}}


def having(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def one(schema: Any, value: Any, reader: Any = None) -> Any:
    writer = whole("JSON", schema)
    (row,) = rows(writer if reader is None else whole("JSON", reader), writer, json.dumps(value).encode())
    return row


@pytest.mark.parametrize(
    ("node", "value", "column", "found"),
    [
        ({"type": "string"}, "für", "string", "für"),
        ({"type": "integer"}, 1 << 40, "bigint", 1 << 40),
        ({"type": "integer"}, 3.0, "bigint", 3),
        ({"type": "number"}, 3, "double", 3.0),
        ({"type": "number"}, 2**60, "double", float(2**60)),
        ({"type": ["integer", "number"]}, 3, "double", 3.0),
        ({"type": "boolean"}, False, "boolean", False),
        ({"type": "string", "format": "date"}, "2026-01-01", "date", date(2026, 1, 1)),
        ({"type": "string", "format": "date-time"}, "2026-01-01T13:00:00+01:00", "timestamp", NOON),
        ({"type": "string", "format": "date-time"}, "2026-01-01T12:00:00.000Z", "timestamp", NOON),
        ({"type": "string", "format": "date-time"}, "2026-01-01T12:00:00", "timestamp", NOON),
        ({"type": "string", "format": "email"}, "nobody", "string", "nobody"),
        ({"type": ["null", "integer"]}, None, "bigint", None),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 5, "bigint", 5),
        ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, None, "bigint", None),
        ({"enum": ["A", "B"]}, "B", "string", "B"),
        ({"const": 1}, 1, "bigint", 1),
        ({"enum": [1, "a"]}, "a", "string", '"a"'),
        (CUSTOMER, {"name": "Ada", "more": 1}, "struct<name:string>", {"name": "Ada"}),
        ({"type": "array", "items": {"type": "integer"}}, [1, 2], "array<bigint>", [1, 2]),
        ({"type": "array", "items": CUSTOMER}, [{}], "array<struct<name:string>>", [{"name": None}]),
        ({"type": "array"}, [1, "a"], "string", '[1,"a"]'),
        (
            {"type": "object", "additionalProperties": {"type": "number"}},
            {"a": 1},
            "map<string,double>",
            [("a", 1.0)],
        ),
        ({"type": "object"}, {"a": [1]}, "string", '{"a":[1]}'),
        ({"type": ["string", "integer"]}, 5, "string", "5"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "a", "string", '"a"'),
        ({}, {"a": "ü"}, "string", '{"a":"ü"}'),
        (True, None, "string", None),
        ({"allOf": [CUSTOMER]}, {"name": "Ada"}, "struct<name:string>", {"name": "Ada"}),
        (
            {"allOf": [CUSTOMER, having(age={"type": "integer"})]},
            {"name": "Ada", "age": 36},
            "struct<name:string,age:bigint>",
            {"name": "Ada", "age": 36},
        ),
        ({"$ref": "#/definitions/id"}, 5, "bigint", 5),
        ({"$ref": "other.json"}, {"name": "Ada"}, "struct<name:string>", {"name": "Ada"}),
    ],
)
def test_each_construct_has_a_column(node: Any, value: Any, column: str, found: Any) -> None:
    given = {**having(x=node), "definitions": {"id": {"type": "integer"}}}
    schema = whole("JSON", given, {"other.json": CUSTOMER} if "other" in str(node) else None)
    assert columns(schema) == f"struct<x:{column}>"
    assert rows(schema, schema, json.dumps({"x": value}).encode()) == [{"x": found}]


def test_what_contains_itself_is_json() -> None:
    schema = having(n={"type": "integer"}, next={"$ref": "#"})
    assert columns(whole("JSON", schema)) == "struct<n:bigint,next:string>"
    assert one(schema, {"n": 1, "next": {"n": 2}}) == {"n": 1, "next": '{"n":2}'}


def test_a_schema_that_is_no_object_is_one_column() -> None:
    assert columns(whole("JSON", {"type": "integer"})) == "struct<value:bigint>"
    assert one({"type": "integer"}, 5) == {"value": 5}


def test_fields_are_found_by_name_and_those_that_are_not_there_are_null() -> None:
    old, new = (
        having(id={"type": "integer"}, gone={}),
        having(price={"type": "number"}, id={"type": "integer"}),
    )
    assert one(old, {"id": 1, "gone": 2}, reader={**new, "required": ["price"]}) == {"id": 1, "price": None}


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"", "it is not JSON"),
        (b"{", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b'{"id": NaN}', "it is not JSON: NaN is not a number"),
        (b"[" * 100_000, "it is not JSON"),
        (b"{}", 'it does not fit its schema: "id" is a required property'),
        (b'{"id": "x"}', 'it does not fit its schema at id: "x" is not of type "integer"'),
    ],
)
def test_what_does_not_fit_its_schema_says_why(payload: bytes, said: str) -> None:
    schema = whole("JSON", {**having(id={"type": "integer"}), "required": ["id"]})
    with pytest.raises(Unreadable) as why:
        rows(schema, schema, payload)
    assert str(why.value).startswith(said)


def test_a_value_that_fits_its_schema_and_not_the_column_is_taken_out_and_no_other() -> None:
    schema = whole("JSON", having(id={"type": "integer"}, at={"type": "string", "format": "date"}))
    found = reader_of(schema)
    read = found.decoder_for(schema)
    values = [read(b'{"id": %d}' % (number if number % 10 else 1 << 70)) for number in range(40)]
    values[20] = read(b'{"id": 20, "at": "tomorrow"}')
    told: dict[int, str] = {}
    array = build_fitting(columns_of(found.shape), values, told.__setitem__)
    assert sorted(told) == [0, 10, 20, 30]
    assert told[0].startswith("it does not fit the columns: ")
    assert told[20] == "it does not fit the columns: Invalid isoformat string: 'tomorrow'"
    assert [each and each["id"] for each in array.to_pylist()] == [n if n % 10 else None for n in range(40)]


@pytest.mark.parametrize(
    ("column", "text", "said"),
    [
        ({"type": "integer"}, "19.99", "19.99 is not an integer"),
        ({"type": "integer"}, "9223372036854775808", "too large"),
        ({"type": "number"}, "9007199254740993", "9007199254740993 is not a double exactly"),
        ({"type": "number"}, "1e400", "1E+400 is not a double exactly"),
        ({"type": "number"}, "0.1234567890123456789", "0.1234567890123456789 is not a double exactly"),
        ({}, "0.1234567890123456789", "0.1234567890123456789 is not a double exactly"),
        (
            {"type": "string", "format": "date-time"},
            '"2026-01-01T12:00:00.123456789Z"',
            "fractions of a micro",
        ),
    ],
)
def test_a_value_that_the_column_cannot_hold_is_refused(column: Any, text: str, said: str) -> None:
    writer, found = whole("JSON", {}), reader_of(whole("JSON", {"properties": {"x": column}}))
    payload = f'{{"x": {text}}}'.encode()

    rows = decode_rows(columns_of(found.shape), found.decoder_for(writer), [payload])

    assert said in rows.field("reason")[0].as_py()


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b'{"x": 1, "x": 2}', "it is not JSON: an object has the key 'x' twice"),
        (b'{"x": 1} {"x": 2}', "it is not JSON: Extra data"),
        (b'{"x": "\xff"}', "it is not JSON: 'utf-8' codec can't decode byte 0xff"),
        (b'{"x": NaN}', "it is not JSON: NaN is not a number in JSON"),
    ],
)
def test_what_is_not_one_value_of_json_is_refused(payload: bytes, said: str) -> None:
    schema = whole("JSON", {"properties": {"x": {"type": "number"}}})
    with pytest.raises(Unreadable) as why:
        rows(schema, schema, payload)
    assert str(why.value).startswith(said)


def test_spaces_around_a_value_are_ignored() -> None:
    schema = whole("JSON", {"properties": {"x": {"type": "number"}}})
    assert rows(schema, schema, b' \n{"x": 1e2}\r\n\t') == [{"x": 100.0}]
