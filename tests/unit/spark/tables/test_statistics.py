import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.spark.tables.statistics import leaves, lower_bound, statistics, upper_bound


def said_of(table: pa.Table, row_group_size: int = 2) -> dict[str, Any]:
    written = io.BytesIO()
    pq.write_table(table, written, row_group_size=row_group_size)
    found: dict[str, Any] = json.loads(statistics(pq.read_metadata(written), table.schema))
    return found


def test_bounds_span_the_row_groups_and_nulls_are_added_up() -> None:
    said = said_of(pa.table({"n": [5, None, None, None, 1, 9], "s": ["b", "a", "c", None, "d", "e"]}))

    assert said == {
        "numRecords": 6,
        "minValues": {"n": 1, "s": "a"},
        "maxValues": {"n": 9, "s": "e"},
        "nullCount": {"n": 3, "s": 1},
    }


def test_what_is_in_a_struct_is_found_and_what_is_in_a_list_or_a_map_left_out() -> None:
    kind = pa.schema(
        [
            ("a.b", pa.int32()),
            ("st", pa.struct([("x", pa.int32()), ("l", pa.list_(pa.int32())), ("y", pa.date32())])),
            ("m", pa.map_(pa.string(), pa.struct([("p", pa.int32()), ("q", pa.int32())]))),
            ("last", pa.int64()),
        ]
    )
    row = {
        "a.b": 1,
        "st": {"x": 2, "l": [7], "y": dt.date(2026, 1, 2)},
        "m": {"k": {"p": 8, "q": 9}},
        "last": 3,
    }

    assert list(leaves(kind)) == [("a.b",), ("st", "x"), (), ("st", "y"), (), (), (), ("last",)]
    assert said_of(pa.Table.from_pylist([row], kind))["minValues"] == {
        "a.b": 1,
        "st": {"x": 2, "y": "2026-01-02"},
        "last": 3,
    }


def test_columns_of_floats_booleans_and_bytes_have_no_bounds_but_a_count_of_nulls() -> None:
    said = said_of(pa.table({"f": [1.0, float("nan")], "b": [True, None], "raw": [b"x", b"y"]}))

    assert said["minValues"] == said["maxValues"] == {}
    assert said["nullCount"] == {"f": 0, "b": 1, "raw": 0}


def test_times_are_rounded_away_from_what_lies_between() -> None:
    at = dt.datetime(2026, 1, 31, 12, 0, 0, 1001, tzinfo=dt.UTC)

    assert (lower_bound(at), upper_bound(at)) == ("2026-01-31T12:00:00.001Z", "2026-01-31T12:00:00.002Z")
    assert upper_bound(at.replace(microsecond=999_001, tzinfo=None)) == "2026-01-31T12:00:01.000"
    assert upper_bound(at.replace(microsecond=2000)) == "2026-01-31T12:00:00.002Z"


def test_a_day_that_python_has_no_date_for_has_no_bounds() -> None:
    days = pa.array([3_000_000_0], pa.int32()).cast(pa.date32())

    assert said_of(pa.table({"d": days}))["maxValues"] == {}


@given(some.text(max_size=80))
def test_bounds_of_a_text_are_short_and_enclose_it(text: str) -> None:
    low, high = lower_bound(text), upper_bound(text)

    assert low.encode() <= text.encode()
    assert high is None or (text.encode() <= high.encode() and len(high) <= 33)


@pytest.mark.parametrize("digits", [15, 16])
def test_a_decimal_has_bounds_only_if_a_number_of_json_can_keep_it(digits: int) -> None:
    value = Decimal("9" * (digits - 2) + ".99")

    assert lower_bound(value) == upper_bound(value) == (float(value) if digits == 15 else None)
