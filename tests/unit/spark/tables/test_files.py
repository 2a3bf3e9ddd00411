"""Files in the making: where they end, how many are open, what a failure leaves."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pytest

from headrace.spark.tables.files import OPEN_FILES, Files


def rows(first: int, last: int) -> pa.RecordBatch:
    ids = list(range(first, last))
    return pa.record_batch({"id": ids, "name": [f"row {n}" for n in ids]})


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
