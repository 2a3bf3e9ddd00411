"""Rows that break an expectation: kept, dropped, quarantined or the end of the pipeline; and restarts."""

import re
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headrace.pipeline import Delta, Json, Pipeline, PipelineError, Restart, Topic
from headrace.pipeline.checker import Checker
from headrace.pipeline.progress import Figures, Progress
from headrace.pipeline.testing import BadRecord, run_on
from spark.plant import ORDERS, Plant, failing_while, order, orders
from wire.confluent import make_topic

pytestmark = pytest.mark.extended


def expecting(name: str, root: Path) -> Pipeline:
    """Two sinks that share a query, one with state, and expectations on every step."""
    pipeline = orders(name)

    @pipeline.view
    def cheap(orders: DataFrame) -> DataFrame:
        return orders.where("price < 100")

    @pipeline.sink(Delta(str(root / "table")), every="1 second")
    def archive(cheap: DataFrame) -> DataFrame:
        return cheap.select("id", "price")

    @pipeline.sink(Topic(f"{name}-sums", key="id", partitions=1), mode="update")
    def sums(orders: DataFrame) -> DataFrame:
        return orders.groupBy("id").count()

    pipeline.expect("orders", "whole price", "price = floor(price)")
    pipeline.expect_or_quarantine("orders", "price", "price > 0", to=Topic(f"{name}-bad", partitions=1))
    pipeline.expect_or_drop("cheap", "not free", "price > 1")
    pipeline.expect("archive", "has an id", "id is not null")
    return pipeline


PRICES = (0.0, 0.5, 1.0, 2.5, 3.0, 200.0)


def test_broken_expectations_are_counted_and_rows_go_where_they_should(plant: Plant) -> None:
    make_topic(plant.bootstrap, "expected")
    plant.feed("expected", [order(number, price) for number, price in enumerate(PRICES)])
    plant.feed("expected", [b'{"id": "6"}', b"no order"])

    plant.run(expecting("expected", plant.root))

    assert [row["id"] for row in plant.rows("expected-out")] == ["1", "2", "3", "4", "5"]
    assert sorted(row["id"] for row in plant.rows("expected-sums")) == ["1", "2", "3", "4", "5"]
    quarantined = plant.rows("expected-bad")
    assert [(row["id"], row["_reason"], row["_origin"]) for row in quarantined] == [
        ("0", "price (price > 0)", "expected-0 offset 0"),
        ("6", "price (price > 0)", "expected-0 offset 6"),
    ]
    source = {"whole price": 3, "price": 2}  # a condition that is null is not met
    batches = {each.query: each for each in plant.told if each.rows}
    assert {name: dict(each.broken) for name, each in batches.items()} == {
        "expected.out": {"orders": source},
        "expected.archive": {"orders": source, "cheap": {"not free": 2}, "archive": {"has an id": 0}},
        "expected.sums": {"orders": source},
        "expected.orders.dead-letters": {},
        "expected.orders.quarantine": {},
    }
    assert {name for name, each in batches.items() if each.shared} == batches.keys() - {"expected.sums"}


CONDITIONS = {
    "timely": "cast(price as timestamp) <= current_timestamp()",
    "lucky": "rand() < 0.5",
    "named": "uuid() < '8'",
}


def ids(path: Path) -> list[int]:
    table = DeltaTable(str(path)).to_pyarrow_table(columns=["id"])
    return [int(each) for each in table.column("id").to_pylist()]


def test_a_row_is_in_its_table_or_in_quarantine_whatever_the_time_and_however_often_it_is_judged(
    plant: Plant,
) -> None:
    """The first run fails when the tables have the batch and the quarantines do not."""
    make_topic(plant.bootstrap, "judged")
    now = time.time()
    plant.feed("judged", [order(number, now + number / 10) for number in range(3000)])
    pipeline = Pipeline("judged")
    pipeline.source("orders", topic="judged", decode=ORDERS)
    for name, condition in CONDITIONS.items():

        def step(orders: DataFrame) -> DataFrame:
            return orders.select("id", "price")

        step.__name__ = name
        pipeline.sink(Delta(str(plant.root / name)), every="1 second")(step)
        target = Delta(str(plant.root / f"{name}-quarantine"))
        pipeline.expect_or_quarantine(name, "condition", condition, to=target)
        (plant.root / f"{name}-quarantine").touch()  # a table cannot be here

    with pytest.raises(PipelineError, match="quarantine"):
        plant.run(pipeline)
    for name in CONDITIONS:
        (plant.root / f"{name}-quarantine").unlink()
    plant.run(pipeline)

    for name in CONDITIONS:
        kept, quarantined = ids(plant.root / name), ids(plant.root / f"{name}-quarantine")
        assert sorted([*kept, *quarantined]) == list(range(3000))
        last = [each for each in plant.told if each.query == f"judged.{name}" and each.rows][-1]
        assert last.broken == {name: {"condition": len(quarantined)}}


