"""Avro schemas: what is one, what it is called, and its one text."""

import json
from typing import Any

import pytest

from headrace.registry.formats import InvalidSchema, Parsed, Schema, SchemaType, parse
from unit.registry.formats.given import avro, kinds, no_references

FIELD = {"name": "a", "type": "int"}


def record(**more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [FIELD], **more}


def fields(*listed: Any) -> dict[str, Any]:
    return record(fields=list(listed))


INVALID = {
    "not JSON": '{"type": "record"',
    "a word that is not JSON": "string",
    "nothing": "",
    "no type": "null",
    "a number": "5",
    "NaN": '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "float", "default": NaN}]}',
    "half a character": '{"type": "int", "doc": "\\ud800"}',
    "a type of no name": {"type": "record", "fields": []},
    "a record without fields": {"type": "record", "name": "R"},
    "a field without a name": fields({"type": "int"}),
    "a field without a type": fields({"name": "a"}),
    "a field that is none": fields("a"),
    "a field twice": fields(FIELD, FIELD),
    "a field that begins with a digit": fields({"name": "1a", "type": "int"}),
    "a field with a dash": fields({"name": "a-b", "type": "int"}),
    "a field with a letter that is not ASCII": fields({"name": "\u00e4", "type": "int"}),
    "an order that is none": fields({**FIELD, "order": "sideways"}),
    "a field's alias that is no name": fields({**FIELD, "aliases": ["x.y"]}),
    "aliases that are no list": fields({**FIELD, "aliases": "b"}),
    "a doc that is no text": record(doc=5),
    "a name that is no name": record(name="R!"),
    "a namespace that is none": record(namespace="x..y"),
    "a name of Avro's own": record(name="string"),
    "a type that nobody knows": '"Unknown"',
    "a type that nobody knows, described": {"type": "recrod", "name": "R", "fields": []},
    "a type described by a type": {"type": {"type": "int"}},
    "a type used before it is defined": fields(
        {"name": "x", "type": "S"}, {"name": "y", "type": record(name="S")}
    ),
    "a type defined twice": fields({"name": "x", "type": record()}),
    "a union in a union": ["null", ["int"]],
    "a union with a type twice": ["int", "null", "int"],
    "a union with two maps": [{"type": "map", "values": "int"}, {"type": "map", "values": "long"}],
    "an array of nothing": {"type": "array"},
    "a map of nothing": {"type": "map"},
    "an enum without symbols": {"type": "enum", "name": "E"},
    "an enum with a symbol twice": {"type": "enum", "name": "E", "symbols": ["A", "A"]},
    "an enum with a symbol that is no name": {"type": "enum", "name": "E", "symbols": ["A-B"]},
    "an enum whose default is no symbol": {"type": "enum", "name": "E", "symbols": ["A"], "default": "B"},
    "a fixed without a size": {"type": "fixed", "name": "F"},
    "a fixed of less than nothing": {"type": "fixed", "name": "F", "size": -1},
    "a fixed of true": {"type": "fixed", "name": "F", "size": True},
    "a decimal with more scale than precision": {
        "type": "bytes",
        "logicalType": "decimal",
        "precision": 2,
        "scale": 3,
    },
}

DEFAULTS: list[tuple[Any, Any, bool]] = [
    ("null", None, True),
    ("int", 2**31 - 1, True),
    ("int", 2**31, False),
    ("int", 1.0, False),
    ("int", True, False),
    ("int", None, False),
    ("long", 2**63, False),
    ("long", -(2**63), True),
    ("float", 1, True),
    ("double", "NaN", True),
    ("double", "many", False),
    ("boolean", 0, False),
    ("string", "x", True),
    ("string", 5, False),
    ("bytes", "\u00ff", True),
    ("bytes", "\u0100", False),
    (["null", "int"], None, True),
    (["null", "int"], 5, True),
    (["null", "int"], "5", False),
    ({"type": "array", "items": "int"}, [1, 2], True),
    ({"type": "array", "items": "int"}, ["1"], False),
    ({"type": "map", "values": "int"}, {"a": 1}, True),
    ({"type": "map", "values": "int"}, [1], False),
    ({"type": "fixed", "name": "F", "size": 2}, "ab", True),
    ({"type": "fixed", "name": "F", "size": 2}, "abc", False),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "A", True),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", False),
    (record(name="S"), {"a": 1}, True),
    (record(name="S"), {}, False),
    (record(name="S", fields=[{**FIELD, "default": 1}]), {}, True),
]


@pytest.mark.parametrize("given", INVALID.values(), ids=INVALID)
def test_what_is_no_avro_schema_is_refused_with_a_sentence(given: Any) -> None:
    with pytest.raises(InvalidSchema, match=r"\.$"):
        avro(given)


