"""Commits of merges to Delta and Iceberg tables, without Spark: only one of two for the same version."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.transforms import BucketTransform
from pyspark.sql.types import StructType

from headrace.spark.batch import Batch
from headrace.spark.merge.bounds import Bounds
from headrace.spark.merge.delta import delta_table
from headrace.spark.merge.iceberg import iceberg_table
from headrace.spark.merge.table import Table, TableVersion
from headrace.spark.tables.iceberg.table import load_table
from headrace.spark.tables.options import DeltaOptions, IcebergOptions
from headrace.spark.tables.schema import UnfitTable

SCHEMA = StructType().add("id", "long").add("site", "string")
SITE = "a b%c/ä'+?"


def iceberg(root: Path, *partition_by: str) -> IcebergOptions:
    catalog = {"type": "sql", "uri": f"sqlite:///{root}/c.db", "warehouse": f"file://{root}"}
    return IcebergOptions(table="shop.rows", given_catalog=catalog, partition_by=partition_by)


@pytest.fixture(params=["delta", "delta in partitions", "iceberg", "iceberg in partitions"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    partition_by = ("site",) if request.param.endswith("partitions") else ()
    if request.param.startswith("iceberg"):
        return iceberg_table(iceberg(tmp_path, *partition_by), SCHEMA)
    return delta_table(DeltaOptions(path=str(tmp_path / "table"), partition_by=partition_by), SCHEMA)


def write(version: TableVersion, ids: Sequence[int], site: str = SITE) -> Sequence[Any]:
    rows = pa.record_batch({"id": pa.array(ids, pa.int64()), "site": [site] * len(ids)})
    return version.sink.write(iter([rows]))


def add(table: Table, ids: Sequence[int], number: int) -> None:
    version = table.load()
    assert version.replace([], write(version, ids), Batch("query", number))


def rows(version: TableVersion) -> int:
    total = 0
    for each in version.files.values():
        with pa.parquet.ParquetFile(each.path, filesystem=version.filesystem()) as file:
            total += file.metadata.num_rows
    return total


def test_files_are_replaced_and_the_batch_is_recorded(table: Table) -> None:
    add(table, [1, 2], 0)
    add(table, [7, 8], 1)
    version = table.load()
    assert {each.bounds["id"] for each in version.files.values()} == {Bounds(1, 2), Bounds(7, 8)}
    old = [each for each in version.files.values() if each.bounds["id"] == Bounds(1, 2)]

    assert version.replace(old, write(version, [1, 2, 3]), Batch("query", 2))

    found = table.load()
    assert {each.bounds["id"] for each in found.files.values()} == {Bounds(1, 3), Bounds(7, 8)}
    assert rows(found) == 5
    assert found.has(Batch("query", 2))
    assert not found.has(Batch("query", 3))
    assert not found.has(Batch("other", 0))


def test_of_two_merges_into_the_same_version_one_is_committed(table: Table) -> None:
    add(table, [1, 2], 0)
    one, other = table.load(), table.load()
    assert one.replace(list(one.files.values()), write(one, [1]), Batch("one", 0))

    late = write(other, [2])
    assert not other.replace(list(other.files.values()), late, Batch("other", 0))

    found = table.load()
    assert not found.contains(late)
    assert not found.has(Batch("other", 0))
    assert rows(found) == 1
    assert one.definition == found.definition


def test_a_batch_without_files_is_recorded_and_makes_a_version(table: Table) -> None:
    add(table, [1], 0)
    one, other = table.load(), table.load()

    assert one.replace([], [], Batch("one", 5))

    assert table.load().has(Batch("one", 5))
    assert rows(table.load()) == 1
    assert not other.replace([], [], Batch("other", 5))


def test_files_of_an_older_partitioning_are_replaced_by_files_of_the_current_one(tmp_path: Path) -> None:
    options = iceberg(tmp_path, "site")
    add(iceberg_table(options, SCHEMA), [1, 2], 0)
    table = load_table(options)
    with table.update_spec() as update:
        update.remove_field("site")
        update.add_field("id", BucketTransform(4), "id_bucket")
    version = iceberg_table(iceberg(tmp_path), SCHEMA).load()
    (old,) = version.files.values()
    assert old.constants == {"site": SITE}

    assert version.replace([old], write(version, [1]), Batch("query", 1))

    found = iceberg_table(iceberg(tmp_path), SCHEMA).load()
    assert rows(found) == 1
    assert [each.partition != old.partition for each in found.files.values()] == [True]


@pytest.mark.parametrize("setting", ["delta.appendOnly", "delta.enableChangeDataFeed"])
def test_a_delta_table_that_cannot_be_rewritten_is_refused(tmp_path: Path, setting: str) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, pa.table({"id": [1], "site": ["a"]}), configuration={setting: "true"})

    with pytest.raises(UnfitTable, match=setting):
        delta_table(DeltaOptions(path=path), SCHEMA).load()


def test_a_delta_table_with_deletion_vectors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_deltalake(str(path), pa.table({"id": [1], "site": ["a"]}))
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    action = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    (path / "_delta_log" / f"{1:020}.json").write_text(json.dumps(action))

    with pytest.raises(UnfitTable, match="deletionVectors"):
        delta_table(DeltaOptions(path=str(path)), SCHEMA).load()


def test_vacuum_leaves_the_tombstones_below_a_delta_table(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, pa.table({"id": [1], "site": ["a"]}))
    write_deltalake(f"{path}/_headrace_tombstones", pa.table({"id": [1], "site": ["a"]}))

    removed = DeltaTable(path).vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True
    )

    assert removed == []
    assert DeltaTable(f"{path}/_headrace_tombstones").to_pyarrow_table().num_rows == 1