def test_a_condition_on_the_time_is_refused_if_another_query_would_evaluate_it(plant: Plant) -> None:
    make_topic(plant.bootstrap, "apart")
    pipeline = expecting("apart", plant.root)
    recent = "_record.timestamp > current_timestamp() - interval 1 day"
    pipeline.expect_or_quarantine("orders", "recent", recent, to=Topic("apart-bad", partitions=1))

    says = "orders: rows are quarantined by a condition on the current time .*, and sums would evaluate"
    with pytest.raises(PipelineError, match=says):
        plant.run(pipeline)
    checker = Checker(plant.spark, pipeline, plant.bootstrap, plant.state(pipeline))
    (finding,) = [each for each in checker.findings() if not each.good]
    assert re.match(says, finding.says)


def test_a_query_that_fails_is_restarted_and_a_row_that_must_not_be_there_ends_it(plant: Plant) -> None:
    make_topic(plant.bootstrap, "restarted")
    pipeline = orders("restarted", bad_rows="drop")
    pipeline.restart = Restart(limit=2, backoff_s=0)
    broken = plant.root / "broken"

    @pipeline.sink(Topic("restarted-odd", partitions=1))
    def odd(orders: DataFrame) -> DataFrame:
        return orders.select(failing_while(broken)("id").alias("id"), "price")

    pipeline.expect_or_fail("odd", "price", "price >= 0")
    plant.feed("restarted", [order(number) for number in range(5)])
    broken.touch()

    def repair(progress: Progress) -> None:
        if progress.event == "restarting" and progress.restarts == 2:
            broken.unlink(missing_ok=True)

    plant.run(pipeline, repair)
    assert [row["id"] for row in plant.rows("restarted-odd")] == ["0", "1", "2", "3", "4"]
    assert [row["id"] for row in plant.rows("restarted-out")] == ["0", "1", "2", "3", "4"]
    figures = Figures("restarted.odd")
    for each in plant.told:
        if each.query == figures.query:
            figures.add(each)
    assert (figures.restarts, figures.written, figures.event) == (2, 5, "ended")
    assert "ValueError: no " in figures.reason

    plant.told.clear()
    plant.feed("restarted", [order(7, -1.0)])
    with pytest.raises(PipelineError, match=r"odd: .*does not meet the expectation price \(price >= 0\)"):
        plant.run(pipeline)
    assert [each for each in plant.told if each.event == "restarting"] == []


def test_a_pipeline_runs_on_records_of_a_unit_test(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = expecting("tried", tmp_path)
    given = [{"id": str(number), "price": price} for number, price in enumerate(PRICES)]

    result = run_on(spark, pipeline, {"orders": [*given, b"no order"]})

    assert [row["id"] for row in result.rows("orders")] == ["1", "2", "3", "4", "5"]
    assert result.rows("orders")[0]["_record"]["offset"] == 1
    assert result.bad == {"orders": [BadRecord(value=b"no order", reason="it is not JSON")]}
    assert result.rows("archive") == [{"id": "3", "price": 2.5}, {"id": "4", "price": 3.0}]
    assert [row["count"] for row in result.rows("sums")] == [1] * 5
    assert [row["id"] for row in result.quarantined["orders"]] == ["0"]
    assert result.broken == {
        "orders": {"whole price": 2, "price": 1},
        "cheap": {"not free": 2},
        "archive": {"has an id": 0},
    }
    assert not (tmp_path / "table").exists()


def test_a_unit_test_is_told_of_a_row_that_must_not_be_there(spark: SparkSession) -> None:
    pipeline = Pipeline("strict")
    pipeline.source("orders", topic="orders", decode=Json("id string, price double"))

    @pipeline.sink(Topic("out"))
    def out(orders: DataFrame) -> DataFrame:
        return orders

    pipeline.expect_or_fail("orders", "price", "price > 0")
    with pytest.raises(
        PipelineError, match=r"orders: a row does not meet .* price \(price > 0\): orders-0 offset 1"
    ):
        run_on(spark, pipeline, {"orders": [{"price": 1}, {"price": 0}]})
    with pytest.raises(PipelineError, match="there is no source 'order', only orders"):
        run_on(spark, pipeline, {"order": []})
