"""Files of a table as rows of its schema, without Spark."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from headrace.spark.merge.merge import small_files
from headrace.spark.merge.table import TableFile
from headrace.spark.tables.files import MERGED_BYTES, column_names, read_rows


def schema(*names: str, **ids: int) -> pa.Schema:
    numbered = [pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(n)}) for name, n in ids.items()]
    return pa.schema([*(pa.field(name, pa.int64()) for name in names), *numbered])


def test_columns_are_found_by_name() -> None:
    assert column_names(schema("a", "b"), ["b", "c"], None) == {"b": "b"}


def test_columns_are_found_by_id_if_the_file_has_ids() -> None:
    assert column_names(schema(old=1, b=2), ["new", "b", "later"], {"new": 1, "b": 2, "later": 3}) == {
        "new": "old",
        "b": "b",
    }
    assert column_names(schema("new"), ["new"], {"new": 1}) == {"new": "new"}


def test_a_batch_is_completed_with_partition_values_and_nulls_and_cast(tmp_path: Path) -> None:
    numbered = pa.schema([pa.field("old", pa.int32(), metadata={"PARQUET:field_id": "1"})])
    pq.write_table(pa.table({"old": [1, 2]}, numbered), tmp_path / "file")
    wanted = pa.schema([("day", pa.date32()), ("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    day = dt.date(2026, 1, 1)

    def rows(id_of_id: int) -> list[dict[str, Any]]:
        ids, constants = {"day": 7, "id": id_of_id, "tags": 9}, {"day": day}
        batches = read_rows(pa.fs.LocalFileSystem(), str(tmp_path / "file"), wanted, ids, constants)
        return [row for batch in batches for row in batch.to_pylist()]

    assert rows(1) == [{"day": day, "id": n, "tags": None} for n in (1, 2)]
    assert rows(2) == [{"day": day, "id": None, "tags": None}] * 2  # a file without wanted columns


def files(*found: tuple[str, int]) -> list[TableFile]:
    """Files by their partition and size."""
    return [
        TableFile(name=f"{place}-{n}", path="", size=size, bounds={}, partition=(place,))
        for n, (place, size) in enumerate(found)
    ]


def test_small_files_are_merged_in_partitions_that_have_several() -> None:
    assert small_files(files(("a", 60), ("a", 49), ("b", 30), ("a", 10), ("c", 20)), 100) == ["a-3", "a-1"]
    assert small_files(files(("a", 10), ("b", 10)), 100) == []


def test_a_merge_of_small_files_is_bounded() -> None:
    some = files(*(("a", MERGED_BYTES // 2) for _ in range(3)))
    assert small_files(some, 4 * MERGED_BYTES) == ["a-0", "a-1"]
