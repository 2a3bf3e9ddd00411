"""Rows of queries as JSON, CSV and cells for people."""

import json
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from headrace.tables.sql import output

ROWS = pa.table(
    {
        "text": ["a,b", None],
        "bytes": [b"tea", b"\xff"],
        "at": [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), None],
        "day": [date(2026, 1, 2), None],
        "price": [Decimal("1.50"), None],
        "number": [float("nan"), 2.0],
        "took": [timedelta(seconds=90), None],
        "parts": pa.array([{"x": [1, None]}, None], pa.struct([("x", pa.list_(pa.int64()))])),
    },
    schema=pa.schema(
        [
            ("text", pa.string()),
            ("bytes", pa.binary()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("day", pa.date32()),
            ("price", pa.decimal128(9, 2)),
            ("number", pa.float64()),
            ("took", pa.duration("us")),
            ("parts", pa.struct([("x", pa.list_(pa.int64()))])),
        ]
    ),
)


def written(path: Path) -> list[str]:
    with closing(duckdb.connect()) as connection:
        rows = connection.from_arrow(ROWS).project("* exclude (took)")
        assert output.write(rows, path) == 2
    return path.read_text().splitlines()


def test_json_has_an_object_for_each_row(tmp_path: Path) -> None:
    first, second = map(json.loads, written(tmp_path / "rows.json"))

    assert first == {
        "text": "a,b",
        "bytes": "tea",
        "at": "2026-01-02T03:04:05+00:00",
        "day": "2026-01-02",
        "price": "1.50",
        "number": "nan",
        "parts": {"x": [1, None]},
    }
    assert second == dict.fromkeys(first) | {"bytes": {"base64": "/w=="}, "number": 2.0}


def test_csv_has_a_head_and_empty_cells_for_null(tmp_path: Path) -> None:
    head, first, second = written(tmp_path / "rows.csv")

    assert head == "text,bytes,at,day,price,number,parts"
    assert first == '"a,b",tea,2026-01-02T03:04:05+00:00,2026-01-02,1.50,nan,"{""x"": [1, null]}"'
    assert second == ',"{""base64"": ""/w==""}",,,,2.0,'


def test_long_cells_are_cut_for_people() -> None:
    cells = output.shown(pa.table({"value": ["x" * 201, "y" * 200, None], "took": [1, 2, 3]}))

    assert cells == [["x" * 199 + "…", "1"], ["y" * 200, "2"], [None, "3"]]


def test_a_file_that_cannot_be_completed_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    with closing(duckdb.connect()) as connection:
        rows = connection.sql("select case when i = 9 then error('broken') else i end from range(10) t(i)")
        with pytest.raises(duckdb.Error, match="broken"):
            output.write(rows, path)

    assert list(tmp_path.iterdir()) == []
