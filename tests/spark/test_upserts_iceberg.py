"""Upserts into Iceberg tables, read by pyiceberg."""

import dataclasses
import random
from operator import itemgetter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headrace.spark.batch import Batch
from headrace.spark.merge.upsert import Upsert
from spark.change_events import Change, all_versions, cut, disordered, final_rows, history_of_source
from spark.merged_tables import iceberg_rows, opened
from spark.table_rows import ROWS, TYPES, plain
from spark.upserting import HISTORY, events, iceberg, interrupted, merge_all, merge_of

pytestmark = pytest.mark.extended


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 4))
def test_a_history_with_duplicates_and_disorder_ends_equal_to_the_source(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    changes = history_of_source(chance, keys=30, changes=250)
    arrived = disordered(chance, changes, distance=60)
    target = iceberg(tmp_path, compactEvery=3, targetFileBytes=4000)
    merge_all(target, (events(spark, each) for each in cut(chance, arrived, 10)))

    assert iceberg_rows(tmp_path) == final_rows(changes)


@pytest.mark.long
def test_all_versions_of_a_history_with_duplicates_and_disorder(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(3)
    changes = history_of_source(chance, keys=20, changes=200)
    arrived = disordered(chance, changes, distance=60)
    merge_all(iceberg(tmp_path), (events(spark, each) for each in cut(chance, arrived, 6)), HISTORY)

    assert iceberg_rows(tmp_path) == all_versions(changes)


@pytest.mark.long
def test_rows_of_all_types_survive_and_a_conflict_repeats_the_merge(
    spark: SparkSession, tmp_path: Path
) -> None:
    rules = Upsert.of(keys=["id"], sequence_by="number")
    rows = [each | {"number": 1} for each in ROWS]
    target = iceberg(tmp_path)
    merge_all(target, [spark.createDataFrame(rows, TYPES)], rules)
    changed = rows[1] | {"number": 2, "text": "changed"}
    frame = spark.createDataFrame([changed], TYPES)
    theirs = spark.createDataFrame([rows[2] | {"number": 3, "text": "theirs"}], TYPES)
    merge = merge_of(target, frame, rules)

    def interfere() -> None:
        merge_all(target, [theirs], rules, query="theirs")

    table = interrupted(merge.table, interfere)
    dataclasses.replace(merge, table=table).apply(frame, Batch("query", 1))

    expected = [rows[0], changed, rows[2] | {"number": 3, "text": "theirs"}]
    # pyiceberg, when it reads, makes an empty list of one of structs that is null; the files are right.
    with opened(tmp_path) as found:
        paths = [task.file.file_path.removeprefix("file://") for task in found.scan().plan_files()]
    written = sorted((row for path in paths for row in pq.read_table(path).to_pylist()), key=itemgetter("id"))
    assert list(map(plain, written)) == list(map(plain, expected))


def test_tombstones_are_in_a_table_beside_the_table(spark: SparkSession, tmp_path: Path) -> None:
    changes = [Change(1, "a", 1, "c", 5), Change(2, None, None, "d", 7)]
    merge_all(iceberg(tmp_path), [events(spark, changes), events(spark, [Change(2, "late", 1, "u", 6)])])

    assert [each["id"] for each in iceberg_rows(tmp_path)] == [1]
    assert [(each["id"], each["__sequence"]) for each in iceberg_rows(tmp_path, "shop.rows__tombstones")] == [
        (2, 7)
    ]
