"""Avro's schema resolution, a row a rule: the pairs that Apache Avro's own tests settle."""

import json
from typing import Any

import pytest

from unit.registry.formats.given import avro, kinds


def record(*fields: Any, name: str = "Record", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def enum(*symbols: str, name: str = "Enum", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "Fixed") -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def map_(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


def linked(value: Any) -> dict[str, Any]:
    """A list: a record that contains itself."""
    return record(field("head", value), field("tail", ["null", "List"], default=None), name="List")


A, A_LONG = record(field("a", "int")), record(field("a", "long"))
A_DEFAULT = record(field("a", "int", default=0))
AB, AB_DEFAULT = (
    record(field("a", "int"), field("b", "int")),
    record(field("a", "int"), field("b", "int", default=0)),
)

COMPATIBLE = [  # reader, writer
    *(
        (primitive, primitive)
        for primitive in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
    ),
    ("long", "int"),
    ("float", "int"),
    ("float", "long"),
    ("double", "int"),
    ("double", "long"),
    ("double", "float"),
    ("string", "bytes"),
    ("bytes", "string"),
    (array("int"), array("int")),
    (array("long"), array("int")),
    (map_("int"), map_("int")),
    (map_("long"), map_("int")),
    (enum("A", "B"), enum("A", "B")),
    (enum("A", "B", "C"), enum("A", "B")),
    (enum("A", "B", default="A"), enum("A", "B", "C")),
    (enum("A", name="one.Enum"), enum("A", name="two.Enum")),
    (enum("A", name="one.Enum"), enum("A")),
    ([], []),
    (["float"], []),
    (["float"], ["int"]),
    (["float"], ["int", "long"]),
    (["int", "string"], ["string", "int"]),
    (["double"], ["int", "float"]),
    (["string"], ["bytes"]),
    ("double", ["int", "long", "float", "double"]),
    ("float", ["float"]),
    (["int"], "int"),
    ("int", ["int"]),
    (fixed(4), fixed(4)),
    (record(), record()),
    (record(), A),
    (A, A_DEFAULT),
    (A_DEFAULT, A),
    (A_DEFAULT, record()),
    (A_LONG, A),
    (A, AB),
    (AB_DEFAULT, A),
    (AB, AB_DEFAULT),
    (linked("int"), linked("int")),
    (linked("long"), linked("int")),
    (record(field("a", enum("A", default="A"))), record(field("a", enum("A", "B", default="B")))),
    (record(field("b", "int", aliases=["a"])), A),
    (record(name="New", aliases=["Record"]), record()),
    (record(name="x.New", aliases=["y.Record"]), record(name="y.Record")),
    (record(name="one.Record"), record(name="two.Record")),
    ({"type": "long", "logicalType": "timestamp-millis"}, "int"),
    ({**A, "type": "error"}, A),
]

INCOMPATIBLE = [  # reader, writer, kind of difference
    ("null", "int", "TYPE_MISMATCH"),
    ("boolean", "int", "TYPE_MISMATCH"),
    ("int", "null", "TYPE_MISMATCH"),
    ("int", "boolean", "TYPE_MISMATCH"),
    ("int", "long", "TYPE_MISMATCH"),
    ("int", "float", "TYPE_MISMATCH"),
    ("int", "double", "TYPE_MISMATCH"),
    ("long", "float", "TYPE_MISMATCH"),
    ("long", "double", "TYPE_MISMATCH"),
    ("float", "double", "TYPE_MISMATCH"),
    ("string", "boolean", "TYPE_MISMATCH"),
    ("string", "int", "TYPE_MISMATCH"),
    ("bytes", "null", "TYPE_MISMATCH"),
    ("bytes", "int", "TYPE_MISMATCH"),
    (array("int"), array("long"), "TYPE_MISMATCH"),
    (map_("int"), map_("long"), "TYPE_MISMATCH"),
    (map_("int"), array("int"), "TYPE_MISMATCH"),
    (array("int"), map_("int"), "TYPE_MISMATCH"),
    ("int", enum("A"), "TYPE_MISMATCH"),
    (enum("A"), "int", "TYPE_MISMATCH"),
    (fixed(4), "bytes", "TYPE_MISMATCH"),
    ("int", ["int", "long"], "TYPE_MISMATCH"),
    ("null", A, "TYPE_MISMATCH"),
    (A, A_LONG, "TYPE_MISMATCH"),
    (linked("int"), linked("long"), "TYPE_MISMATCH"),
    (enum("A", "B"), enum("A", "B", "C"), "MISSING_ENUM_SYMBOLS"),
    (enum("B", "C"), enum("A", "B", "C"), "MISSING_ENUM_SYMBOLS"),
    (enum("A"), enum("A", name="Other"), "NAME_MISMATCH"),
    (fixed(4), fixed(4, "Other"), "NAME_MISMATCH"),
    (record(), record(name="Other"), "NAME_MISMATCH"),
    (record(name="x.New", aliases=["Record"]), record(name="y.Record"), "NAME_MISMATCH"),
    (fixed(4), fixed(8), "FIXED_SIZE_MISMATCH"),
    (["int"], ["int", "string"], "MISSING_UNION_BRANCH"),
    (["int"], ["long"], "MISSING_UNION_BRANCH"),
    (["boolean", "null"], "int", "MISSING_UNION_BRANCH"),
    ([], ["int"], "MISSING_UNION_BRANCH"),
    ([enum("A")], [enum("A", "B")], "MISSING_UNION_BRANCH"),
    (A, record(), "READER_FIELD_MISSING_DEFAULT_VALUE"),
    (AB, A, "READER_FIELD_MISSING_DEFAULT_VALUE"),
    (record(field("a", enum("A", default="A"))), record(), "READER_FIELD_MISSING_DEFAULT_VALUE"),
    (record(field("c", "int", aliases=["a", "b"])), AB, "NAME_MISMATCH"),
]


@pytest.mark.parametrize(("reader", "writer"), COMPATIBLE, ids=str)
def test_a_reader_reads_what_a_compatible_writer_wrote(reader: Any, writer: Any) -> None:
    assert kinds(avro(json.dumps(reader)), avro(json.dumps(writer))) == []


@pytest.mark.parametrize(("reader", "writer", "kind"), INCOMPATIBLE, ids=str)
def test_a_reader_is_told_what_keeps_it_from_reading(reader: Any, writer: Any, kind: str) -> None:
    assert kinds(avro(json.dumps(reader)), avro(json.dumps(writer))) == [kind]


def test_every_difference_is_told_with_its_place() -> None:
    reader = avro(record(field("a", "int"), field("b", enum("X")), field("c", "string")))
    writer = avro(record(field("a", "long"), field("b", enum("Y"))))

    assert kinds(reader, writer) == [
        "TYPE_MISMATCH",
        "MISSING_ENUM_SYMBOLS",
        "READER_FIELD_MISSING_DEFAULT_VALUE",
    ]


def test_a_type_that_only_seemed_to_fit_within_itself_does_not_fit() -> None:
    """one.B is looked at within one.A, whose verdict is open: taken to be good, and it is not.

    `p` is read by two.A then. But `q` is one.B, and there is no other.
    """
    written_b = record(field("a", ["null", "A"]), name="B")
    written = record(
        field("p", record(field("b", written_b), field("z", "long"), name="A")), field("q", "B"), name="W"
    )
    read_b = record(field("a", ["null", "one.A"]), name="one.B")
    bad, good = (
        record(field("b", read_b), field("z", "int"), name="one.A"),
        record(field("z", "long"), name="two.A"),
    )
    without_q, with_q = (
        avro(record(field("p", [bad, good]), *more, name="W")) for more in ((), (field("q", "one.B"),))
    )

    assert kinds(without_q, avro(written)) == []
    assert kinds(with_q, avro(written)) == ["MISSING_UNION_BRANCH"]
