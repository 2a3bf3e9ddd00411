"""Who may write Parquet files to a directory."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from headrace.pipeline import Parquet, Pipeline
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.parquet_files import OWNER, check_directory, claim_directory


def test_the_query_that_came_first_owns_the_directory(tmp_path: Path) -> None:
    files, one, other = tmp_path / "files", tmp_path / "one", tmp_path / "other"
    claim_directory(files, one)
    claim_directory(files, one)

    for refuse in (check_directory, claim_directory):
        with pytest.raises(PipelineError, match=r"belongs to another query, .* or remove .*_headrace_query"):
            refuse(files, other)
    claim_directory(files, one)
    assert [each.name for each in files.iterdir()] == [OWNER]

    (files / OWNER).unlink()
    claim_directory(files, other)


def test_a_checkpoint_that_has_moved_is_still_the_same_querys(tmp_path: Path) -> None:
    claim_directory(tmp_path / "files", tmp_path / "one")
    (tmp_path / "one").rename(tmp_path / "moved")

    claim_directory(tmp_path / "files", tmp_path / "moved")


def test_looking_at_a_directory_claims_nothing(tmp_path: Path) -> None:
    check_directory(tmp_path / "files", tmp_path / "one")

    assert list(tmp_path.iterdir()) == []


def test_two_sinks_of_a_pipeline_cannot_share_a_directory(tmp_path: Path) -> None:
    pipeline = Pipeline("shop")
    pipeline.source("orders", topic="orders")

    def rows(orders: DataFrame) -> DataFrame:
        return orders

    for name, place in (
        ("one", tmp_path / "files"),
        ("two", tmp_path / "more"),
        ("three", tmp_path / "files"),
    ):
        pipeline.check() if pipeline.sinks else None
        rows.__name__ = name
        pipeline.sink(Parquet(str(place)))(rows)

    with pytest.raises(PipelineError, match="sinks one and three both write Parquet files in"):
        pipeline.check()


def test_files_of_a_query_whose_checkpoint_is_gone_are_refused(tmp_path: Path) -> None:
    files, checkpoint = tmp_path / "files", tmp_path / "checkpoint"
    check_directory(files, checkpoint)
    (files / "_spark_metadata").mkdir(parents=True)
    for name in ("0", "9.compact", "10", ".10.crc"):
        (files / "_spark_metadata" / name).touch()

    with pytest.raises(PipelineError, match=r"batches 0 to 10 .* move the directory away"):
        check_directory(files, checkpoint)

    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets" / "10").write_text('v1\n{}\n{"positions": {"0": 5}}')
    check_directory(files, checkpoint)
