"""Decoders on rows of bytes: the columns they find, and the reason where there are none."""

import io
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from headrace.pipeline import Avro, Csv, Json, Number, PipelineError, Raw, Text
from headrace.pipeline.decoders import Decoder

TRUCK = {
    "type": "record",
    "name": "Truck",
    "fields": [
        {"name": "truck", "type": "string"},
        {"name": "km", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "wheels", "type": {"type": "map", "values": "int"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["SMALL", "LARGE"]}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {
            "name": "owner",
            "type": {"type": "record", "name": "Owner", "fields": [{"name": "name", "type": "string"}]},
        },
    ],
}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def decoded(spark: SparkSession, decoder: Decoder, values: Sequence[bytes | None]) -> list[tuple[Any, ...]]:
    """Each value's columns and reason, in the order of the values."""
    rows = spark.createDataFrame(list(enumerate(values)), "n int, value binary").coalesce(1)
    found = decoder.decode(rows["value"])
    columns = [column.alias(name) for name, column in found.columns.items()]
    return [
        tuple(row)[1:] for row in rows.select("n", *columns, found.reason.alias("why")).orderBy("n").collect()
    ]


def test_json_becomes_columns_and_what_is_no_such_json_says_why(spark: SparkSession) -> None:
    values = [
        b'{"truck": "a", "km": 1.5, "at": "2026-01-01T12:00:00Z", "more": [1]}',
        b'{"truck": "b"}',
        None,
        b'{"truck": "c", "km": "far"}',
        b"{nonsense",
        b"",
        b'"a"',
        b"\xff\xfe",
    ]
    unfit = "it is JSON, but does not fit truck string, km double, at timestamp"
    noon = NOON.astimezone().replace(tzinfo=None)
    assert decoded(spark, Json("truck string, km double, at timestamp"), values) == [
        ("a", 1.5, noon, None),
        ("b", None, None, None),
        (None, None, None, None),
        ("c", None, None, unfit),
        (None, None, None, "it is not JSON"),
        (None, None, None, "it is not JSON"),
        (None, None, None, unfit),
        (None, None, None, "it is not UTF-8"),
    ]


def test_json_has_whatever_types_spark_has(spark: SparkSession) -> None:
    values = [b'{"a": {"b": [1, 2]}, "m": {"x": 1}, "d": 12.34}', b'{"a": [1]}']
    found = decoded(spark, Json("a struct<b: array<int>>, m map<string, int>, d decimal(9,2)"), values)
    assert found[0] == (([1, 2],), {"x": 1}, Decimal("12.34"), None)
    assert found[1][-1].startswith("it is JSON, but does not fit")


INEXACT = "it does not fit the columns: "


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (
            "x double",
            {
                "19.99": 19.99,
                "0.30000000000000004": 0.30000000000000004,
                "1e-5": 1e-5,
                '"NaN"': None,
                "-0.0": 0,
            },
            {
                "1e400": "1E+400 is not a double exactly",
                "1e-400": "1E-400 is not a double exactly",
                "9007199254740993": "9007199254740993 is not a double exactly",
                "0.1234567890123456789": "0.1234567890123456789 is not a double exactly",
            },
        ),
        (
            "x float",
            {"0.1": None, "16777216": 16777216},
            {"16777217": "16777217 is not a float of 32 bits exactly"},
        ),
        (
            "x decimal(9,2)",
            {"1.25": Decimal("1.25"), "1.250": Decimal("1.25"), "125e-2": Decimal("1.25")},
            {"1.005": "1.005 has more than 2 digits after the point"},
        ),
        (
            "x array<decimal(9,2)>",
            {"[1.25]": [Decimal("1.25")]},
            {"[1, 1.005]": "1.005 has more than 2 digits"},
        ),
        (
            "x map<string, struct<y: double>>",
            {'{"a": {"y": 1}}': None},
            {'{"a": {"y": 1e400}}': "1E+400 is not a double exactly"},
        ),
        (
            "x timestamp",
            {'"2026-01-01T12:00:00.123456000Z"': None, "1700000000": None},
            {
                '"2026-01-01T12:00:00.123456789Z"': "2026-01-01T12:00:00.123456789Z has fractions of a micro",
                "99999999999999999": "99999999999999999 is too large for a timestamp",
            },
        ),
        (
            "x date",
            {'"2026-01-01"': date(2026, 1, 1)},
            {'"2026-01-01T12:00:00Z"': "2026-01-01T12:00:00Z is not a"},
        ),
        (
            "x string",
            {
                '"1e400"': "1e400",
                "12345678901234567890": "12345678901234567890",
                '"\\ud83d\\ude00"': "\U0001f600",
            },
            {
                "0.1234567890123456789": "0.1234567890123456789 is not",
                '"\\ud800"': "'utf-8' codec can't encode",
            },
        ),
    ],
)
def test_json_is_exact_or_has_a_reason(
    spark: SparkSession, schema: str, good: dict[str, Any], bad: dict[str, str]
) -> None:
    found = decoded(spark, Json(schema), [f'{{"x": {each}}}'.encode() for each in (*good, *bad)])

    for (value, why), expected in zip(found, good.values(), strict=False):
        assert why is None
        assert expected is None or value == expected
    for (_, why), expected in zip(found[len(good) :], bad.values(), strict=True):
        assert (why or "").startswith(INEXACT + expected)


