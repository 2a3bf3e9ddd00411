"""Upserts into Delta tables: tables end equal to the source, whatever the order and repetition of events."""

import dataclasses
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headrace.spark.batch import Batch
from headrace.spark.merge.merge import Merge, merge_into
from headrace.spark.merge.upsert import Upsert
from spark.change_events import (
    EVENTS,
    Change,
    all_versions,
    cut,
    disordered,
    final_rows,
    history_of_source,
)

RULES: Final = Upsert.of(keys="id", sequence_by="lsn", deletes="op = 'd'", except_columns=["op"])
HISTORY: Final = Upsert.of(
    keys="id", sequence_by="lsn", deletes="op = 'd'", except_columns=["op", "lsn"], history=True
)


def events(spark: SparkSession, changes: Sequence[Change]) -> DataFrame:
    return spark.createDataFrame([dataclasses.astuple(each) for each in changes], EVENTS)


def into(path: Path, frame: DataFrame, upsert: Upsert = RULES, **options: Any) -> Merge:
    given = {"path": str(path)} | {name: str(value) for name, value in options.items()}
    return merge_into("headrace-delta", given, upsert, frame.schema)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The table's rows by polars, which has a reader of Parquet of its own."""
    table = DeltaTable(path)
    found = pl.scan_delta(str(path)).collect().to_dicts()
    order = [name for name in ("id", "__START_AT") if name in table.to_pyarrow_table().column_names]
    key: Callable[[dict[str, Any]], Any] = lambda row: tuple(row[name] for name in order)  # noqa: E731
    by_deltalake = sorted(table.to_pyarrow_table().to_pylist(), key=key)
    assert sorted(found, key=key) == by_deltalake
    return by_deltalake


@pytest.mark.parametrize("seed", [1, 2])
def test_a_history_with_duplicates_and_disorder_ends_equal_to_the_source(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    changes = history_of_source(chance, keys=30, changes=250)
    arrived = disordered(chance, changes, distance=60)
    for n, batch in enumerate(cut(chance, arrived, 6)):
        frame = events(spark, batch)
        into(tmp_path, frame, compactEvery=3, targetFileBytes=4000).apply(frame, Batch("query", n))

    assert rows_of(tmp_path) == final_rows(changes)


def test_all_versions_of_a_history_with_duplicates_and_disorder(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(3)
    changes = history_of_source(chance, keys=20, changes=200)
    for n, batch in enumerate(cut(chance, disordered(chance, changes, distance=60), 5)):
        frame = events(spark, batch)
        into(tmp_path, frame, HISTORY).apply(frame, Batch("query", n))

    assert rows_of(tmp_path) == all_versions(changes)
