"""Decoders on rows of bytes: the columns they find, and the reason where there are none."""

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
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
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
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
        (None, None, None, "it is not JSON"),
    ]


def test_json_has_whatever_types_spark_has(spark: SparkSession) -> None:
    values = [b'{"a": {"b": [1, 2]}, "m": {"x": 1}, "d": 12.34}', b'{"a": [1]}']
    found = decoded(spark, Json("a struct<b: array<int>>, m map<string, int>, d decimal(9,2)"), values)
    assert found[0] == (([1, 2],), {"x": 1}, Decimal("12.34"), None)
    assert found[1][-1].startswith("it is JSON, but does not fit")


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