def test_what_follows_a_json_object_is_not_dropped(spark: SparkSession) -> None:
    good = [b'{"a": 1}', b' {"a": 1}\r\n', b'{"a": 1, "b": {"c": ["}", {}]}}', b'{"a": 1, "s": "}"}']
    bad = [
        *(b'{"a": 1} {"a": 2}', b'{"a": 1}x', b'{"a": 1}]', b'{"a": 1}}', b'{"a": 1}, "b": 2'),
        *(b'{"a": 1}, {"a": 2}', b'{"a": 1}, 0] []', b'{"a": 1, "b": {}} {"a": 2}'),
    ]
    found = decoded(spark, Json("a int"), [*good, *bad, b'{"a": 1, "s": "\xff"}'])

    assert found[: len(good)] == [(1, None)] * len(good)
    said = [why for _, why in found[len(good) :]]
    assert all(why.startswith("it is not JSON: Extra data: ") for why in said[:-1]), said
    assert said[-1] == "it is not UTF-8"


def test_an_object_with_a_key_twice_says_so(spark: SparkSession) -> None:
    good = [b'{"a": 1, "b": {"a": 2}}', b'{"a": 1, "b": {"a": 2}, "c": [{"a": 1}, {"a": 1}], "A": 3}']
    bad = [
        *(b'{"a": 1, "a": 1}', b'{"a": 1, "b": {"a": 1, "x": {}, "a": 2}}', b'{"a": 1, "\\u0061": 2}'),
        *(b'{"a": 1, "c": [{"a": 1e400, "a": 2}]}', b'{"a": 1, "b": {"a": 2}, "c": {"a": 1, "a": 1}}'),
    ]
    found = decoded(spark, Json("a int, b struct<a: int>"), [*good, *bad])

    assert found[: len(good)] == [(1, (2,), None)] * len(good)
    assert {why for *_, why in found[len(good) :]} == {"it is not JSON: an object has the key 'a' twice"}


def test_csv_and_numbers_are_exact_or_have_a_reason(spark: SparkSession) -> None:
    csv = decoded(
        spark, Csv("x decimal(9,2), y double, z string"), [b"1.25,1e-5,1e400", b"1.005,1,a", b"1,1e400,a"]
    )
    assert csv[0] == (Decimal("1.25"), 1e-5, "1e400", None)
    assert [row[-1] for row in csv[1:]] == [
        f"{INEXACT}1.005 has more than 2 digits after the point",
        f"{INEXACT}1e400 is not a double exactly",
    ]
    for kind, value in (("double", b"9007199254740993"), ("decimal(9,2)", b"1.005"), ("double", b"1e400")):
        ((_, why),) = decoded(spark, Number(kind), [value])
        assert why.startswith(f"{INEXACT}{value.decode()} ")


