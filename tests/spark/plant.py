"""Pipelines of the tests: they run against one broker, and their state is in the test's directory."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headrace.pipeline import Json, Pipeline, Topic
from headrace.pipeline.progress import Progress
from headrace.pipeline.runner import Runner
from headrace.pipeline.state import PipelineState
from headrace.pipeline.topics import create, missing_topics
from wire.confluent import read, send

ORDERS: Final = Json("id string, price double")


class Plant:
    """Runs pipelines against one broker; their state is in the test's directory."""

    def __init__(self, spark: SparkSession, bootstrap: str, root: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.root = root
        self.told: list[Progress] = []

    def state(self, pipeline: Pipeline) -> PipelineState:
        return PipelineState(self.root / "state", pipeline.name)

    def runner(self, pipeline: Pipeline, *observers: Callable[[Progress], None]) -> Runner:
        create(pipeline, self.bootstrap, missing_topics(pipeline, self.bootstrap))
        told = [self.told.append, *observers]
        return Runner(self.spark, pipeline, self.bootstrap, self.state(pipeline), told)

    def run(self, pipeline: Pipeline, *observers: Callable[[Progress], None]) -> None:
        """To the end of what is there."""
        self.runner(pipeline, *observers).run(to_the_end=True)

    def feed(self, topic: str, values: Sequence[bytes | None], *, partition: int = 0, **more: Any) -> None:
        messages = [{"value": each, "partition": partition, **more} for each in values]
        assert [error for error, _ in send(self.bootstrap, topic, messages) if error] == []

    def records(self, topic: str) -> list[Any]:
        return read(self.bootstrap, topic)

    def rows(self, topic: str) -> list[dict[str, Any]]:
        return [json.loads(each.value()) for each in self.records(topic)]


def order(number: int, price: float = 1.0) -> bytes:
    return json.dumps({"id": str(number), "price": price}).encode()


def orders(name: str, **source: Any) -> Pipeline:
    """A pipeline from the topic NAME to the topic NAME-out, as the rows are."""
    pipeline = Pipeline(name)
    pipeline.source("orders", topic=name, **({"decode": ORDERS} | source))

    @pipeline.sink(Topic(f"{name}-out", key="id", partitions=1))
    def out(orders: DataFrame) -> DataFrame:
        return orders.select("id", "price")

    return pipeline


def failing_while(path: Path) -> Callable[..., Column]:
    """A function of a column that returns it, and fails as long as a file exists."""

    def check(text):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  Spark takes hints for columns of pandas
        if path.exists():
            raise ValueError(f"no {text} today")
        return text

    return F.udf(check, "string")
