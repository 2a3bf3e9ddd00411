"""Upserts into tables that change, and into tables with partitions."""

import random
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import VariantVal

from headrace.spark.merge.upsert import Upsert
from headrace.spark.tables.schema import UnfitTable
from spark.change_events import cut, disordered, final_rows, history_of_source
from spark.merged_tables import FORMATS, delta_rows, iceberg_rows, opened
from spark.upserting import HISTORY, RULES, delta, events, iceberg, merge_all

pytestmark = pytest.mark.extended

OLD: Final = "id long, place struct<x:int,y:int>, op string, lsn long"
NEW: Final = (
    "id long, city string, place struct<z:string,y:int,x:int>, list array<struct<b:int,a:int>>, "
    "op string, lsn long"
)


@pytest.mark.parametrize("kind", ["delta", pytest.param("iceberg", marks=pytest.mark.long)])
def test_columns_and_fields_arrive_while_upserting(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    target = FORMATS[kind].target(tmp_path, evolve="add")
    old = [(key, (key, -key), "c", 1) for key in (1, 2, 3)]
    new = [
        (1, "Ulm", ("z", -10, 10), [(2, 1)], "u", 2),
        (4, None, None, None, "c", 2),
        (3, None, None, None, "d", 2),
    ]
    late = [(2, (20, None), "u", 3), (3, (0, 0), "u", 1)]  # of a program that does not know the columns

    merge_all(
        target,
        [spark.createDataFrame(old, OLD), spark.createDataFrame(new, NEW), spark.createDataFrame(late, OLD)],
    )

    def row(key: int, place: dict[str, Any] | None, lsn: int, **more: Any) -> dict[str, Any]:
        return {"id": key, "place": place, "lsn": lsn, "city": None, "list": None} | more

    # pyiceberg, when it reads, makes an empty list of one of structs that is null; the files are right.
    found = [each | {"list": each["list"] or None} for each in FORMATS[kind].rows(tmp_path)]
    assert found == [
        row(1, {"x": 10, "y": -10, "z": "z"}, 2, city="Ulm", list=[{"b": 2, "a": 1}]),
        row(2, {"x": 20, "y": None, "z": None}, 3),
        row(4, None, 2),
    ]


def test_keys_are_widened_and_columns_renamed_while_upserting(spark: SparkSession, tmp_path: Path) -> None:
    rules = Upsert.of(keys="id", sequence_by="lsn", deletes="op = 'd'", except_columns=["op"])
    old = [(1, 0.5, "c", 1), (2, 0.5, "c", 1), (9, None, "d", 10)]
    merge_all(
        iceberg(tmp_path), [spark.createDataFrame(old, "id int, price float, op string, lsn int")], rules
    )
    new = [(2, 0.1, "u", 2), (9, 0.1, "u", 9), (2**40, 0.1, "c", 2)]

    merge_all(
        iceberg(tmp_path, evolve="widen", renameColumns="price:cost"),
        [spark.createDataFrame(new, "id long, cost double, op string, lsn long")],
        rules,
        first=1,
    )

    assert [(each["id"], each["cost"], each["lsn"]) for each in iceberg_rows(tmp_path)] == [
        (1, 0.5, 1),
        (2, 0.1, 2),
        (2**40, 0.1, 2),
    ]


@pytest.mark.parametrize("kind", FORMATS)
def test_columns_that_rows_are_compared_by_are_not_added(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    target = FORMATS[kind].target(tmp_path, evolve="add")
    frame = spark.createDataFrame([(1, 1, "c", 1)], "id long, part int, op string, lsn long")
    merge_all(target, [frame])

    by_part = Upsert.of(keys=["id", "line"], sequence_by="lsn")
    with pytest.raises(UnfitTable, match="'line' is not in the table"):
        merge_all(target, [frame.withColumn("line", F.lit(1))], by_part, first=1)
    with pytest.raises(UnfitTable, match="'__START_AT' is not in the table"):
        merge_all(target, [frame], HISTORY, first=1)

    assert FORMATS[kind].rows(tmp_path) == [{"id": 1, "part": 1, "lsn": 1}]


def test_variants_are_kept_while_upserting(spark: SparkSession, tmp_path: Path) -> None:
    def parsed(*rows: tuple[int, str | None, int]) -> DataFrame:
        frame = spark.createDataFrame(list(rows), "id long, text string, lsn long")
        return frame.selectExpr("id", "parse_json(text) AS v", "'u' AS op", "lsn")

    first = parsed((1, '{"a":1}', 1), (2, '{"a":2}', 1), (3, None, 1))
    # The files of the first batch are rewritten, with the rows that the second one leaves as they are.
    merge_all(delta(tmp_path), [first, parsed((2, '["x"]', 2), (4, None, 2))])

    texts = [
        row["v"] and VariantVal(row["v"]["value"], row["v"]["metadata"]).toJson()
        for row in delta_rows(tmp_path)
    ]
    assert texts == ['{"a":1}', '["x"]', None, None]


def timed(frame: DataFrame) -> DataFrame:
    """Add a time, and its day, one of about twenty."""
    return frame.withColumn("at", F.timestamp_seconds(F.col("lsn") * 7200)).withColumn("day", F.to_date("at"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "partition_by"),
    [("delta", "day"), ("iceberg", "day(at), bucket(3, id)"), ("iceberg", "name, truncate(10, id)")],
)
def test_a_history_ends_equal_to_the_source_in_a_partitioned_table(
    spark: SparkSession, tmp_path: Path, kind: str, partition_by: str
) -> None:
    chance = random.Random(4)
    changes = history_of_source(chance, keys=25, changes=200)
    arrived = disordered(chance, changes, distance=50)
    target = FORMATS[kind].target(tmp_path, partitionBy=partition_by, compactEvery=2)

    merge_all(target, (timed(events(spark, each)) for each in cut(chance, arrived, 4)))

    found = FORMATS[kind].rows(tmp_path)
    times = [each.pop("at") for each in found]
    assert [each["lsn"] * 7200 for each in found] == [each.timestamp() for each in times]
    assert [each.pop("day") for each in found] == [each.date() for each in times]
    assert found == final_rows(changes)


def test_a_merge_replaces_only_the_partitions_of_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    target = iceberg(tmp_path, partitionBy="truncate(10, id)", compactEvery=1)
    frame = "id long, op string, lsn long"

    def partitions() -> dict[int, str]:
        with opened(tmp_path) as table:
            return {each.file.partition[0]: each.file.file_path for each in table.scan().plan_files()}

    merge_all(target, [spark.createDataFrame([(each, "c", 1) for each in (1, 2, 11, 21)], frame)], RULES)
    before = partitions()
    merge_all(target, [spark.createDataFrame([(2, "u", 2), (21, "d", 2)], frame)], RULES, first=1)
    after = partitions()

    assert sorted(before) == [0, 10, 20]
    assert sorted(after) == [0, 10]
    assert after[10] == before[10]
    assert [(each["id"], each["lsn"]) for each in iceberg_rows(tmp_path)] == [(1, 1), (2, 2), (11, 1)]