def test_lines_of_csv_become_columns_with_options_of_sparks(spark: SparkSession) -> None:
    values = [b'a;1.5;"x;y"', b"b;;", None, b"c;far;z", b"d;1", b"e;1;2;3"]
    found = decoded(spark, Csv("truck string, km double, note string", {"sep": ";"}), values)
    unfit = "it does not fit truck string, km double, note string"
    assert found[:3] == [("a", 1.5, "x;y", None), ("b", None, None, None), (None, None, None, None)]
    assert [row[-1] for row in found[3:]] == [unfit, unfit, unfit]


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("bigint", {b"17": 17, b" -3 ": -3, None: None}, [b"", b"x", b"1.5e", b"9223372036854775808"]),
        ("double", {b"1.5": 1.5, b"1e3": 1000.0}, [b"one"]),
        ("decimal(5,2)", {b"1.5": Decimal("1.50")}, [b"1000000", b"x"]),
        ("boolean", {b"true": True, b"no": False}, [b"maybe"]),
    ],
)
def test_numbers_are_read_from_their_text(
    spark: SparkSession, kind: str, good: dict[bytes | None, Any], bad: list[bytes]
) -> None:
    found = decoded(spark, Number(kind), [*good, *bad])
    assert found == [*((each, None) for each in good.values()), *((None, f"it is not a {kind}") for _ in bad)]


def test_text_is_utf8_or_bad(spark: SparkSession) -> None:
    found = decoded(spark, Text(), ["für".encode(), b"", None, b"\xff"])
    assert found[:3] == [("für", None), ("", None), (None, None)]
    assert found[3][-1] == "it is not UTF-8"


def test_bytes_as_they_are_are_never_bad(spark: SparkSession) -> None:
    assert decoded(spark, Raw(), [b"\xff", None]) == [(b"\xff", None), (None, None)]


def test_avro_becomes_columns_and_what_is_no_record_says_why(spark: SparkSession, tmp_path: Path) -> None:
    truck = {
        "truck": "a",
        "km": None,
        "at": NOON,
        "tags": ["x", "y"],
        "wheels": {"front": 2},
        "kind": "LARGE",
        "price": Decimal("12.50"),
        "owner": {"name": "Ada"},
    }
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(TRUCK), truck)
    good = written.getvalue()
    (tmp_path / "truck.avsc").write_text(json.dumps(TRUCK))

    found = decoded(spark, Avro(str(tmp_path / "truck.avsc")), [good, None, good + b"xy", good[:5], b"\x01"])

    noon = NOON.astimezone().replace(tzinfo=None)
    assert found[0] == ("a", None, noon, ["x", "y"], {"front": 2}, "LARGE", Decimal("12.50"), ("Ada",), None)
    assert found[1] == (None,) * 9
    assert found[2][-1] == "2 bytes follow the Avro record"
    assert found[3][-1].startswith("it is not such an Avro record")
    assert found[4][-1].startswith("it is not such an Avro record")


@pytest.mark.parametrize(
    ("decoder", "sentence"),
    [
        (Json("truck sting"), "'truck sting' is not a schema; expected NAME TYPE, NAME TYPE, ..."),
        (Csv(""), "'' is not a schema"),
        (Avro("nowhere.avsc"), "nowhere.avsc cannot be read"),
        (Number("integral"), "'integral' is not a type of Spark"),
    ],
)
def test_a_schema_that_is_wrong_is_refused_with_a_sentence(
    spark: SparkSession, decoder: Decoder, sentence: str
) -> None:
    rows = spark.createDataFrame([(b"x",)], "value binary")
    with pytest.raises(PipelineError) as error:
        decoder.decode(rows["value"])
    assert str(error.value).startswith(sentence)


def test_an_avro_union_of_several_types_is_a_struct(spark: SparkSession, tmp_path: Path) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "u", "type": ["int", "string"]}]}
    (tmp_path / "union.avsc").write_text(json.dumps(schema))

    found = decoded(spark, Avro(str(tmp_path / "union.avsc")), [b"\0\2", b"\2\2a"])

    assert found == [((1, None), None), ((None, "a"), None)]


def test_an_avro_schema_that_is_wrong_or_not_of_a_record_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.createDataFrame([(b"x",)], "value binary")
    for wrong, said in (("int", "has type int, expected record"), ({"type": "reccord"}, "cannot be parsed")):
        (tmp_path / "wrong.avsc").write_text(json.dumps(wrong))
        with pytest.raises(PipelineError, match=said):
            Avro(str(tmp_path / "wrong.avsc")).decode(rows["value"])
