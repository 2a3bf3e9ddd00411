"""Iceberg tables next to other writers, and files in the making: on small tables, without Spark."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from headrace.spark.tables import iceberg_compaction, iceberg_table
from headrace.spark.tables.arrow import arrow_schema
from headrace.spark.tables.files import OPEN_FILES, Files
from headrace.spark.tables.iceberg import IcebergSink
from headrace.spark.tables.options import IcebergOptions
from headrace.spark.tables.writers import Batch

SCHEMA = StructType([StructField("id", LongType()), StructField("name", StringType())])
BATCH = Batch("query", 3)


def rows(first: int, last: int) -> pa.RecordBatch:
    ids = list(range(first, last))
    return pa.record_batch({"id": ids, "name": [f"row {n}" for n in ids]})


# -- Iceberg -----------------------------------------------------------------------------------


@pytest.fixture
def iceberg(tmp_path: Path) -> IcebergOptions:
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    return IcebergOptions(table="fleet.rows", catalog=settings, compact_every=0)


def ids_of(options: IcebergOptions) -> list[int]:
    table = iceberg_table.open_table(options, SCHEMA)
    found: list[int] = table.scan().to_arrow().sort_by("id")["id"].to_pylist()
    return found


def test_the_second_of_two_drivers_that_commit_one_batch_to_iceberg_finds_it_there(
    iceberg: IcebergOptions,
) -> None:
    one, other = (IcebergSink(iceberg, SCHEMA, overwrite=False) for _ in range(2))

    one.commit(one.write(iter([rows(0, 5)])), BATCH)
    late = other.write(iter([rows(0, 5)]))  # its driver still has the table as it was before
    other.commit(late, BATCH)

    assert ids_of(iceberg) == [0, 1, 2, 3, 4]
    assert not _path(iceberg, late[0].path).exists()


def test_iceberg_takes_a_batch_when_somebody_else_was_first_with_another(iceberg: IcebergOptions) -> None:
    one, other = (IcebergSink(iceberg, SCHEMA, overwrite=False) for _ in range(2))

    one.commit(one.write(iter([rows(0, 5)])), BATCH)
    other.commit(other.write(iter([rows(5, 8)])), Batch("another", 0))
    other.commit(other.write(iter([rows(8, 9)])), Batch("another", 1))

    assert ids_of(iceberg) == list(range(9))


def _path(options: IcebergOptions, name: str) -> Path:
    table = iceberg_table.open_table(options, SCHEMA)
    return Path(table.location().removeprefix("file://")) / "data" / name


def test_small_files_of_an_iceberg_table_are_merged_and_no_row_changes(iceberg: IcebergOptions) -> None:
    for n in range(4):
        sink = IcebergSink(iceberg, SCHEMA, overwrite=False)
        sink.commit(sink.write(iter([rows(n * 10, n * 10 + 10)])), Batch("query", n))
    table = iceberg_table.open_table(iceberg, SCHEMA)
    assert len(list(table.scan().plan_files())) == 4

    iceberg_compaction.compact(table, target_bytes=1 << 20)

    merged = iceberg_table.open_table(iceberg, SCHEMA)
    assert len(list(merged.scan().plan_files())) == 1
    assert ids_of(iceberg) == list(range(40))
    assert iceberg_table.is_in(merged, Batch("query", 3))
    assert not iceberg_table.is_in(merged, Batch("query", 4))

    for snapshot in merged.snapshots()[:-1]:
        merged.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()

    left = iceberg_table.open_table(iceberg, SCHEMA)
    assert len(left.snapshots()) == 1
    assert iceberg_table.is_in(left, Batch("query", 3))


def test_columns_of_any_shape_are_merged(iceberg: IcebergOptions) -> None:
    inner = StructType([StructField("k", StringType()), StructField("v", MapType(StringType(), LongType()))])
    schema = StructType([StructField("id", LongType()), StructField("deep", ArrayType(inner))])
    values = [None, [], [{"k": "x", "v": [("y", None)]}, None]]
    for n, value in enumerate(values):
        sink = IcebergSink(iceberg, schema, overwrite=False)
        batch = pa.RecordBatch.from_pylist([{"id": n, "deep": value}], arrow_schema(schema))
        sink.commit(sink.write(iter([batch])), Batch("query", n))

    table = iceberg_table.open_table(iceberg, schema)
    assert iceberg_compaction._merge(table, 1 << 20) == 3
    [merged] = [task.file.file_path for task in table.refresh().scan().plan_files()]
    found = pq.read_table(merged.removeprefix("file://")).sort_by("id").column("deep").to_pylist()
    assert found == values


def test_a_compaction_gives_way_to_a_commit(iceberg: IcebergOptions) -> None:
    sink = IcebergSink(iceberg, SCHEMA, overwrite=False)
    for n in range(2):
        sink.commit(sink.write(iter([rows(n, n + 1)])), Batch("query", n))
    table = iceberg_table.open_table(iceberg, SCHEMA)
    sink.commit(sink.write(iter([rows(2, 3)])), Batch("query", 2))

    with pytest.raises(CommitFailedException):
        iceberg_compaction._merge(table, 1 << 20)
    assert ids_of(iceberg) == [0, 1, 2]


def test_a_compaction_that_fails_is_logged(iceberg: IcebergOptions, caplog: pytest.LogCaptureFixture) -> None:
    sink = IcebergSink(iceberg, SCHEMA, overwrite=False)
    lost = sink.write(iter([rows(0, 1)]))
    sink.commit(lost, Batch("query", 0))
    sink.remove(lost)

    iceberg_compaction.compact(iceberg_table.open_table(iceberg, SCHEMA), 1 << 20)

    assert "fleet.rows was not compacted: " in caplog.text


# -- files -------------------------------------------------------------------------------------


def files_in(root: Path, *, partition_by: tuple[str, ...] = (), target_bytes: int = 1 << 20) -> Files:
    for n in range(2 * OPEN_FILES):
        (root / f"id={n}").mkdir(exist_ok=True)
    directory = pa.fs.SubTreeFileSystem(str(root), pa.fs.LocalFileSystem())
    return Files(directory, rows(0, 1).schema, partition_by=partition_by, target_bytes=target_bytes)


def test_a_file_ends_at_its_size(tmp_path: Path) -> None:
    files = files_in(tmp_path, target_bytes=1000).write(rows(n * 100, n * 100 + 100) for n in range(10))

    assert len(files) > 2
    assert min(each.size for each in files[:-1]) > 1000
    assert [each.size for each in files] == [(tmp_path / each.path).stat().st_size for each in files]
    assert sum(each.footer.num_rows for each in files) == 1000


def test_no_more_than_so_many_files_are_open(tmp_path: Path) -> None:
    count = OPEN_FILES + 10
    files = files_in(tmp_path, partition_by=("id",)).write([rows(0, count), rows(0, count)])

    assert sum(each.footer.num_rows for each in files) == 2 * count
    assert len(files) > count  # some were closed early, and begun again


def test_when_a_task_fails_its_files_are_removed(tmp_path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield rows(0, 100)
        yield rows(100, 150)
        raise ValueError("poison")

    with pytest.raises(ValueError, match="poison"):
        files_in(tmp_path, target_bytes=1000).write(failing())
    assert list(tmp_path.rglob("*.parquet")) == []