@pytest.mark.parametrize(("type_", "default", "valid"), DEFAULTS, ids=str)
def test_a_default_is_a_value_of_its_field(type_: Any, default: Any, valid: bool) -> None:
    given = fields({"name": "x", "type": type_, "default": default})
    if valid:
        assert json.loads(avro(given).canonical)["fields"][0]["default"] == default
    else:
        with pytest.raises(InvalidSchema, match="default"):
            avro(given)


def test_the_canonical_text_is_in_the_order_that_java_writes() -> None:
    given = """ {"fields": [ {"type": {"type": "string"}, "name": "b", "x": 1, "default": "ü", "doc": "D"} ],
                 "aliases": ["y.Old", "Older"], "z": [1, 2], "doc": "", "name": "x.R", "type": "record"} """

    assert avro(given).canonical == (
        '{"type":"record","name":"R","namespace":"x","doc":"","fields":[{"name":"b","type":"string","doc":"D",'
        '"default":"ü","x":1}],"z":[1,2],"aliases":["y.Old","Older"]}'
    )


def test_a_type_is_written_out_once_and_named_from_then_on() -> None:
    inner = {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}
    given = record(
        namespace="x", fields=[{"name": "a", "type": inner}, {"name": "b", "type": ["null", "x.E"]}]
    )

    assert avro(given).canonical.endswith('"default":"A"}},{"name":"b","type":["null","E"]}]}')


def test_normalized_texts_are_equal_where_only_order_and_empty_docs_differ() -> None:
    one = avro(record(doc="", aliases=["B", "A"], p={"y": 1, "x": 2}, o=1))
    other = avro(record(o=1, p={"x": 2, "y": 1}, aliases=["A", "B"]))

    assert one.canonical != other.canonical
    assert one.normalized == other.normalized


def test_canonical_texts_stay_as_they_are() -> None:
    node = fields({"name": "x", "type": ["null", {"type": "array", "items": "R"}], "default": None})
    once = avro(node)

    assert avro(once.canonical).canonical == once.canonical
    assert avro(once.normalized).normalized == once.normalized


def test_a_type_of_another_subject_is_a_name_here_and_written_out_when_resolved() -> None:
    other = record(name="x.S")
    schema = avro(record(fields=[{"name": "s", "type": "x.S"}]), other=other)

    assert schema.canonical == '{"type":"record","name":"R","fields":[{"name":"s","type":"x.S"}]}'
    assert json.loads(schema.formatted("resolved"))["fields"][0]["type"]["fields"] == [FIELD]
    assert schema.formatted("") == schema.formatted("unheard of") == schema.canonical


def test_a_type_without_a_namespace_is_found_from_within_one() -> None:
    schema = avro(record(namespace="x", fields=[{"name": "s", "type": "S"}]), other=record(name="S"))

    assert json.loads(schema.canonical)["fields"] == [{"name": "s", "type": "S"}]


def test_a_reference_that_is_no_schema_is_named() -> None:
    with pytest.raises(InvalidSchema, match="'other'"):
        avro('"int"', other={"type": "nonsense"})


def test_what_fastavro_leaves_in_schemas_is_left_out() -> None:
    given = record(__fastavro_parsed=True, __named_schemas=5)

    assert "fastavro" not in avro(given).canonical


def test_a_default_of_unions_of_records_is_looked_at_in_bounded_time() -> None:
    """Each level asks two records, each of which asks two: 2^60 questions, unless answers are kept."""
    value: dict[str, Any] = {"stop": 1}
    for _ in range(60):
        value = {"u": value}
    second = {"type": "record", "name": "Q", "fields": [{"name": "u", "type": ["R", "Q"]}]}
    given = fields({"name": "u", "type": ["null", "R", second]}, {"name": "d", "type": "R", "default": value})

    with pytest.raises(InvalidSchema, match="default"):
        parse(Schema(SchemaType.AVRO, json.dumps(given)), no_references)


def test_enums_of_many_symbols_count_by_those() -> None:
    """The pairs alone, 200 times 200 of them, are few enough."""

    def enum(tag: str, number: int, size: int) -> dict[str, Any]:
        symbols = [f"s{number}_{each}{tag}" for each in range(size)]
        return {"type": "enum", "name": f"E{number}{tag}", "symbols": symbols}

    def enums(tag: str, size: int) -> Parsed:
        return avro([enum(tag, number, size) for number in range(200)])

    assert kinds(enums("", 200), enums("x", 200)) == ["TOO_COMPLEX"]
    assert "MISSING_UNION_BRANCH" in kinds(enums("", 2), enums("x", 2))
