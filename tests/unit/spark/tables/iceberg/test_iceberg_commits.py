"""An Iceberg table that several programs commit to: every row once. On small tables, without Spark."""

from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from headrace.spark.batch import Batch
from headrace.spark.tables.files import arrow_schema
from headrace.spark.tables.iceberg import compaction as iceberg_compaction
from headrace.spark.tables.iceberg import table as iceberg_table
from headrace.spark.tables.iceberg.files import described
from headrace.spark.tables.iceberg.sink import IcebergSink
from headrace.spark.tables.options import IcebergOptions

SCHEMA = StructType([StructField("id", LongType()), StructField("name", StringType())])
BATCH = Batch("query", 3)


def rows(first: int, last: int) -> pa.RecordBatch:
    ids = list(range(first, last))
    return pa.record_batch({"id": ids, "name": [f"row {n}" for n in ids]})


@pytest.fixture
def iceberg(tmp_path: Path) -> IcebergOptions:
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    return IcebergOptions(table="fleet.rows", given_catalog=settings, compact_every=0)


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
    assert not _path(iceberg, late[0].file.path).exists()


def test_of_two_drivers_that_commit_one_batch_at_the_same_time_one_adds_its_files(
    iceberg: IcebergOptions,
) -> None:
    late = iceberg_table.open_table(iceberg, SCHEMA)
    append(iceberg, [0, 1], BATCH)
    files = IcebergSink(iceberg, SCHEMA, overwrite=False).write(iter([rows(0, 2)]))

    assert iceberg_table.add_files(late, described(late, files), batch=BATCH)
    assert ids_of(iceberg) == [0, 1]


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


def test_columns_of_any_shape_are_merged(iceberg: IcebergOptions) -> None:
    inner = StructType([StructField("k", StringType()), StructField("v", MapType(StringType(), LongType()))])
    schema = StructType([StructField("id", LongType()), StructField("deep", ArrayType(inner))])
    values = [None, [], [{"k": "x", "v": [("y", None)]}, None]]
    for n, value in enumerate(values):
        sink = IcebergSink(iceberg, schema, overwrite=False)
        batch = pa.RecordBatch.from_pylist([{"id": n, "deep": value}], arrow_schema(schema))
        sink.commit(sink.write(iter([batch])), Batch("query", n))

    table = iceberg_table.open_table(iceberg, schema)
    assert iceberg_compaction.merge(table, 1 << 20)[0] == 3
    [merged] = [task.file.file_path for task in table.refresh().scan().plan_files()]
    found = pq.read_table(merged.removeprefix("file://")).sort_by("id").column("deep").to_pylist()
    assert found == values


def append(options: IcebergOptions, ids: list[int], batch: Batch) -> None:
    sink = IcebergSink(options, SCHEMA, overwrite=False)
    batches = [pa.record_batch({"id": [n], "name": [f"row {n}"]}) for n in ids]
    sink.commit(sink.write(iter(batches)), batch)


def data_files(options: IcebergOptions) -> set[Path]:
    return set(_path(options, "").glob("*.parquet"))


def expire_all_but_the_last(options: IcebergOptions) -> None:
    table = iceberg_table.open_table(options, SCHEMA)
    for snapshot in table.snapshots()[:-1]:
        table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    assert len(table.refresh().snapshots()) == 1


def test_a_batch_is_known_after_its_snapshot_has_expired(iceberg: IcebergOptions) -> None:
    append(iceberg, [0, 1], Batch("query", 7))
    append(iceberg, [2, 3], Batch("another", 0))
    expire_all_but_the_last(iceberg)

    append(iceberg, [1], Batch("query", 7))
    append(iceberg, [4], Batch("query", 8))

    assert ids_of(iceberg) == [0, 1, 2, 3, 4]
    known = iceberg_table.known_batches(iceberg_table.open_table(iceberg, SCHEMA))
    assert known == {"query": 8, "another": 0}


def test_a_compaction_is_done_after_a_batch_that_was_added_meanwhile(iceberg: IcebergOptions) -> None:
    for n in range(2):
        append(iceberg, [n], Batch("query", n))
    late = iceberg_table.open_table(iceberg, SCHEMA)
    append(iceberg, [2], Batch("query", 2))

    assert iceberg_compaction.merge(late, 1 << 20)[0] == 2
    assert ids_of(iceberg) == [0, 1, 2]
    table = iceberg_table.open_table(iceberg, SCHEMA)
    assert len(list(table.scan().plan_files())) == 2
    assert iceberg_table.known_batches(table) == {"query": 2}


def test_a_compaction_gives_way_to_a_commit_that_has_removed_its_files(iceberg: IcebergOptions) -> None:
    for n in range(3):
        append(iceberg, [n], Batch("query", n))
    late, later = (iceberg_table.open_table(iceberg, SCHEMA) for _ in range(2))
    assert iceberg_compaction.merge(iceberg_table.open_table(iceberg, SCHEMA), 1 << 20)[0] == 3
    files = data_files(iceberg)

    with pytest.raises(CommitFailedException):
        iceberg_compaction.merge(late, 1 << 20)
    assert ids_of(iceberg) == [0, 1, 2]
    iceberg_table.open_table(iceberg, SCHEMA).delete("id = 1")
    with pytest.raises(CommitFailedException):
        iceberg_compaction.merge(later, 1 << 20)
    assert ids_of(iceberg) == [0, 2]
    assert len(data_files(iceberg) - files) == 1, "a compaction that was given up has left its file"


@pytest.mark.parametrize("program", ["append", "overwrite", "delete"])
def test_another_program_that_began_before_our_compaction_repeats_no_row(
    iceberg: IcebergOptions, program: str
) -> None:
    for n in range(3):
        append(iceberg, [n], Batch("query", n))
    late = iceberg_table.open_table(iceberg, SCHEMA)
    assert iceberg_compaction.merge(iceberg_table.open_table(iceberg, SCHEMA), 1 << 20)[0] == 3

    nine = pa.table({"id": [9], "name": ["nine"]})
    if program == "append":
        late.append(nine)
        assert ids_of(iceberg) == [0, 1, 2, 9]
        return
    with pytest.raises(ValidationException):
        late.overwrite(nine) if program == "overwrite" else late.delete("id = 1")
    assert ids_of(iceberg) == [0, 1, 2]


def test_in_complete_mode_a_batch_replaces_what_others_have_added_meanwhile(iceberg: IcebergOptions) -> None:
    append(iceberg, [0, 1], Batch("query", 0))
    late = iceberg_table.open_table(iceberg, SCHEMA)
    append(iceberg, [2, 3], Batch("another", 0))
    sink = IcebergSink(iceberg, SCHEMA, overwrite=True)
    files = described(late, sink.write(iter([rows(7, 9)])))

    assert iceberg_table.add_files(late, files, overwrite=True, batch=Batch("query", 1))
    assert ids_of(iceberg) == [7, 8]


def test_a_compaction_that_fails_is_logged(iceberg: IcebergOptions, caplog: pytest.LogCaptureFixture) -> None:
    sink = IcebergSink(iceberg, SCHEMA, overwrite=False)
    lost = sink.write(iter([rows(0, 1)]))
    sink.commit(lost, Batch("query", 0))
    sink.remove(lost)

    iceberg_compaction.compact(iceberg_table.open_table(iceberg, SCHEMA), 1 << 20)

    assert "fleet.rows was not compacted: " in caplog.text
