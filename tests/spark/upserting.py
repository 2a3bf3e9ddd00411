"""Merges in tests: events as DataFrames, batches in a row, and tables that other programs interfere with."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession

from headrace.spark.batch import Batch
from headrace.spark.merge.merge import Merge, merge_into
from headrace.spark.merge.table import Table, TableFile, TableVersion
from headrace.spark.merge.upsert import Upsert
from spark.change_events import EVENTS, Change

RULES: Final = Upsert.of(keys="id", sequence_by="lsn", deletes="op = 'd'", except_columns=["op"])
HISTORY: Final = Upsert.of(
    keys="id", sequence_by="lsn", deletes="op = 'd'", except_columns=["op", "lsn"], history=True
)


def delta(path: Path, **options: Any) -> tuple[str, dict[str, str]]:
    return "headrace-delta", {"path": str(path)} | {name: str(value) for name, value in options.items()}


def iceberg(root: Path, **options: Any) -> tuple[str, dict[str, str]]:
    catalog = {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": f"file://{root}"}
    given = {"table": "shop.rows"} | {f"catalog.{name}": value for name, value in catalog.items()}
    return "headrace-iceberg", given | {name: str(value) for name, value in options.items()}


def events(spark: SparkSession, changes: Sequence[Change]) -> DataFrame:
    return spark.createDataFrame([dataclasses.astuple(each) for each in changes], EVENTS)


def merge_of(target: tuple[str, dict[str, str]], frame: DataFrame, upsert: Upsert = RULES) -> Merge:
    return merge_into(*target, upsert, frame.schema)


def merge_all(
    target: tuple[str, dict[str, str]],
    frames: Iterable[DataFrame],
    upsert: Upsert = RULES,
    *,
    query: str = "query",
    first: int = 0,
) -> None:
    """Merge each frame as one batch of a query."""
    for number, frame in enumerate(frames, first):
        merge_of(target, frame, upsert).apply(frame, Batch(query, number))


class Interrupted(TableVersion):
    """A version of a table; `before` runs when the version is about to be replaced."""

    def __init__(self, version: TableVersion, before: Callable[[], None]) -> None:
        self._version = version
        self._before = before
        self.schema, self.files, self.sink = version.schema, version.files, version.sink
        self.filesystem, self.ids = version.filesystem, version.ids

    def has(self, batch: Batch) -> bool:
        return self._version.has(batch)

    @property
    def definition(self) -> object:
        return self._version.definition

    def partition_order(self) -> list[Column]:
        return self._version.partition_order()

    def contains(self, added: Sequence[Any]) -> bool:
        return self._version.contains(added)

    def replace(self, removed: Sequence[TableFile], added: Sequence[Any], batch: Batch) -> bool:
        self._before()
        return self._version.replace(removed, added, batch)


def interrupted(table: Table, *actions: Callable[[], None]) -> Table:
    """Return a table with actions of other programs right before the first commits of a merge."""
    left = list(actions)

    def act() -> None:
        if left:
            left.pop(0)()

    return Table(table.label, lambda: Interrupted(table.load(), act))
