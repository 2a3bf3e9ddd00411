"""A pipeline in a session that exists: of a notebook, of spark-submit, or of Spark Connect."""

import os
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.observers import Groups, History
from headrace.pipeline.parquet_files import check_directory
from headrace.pipeline.progress import Observer
from headrace.pipeline.runner import Runner
from headrace.pipeline.state import PipelineState
from headrace.pipeline.targets import Parquet
from headrace.pipeline.topics import NewTopic, create, missing_topics
from headrace.spark import launcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOOTSTRAP: Final = "127.0.0.1:9092"


def run(
    pipeline: Pipeline, spark: "SparkSession | None", *, bootstrap: str | None, state: Path | str, once: bool
) -> None:
    """Run the pipeline until it is interrupted, or to the current end of its topics.

    Without `spark`, the session is that of spark-submit, or a new local one, and is stopped at the end.
    """
    pipeline.check()
    brokers = bootstrap or pipeline.bootstrap or os.environ.get("HEADRACE_BOOTSTRAP") or BOOTSTRAP
    stored = PipelineState(state, pipeline.name)
    with stored.running(), ExitStack() as stack:
        prepare(pipeline, brokers, stored)
        if spark is None:
            spark = launcher.session(pipeline.name, settings=pipeline.settings)
            stack.callback(spark.stop)
        else:
            launcher.register_sources(spark)
        observers: list[Observer] = [
            stack.enter_context(closing(Groups(brokers, pipeline.client))),
            stack.enter_context(closing(History(brokers, pipeline.client))),
        ]
        Runner(spark, pipeline, brokers, stored, observers).run(to_the_end=once)


def prepare(pipeline: Pipeline, bootstrap: str, state: PipelineState) -> list[NewTopic]:
    """Check directories and create topics, before Spark has work; return the new topics."""
    for sink in pipeline.sinks.values():
        if isinstance(sink.target, Parquet) and sink.target.directory is not None:
            check_directory(sink.target.directory, state.checkpoint(pipeline.query_name(sink.name)))
    new = missing_topics(pipeline, bootstrap)
    create(pipeline, bootstrap, new)
    return new
