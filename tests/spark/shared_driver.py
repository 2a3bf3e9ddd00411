"""A driver of a pipeline whose sinks share a query, until it is killed or has read everything."""

import sys
from pathlib import Path

from pyspark.sql import DataFrame

from headrace.pipeline import Delta, Json, Pipeline, Topic
from headrace.pipeline.runner import Runner
from headrace.pipeline.state import State
from spark.session import spark_session


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

    return made


def run(root: Path, work: Path, bootstrap: str, *, to_the_end: bool) -> None:
    work.mkdir(parents=True, exist_ok=True)
    with spark_session(work) as spark:
        Runner(spark, pipeline(root), bootstrap, State(root / "state", "kills")).run(to_the_end=to_the_end)


if __name__ == "__main__":
    directory, servers, end = sys.argv[1:]
    run(Path(directory).parent, Path(directory), servers, to_the_end=end == "end")
