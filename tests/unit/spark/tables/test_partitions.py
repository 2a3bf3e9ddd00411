import datetime as dt

import pyarrow as pa

from headrace.spark.tables.partitions import directory, divided

DAY = dt.date(2026, 1, 31)


def test_rows_are_divided_by_their_values_and_keep_their_order() -> None:
    batch = pa.record_batch({"n": [1, 2, 3, 4, 5], "site": ["a", "b", "a", None, ""], "even": [False] * 5})

    assert [(values, rows.to_pydict()) for values, rows in divided(batch, ["site", "even"])] == [
        (("a", "false"), {"n": [1, 3]}),
        (("b", "false"), {"n": [2]}),
        ((None, "false"), {"n": [4]}),
        ((None, "false"), {"n": [5]}),  # Delta cannot tell an empty string from null
    ]


def test_a_batch_of_one_value_is_not_copied() -> None:
    batch = pa.record_batch({"n": [1, 2], "day": [DAY, DAY]})

    [(values, rows)] = divided(batch, ["day"])
    assert values == ("2026-01-31",)
    assert rows.column("n").buffers()[1].address == batch.column("n").buffers()[1].address


def test_without_columns_there_is_one_part() -> None:
    batch = pa.record_batch({"n": [1, 2]})

    assert list(divided(batch, [])) == [((), batch)]


def test_directories_are_named_after_the_values() -> None:
    assert directory((), ()) == ""
    assert (
        directory(("day", "site"), ("2026-01-31", None)) == "day=2026-01-31/site=__HIVE_DEFAULT_PARTITION__/"
    )
    assert directory(("site",), ("../a=b\n",)) == "site=..%2Fa%3Db%0A/"
    assert len(directory(("site",), ("ö" * 500,))) <= 110
