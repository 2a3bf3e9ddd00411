"""Maintenance of tables: rows stay, and files are removed only if no query may still need them."""

import datetime as dt
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table
from pyspark.sql.types import StructType

from headrace.spark.batch import Batch
from headrace.spark.tables.clustering import NotClustered, order
from headrace.spark.tables.delta.maintenance import DeltaMaintenance
from headrace.spark.tables.delta.sink import DeltaSink
from headrace.spark.tables.iceberg.maintenance import IcebergMaintenance
from headrace.spark.tables.iceberg.sink import IcebergSink
from headrace.spark.tables.maintenance import NotMaintained
from headrace.spark.tables.options import DeltaOptions, IcebergOptions

SCHEMA = StructType().add("id", "long").add("name", "string")
WEEK, DAY, NOTHING = dt.timedelta(days=7), dt.timedelta(days=1), dt.timedelta()
LONG_AGO = 1_000_000_000
BATCHES = 5


def rows(ids: list[int]) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "name": [f"row {n % 3}" for n in ids]})


class Lake:
    """A table of either format with five small files of two rows each."""

    def __init__(self, kind: str, root: Path) -> None:
        self.kind, self.root = kind, root / "table" if kind == "delta" else root / "fleet"
        self.options: Any
        self.maintenance: Any
        if kind == "delta":
            self.options = DeltaOptions(path=str(root / "table"), compact_every=0)
            self.maintenance = DeltaMaintenance(self.options)
        else:
            catalog = {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": f"file://{root}"}
            self.options = IcebergOptions(table="fleet.rows", given_catalog=catalog, compact_every=0)
            self.maintenance = IcebergMaintenance(self.options)
        for n in range(BATCHES):
            self.append([n, 9 - n], n)

    def sink(self) -> Any:
        kind: Any = DeltaSink if self.kind == "delta" else IcebergSink
        return kind(self.options, SCHEMA, overwrite=False)

    def append(self, ids: list[int], batch: int) -> None:
        sink = self.sink()
        sink.commit(sink.write(iter([rows(ids)])), Batch("query", batch))

    def ids(self) -> list[int]:
        found = (
            self.iceberg.scan().to_arrow()
            if self.kind == "iceberg"
            else DeltaTable(self.root).to_pyarrow_table()
        )
        ids: list[int] = sorted(found["id"].to_pylist())
        return ids

    @property
    def iceberg(self) -> Table:
        return load_catalog("default", **self.options.catalog).load_table(self.options.table)

    def files(self) -> set[Path]:
        return {each for each in self.root.rglob("*.parquet") if "_delta_log" not in each.parts}

    def make_old(self) -> None:
        """Let everything in storage, and in the table, be from long ago."""
        for each in self.root.rglob("*"):
            if each.is_file():
                os.utime(each, (LONG_AGO, LONG_AGO))


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    return Lake(request.param, tmp_path)  # type: ignore[return-value]


def test_the_status_of_a_table(lake: Lake) -> None:
    found = lake.maintenance.status()
    assert (found.files, found.small_files, found.rows) == (5, 5, 10)
    assert found.columns == {"id": "bigint", "name": "string"}
    assert found.bytes == sum(each.stat().st_size for each in lake.files())
    if lake.kind == "iceberg":
        assert found.queries == {"query": BATCHES - 1}


def test_small_files_are_merged_until_none_are_left(lake: Lake) -> None:
    done = lake.maintenance.optimize()
    assert (done.files_before, done.files_after) == (5, 1)
    assert lake.maintenance.status().files == 1
    assert lake.maintenance.optimize().files_before == 0
    assert lake.ids() == list(range(10))


def test_an_operator_compacts_a_delta_table_that_others_write_to(tmp_path: Path) -> None:
    lake = Lake("delta", tmp_path)
    write_deltalake(lake.root, pa.table({"id": pa.array([10], pa.int64()), "name": ["x"]}), mode="append")
    assert lake.maintenance.optimize().files_before == 6
    assert lake.ids() == list(range(11))


def test_clustered_rows_are_in_order_and_files_have_narrow_bounds(lake: Lake) -> None:
    narrow = type(lake.maintenance)(replace(lake.options, target_file_bytes=1))
    lake.append(list(range(10, 40)), BATCHES)
    done = narrow.cluster(["id"])

    assert done.files_before == 6
    assert lake.ids() == list(range(40))
    lake.append([40], BATCHES + 1)  # the query goes on
    assert lake.ids() == list(range(41))
    with pytest.raises(NotClustered, match="there is no column 'nothing'"):
        lake.maintenance.cluster(["nothing"])


def test_rows_are_in_z_order_by_two_columns() -> None:
    sides = range(16)
    points = [(x, y) for x in sides for y in sides]
    table = pa.table({"x": [x for x, _ in points], "y": [y for _, y in points]})

    found = table.take(order(table, ["x", "y"])).to_pylist()

    for n in range(0, len(found), 16):  # every 16 rows are a square
        square = found[n : n + 16]
        for column in ("x", "y"):
            values = [each[column] for each in square]
            assert max(values) - min(values) == 3
    nulls = pa.table({"x": [3, None, 1]})
    assert nulls.take(order(nulls, ["x"]))["x"].to_pylist() == [1, 3, None]


def test_vacuum_removes_what_is_old_and_in_no_version(lake: Lake) -> None:
    uncommitted = lake.sink().write(iter([rows([100])]))
    lake.maintenance.optimize()
    replaced = 5
    before = lake.files()
    assert len(before) == replaced + 2
    assert lake.maintenance.vacuum(WEEK, dry_run=False).files == [], "everything is young"
    lake.make_old()

    if lake.kind == "iceberg":  # snapshots still have the files that were replaced
        assert len(lake.maintenance.vacuum(WEEK, dry_run=True).files) == 1
        assert len(lake.maintenance.expire(NOTHING, 1, dry_run=False).snapshots) == BATCHES
        young = lake.sink().write(iter([rows([10])]))
        listed = lake.maintenance.vacuum(WEEK, dry_run=True)
        data = [each for each in listed.files if each.endswith(".parquet")]
        assert len(data) == replaced + 1
    else:  # the log says since when a file is removed, so only the file of the lost batch is old
        young = lake.sink().write(iter([rows([10])]))
        listed = lake.maintenance.vacuum(WEEK, dry_run=True)
        assert len(listed.files) == 1
    assert not listed.done
    assert before < lake.files(), "a dry run has removed files"

    done = lake.maintenance.vacuum(WEEK, dry_run=False)
    assert (done.files, done.bytes, done.done) == (listed.files, listed.bytes, True)
    assert lake.ids() == list(range(10))
    lake.sink().commit(young, Batch("query", BATCHES))  # a batch that was being written
    assert lake.ids() == list(range(11))
    assert len(uncommitted) == 1


def test_a_retention_that_is_too_short_is_refused(lake: Lake) -> None:
    with pytest.raises(NotMaintained, match="expected at least 1 day"):
        lake.maintenance.vacuum(DAY - dt.timedelta(seconds=1), dry_run=False)


def test_vacuum_refuses_if_paths_are_written_differently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake("iceberg", tmp_path)
    lake.make_old()
    monkeypatch.setattr("headrace.spark.tables.iceberg.maintenance._listed", lambda *_: {})
    with pytest.raises(NotMaintained, match="is not among those in"):
        lake.maintenance.vacuum(WEEK, dry_run=False)
    assert lake.ids() == list(range(10))


def test_expiry_keeps_the_last_snapshots_tags_and_batches(tmp_path: Path) -> None:
    lake = Lake("iceberg", tmp_path)
    first = lake.iceberg.snapshots()[0].snapshot_id
    lake.iceberg.manage_snapshots().create_tag(first, "first").commit()

    assert lake.maintenance.expire(DAY, 1, dry_run=False).snapshots == [], "all are young"
    planned = lake.maintenance.expire(NOTHING, 2, dry_run=True)
    assert (len(planned.snapshots), planned.kept, planned.done) == (2, 3, False)
    assert len(lake.iceberg.snapshots()) == BATCHES
    assert lake.maintenance.expire(NOTHING, 2, dry_run=False).snapshots == planned.snapshots

    assert first in {each.snapshot_id for each in lake.iceberg.snapshots()}
    lake.append([0, 9], 0)  # a batch whose snapshot has expired
    assert lake.ids() == list(range(10))


def test_a_delta_table_has_no_snapshots(tmp_path: Path) -> None:
    with pytest.raises(NotMaintained, match="no snapshots to expire"):
        Lake("delta", tmp_path).maintenance.expire(DAY, 1, dry_run=True)
