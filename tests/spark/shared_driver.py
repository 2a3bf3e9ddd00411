"""A driver of a pipeline whose sinks share a query, until it is killed or has read everything.

It can also kill itself, at a commit of the table that rows are merged into.
"""

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame

from headrace.pipeline import Delta, Json, Pipeline, Topic
from headrace.pipeline.runner import Runner
from headrace.pipeline.state import PipelineState
from spark.merged_tables import FORMATS
from spark.session import spark_session
from spark.upsert_driver import die_at


def pipeline(root: Path) -> Pipeline:
    made = Pipeline("kills")
    made.source(
        "numbers",
        topic="source",
        decode=Json("number bigint"),
        dead_letters="bad",
        options={"maxOffsetsPerTrigger": "500"},
    )

    @made.sink(Topic("target"), every="0 seconds")
    def copies(numbers: DataFrame) -> DataFrame:
        return numbers.select("number")

    @made.sink(Delta(str(root / "table")), every="0 seconds")
    def archive(numbers: DataFrame) -> DataFrame:
        return numbers.select("number")

    @made.sink(
        Delta(str(root / "newest")).upsert(keys="digit", sequence_by="number", deletes="number % 7 = 0"),
        every="0 seconds",
    )
    def newest(numbers: DataFrame) -> DataFrame:
        return numbers.selectExpr("number % 10 as digit", "number")

    return made


def run(
    root: Path, work: Path, bootstrap: str, *, to_the_end: bool, dies_at: int | None, committed: bool
) -> None:
    work.mkdir(parents=True, exist_ok=True)
    with spark_session(work) as spark:
        if dies_at is not None:
            gateway = spark.sparkContext._gateway
            assert gateway is not None
            processes = [gateway.proc.pid, os.getpid()]
            die_at(FORMATS["delta"], dies_at, committed=committed, processes=processes)
        Runner(spark, pipeline(root), bootstrap, PipelineState(root / "state", "kills")).run(
            to_the_end=to_the_end
        )


if __name__ == "__main__":
    directory, servers, end = sys.argv[1:]  # end: "killed" from outside, "end", "before 2" or "after 2"
    when, _, commit = end.partition(" ")
    run(
        Path(directory).parent,
        Path(directory),
        servers,
        to_the_end=when != "killed",
        dies_at=int(commit) if commit else None,
        committed=when == "after",
    )
