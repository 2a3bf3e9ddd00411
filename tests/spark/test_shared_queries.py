"""Sinks that share a query: their source is read once, and each of them keeps its guarantee."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from deltalake import DeltaTable
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import DataFrame, SparkSession

from headrace.client.groups.admin import GroupAdmin
from headrace.client.wire.brokers import Brokers
from headrace.pipeline import Delta, Pipeline, PipelineError, Restart, Topic
from headrace.pipeline.observers import Groups
from headrace.pipeline.plan import plan
from headrace.pipeline.progress import Figures, Progress
from headrace.pipeline.restarts import Watchdog
from headrace.pipeline.runner import Runner
from headrace.pipeline.storage.object_store import StoragePath
from headrace.pipeline.topics import create, missing_topics
from spark.plant import ORDERS, Plant, failing_while, order, orders
from support.process import ClusterProcess
from wire.confluent import make_topic, read

TIMEOUT_S: Final = 300
pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    """A cluster with meters, which no other test reads from."""
    settings = {"default.replication.factor": "1", "offsets.topic.replication.factor": "1"}
    with ClusterProcess(tmp_path_factory.mktemp("shared"), settings=settings) as process:
        yield process


def meter(cluster: ClusterProcess, name: str, topic: str) -> float:
    with urllib.request.urlopen(f"{cluster.http}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    wanted = f"kafka_server_brokertopicmetrics_{name}_total"
    return sum(each.value for each in samples if each.name == wanted and each.labels.get("topic") == topic)


def table_ids(path: Path) -> list[str]:
    ids: list[str] = DeltaTable(str(path)).to_pyarrow_table(columns=["id"]).column("id").to_pylist()
    return sorted(ids, key=int)


def numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def ids(plant: Plant, topic: str) -> list[str]:
    return sorted((row["id"] for row in plant.rows(topic)), key=int)


def fan(name: str, root: Path) -> Pipeline:
    """Three sinks and dead letters, of one source."""
    pipeline = orders(name)

    @pipeline.view
    def dear(orders: DataFrame) -> DataFrame:
        return orders.where("price > 10")

    @pipeline.sink(Topic(f"{name}-dear", key="id", partitions=1))
    def alerts(dear: DataFrame) -> DataFrame:
        return dear.select("id")

    @pipeline.sink(Delta(str(root / "table")), every="1 second")
    def archive(orders: DataFrame) -> DataFrame:
        return orders.select("id", "price", "_record.offset")

    return pipeline


def test_a_source_with_three_sinks_and_dead_letters_is_read_once(
    spark: SparkSession, cluster: ClusterProcess, tmp_path: Path
) -> None:
    plant = Plant(spark, cluster.bootstrap, tmp_path)
    make_topic(plant.bootstrap, "fan", partitions=2)
    plant.feed("fan", [order(number, price=number) for number in range(20)], headers=[("size", b"x" * 1000)])
    plant.feed("fan", [b"no order"], partition=1)
    pipeline = fan("fan", tmp_path)
    groups = Groups(plant.bootstrap)

    before = plan(pipeline, plant.bootstrap, plant.state(pipeline))
    plant.run(pipeline, groups)
    groups.close()

    assert meter(cluster, "bytesin", "fan") > 20_000
    assert 0 < meter(cluster, "bytesout", "fan") <= meter(cluster, "bytesin", "fan")
    assert ids(plant, "fan-out") == table_ids(tmp_path / "table") == numbers(20)
    assert ids(plant, "fan-dear") == [str(number) for number in range(11, 20)]
    letters = read(plant.bootstrap, "fan.dead-letters", partitions=[0, 1])
    assert [each.value() for each in letters] == [b"no order"]
    batches = [each for each in plant.told if each.rows]
    assert {(each.query, each.shared, each.rows, each.written, each.lag) for each in batches} == {
        ("fan.out", "fan.orders.shared", 21, 20, 0),
        ("fan.alerts", "fan.orders.shared", 21, 9, 0),
        ("fan.archive", "fan.orders.shared", 21, 20, 0),
        ("fan.orders.dead-letters", "fan.orders.shared", 21, 1, 0),
    }
    for sink in ("out", "alerts", "archive", "orders.dead-letters"):
        (described,) = GroupAdmin(Brokers(plant.bootstrap)).describe([f"fan.{sink}"])
        assert {(each.partition, each.committed) for each in described.partitions} == {(0, 20), (1, 1)}
    after = plan(pipeline, plant.bootstrap, plant.state(pipeline))
    assert {each.shared for each in before.queries + after.queries} == {"fan.orders.shared"}
    assert [(each.last_batch, each.lag) for each in before.queries] == [(None, 21)] * 4
    assert [(each.last_batch, each.lag) for each in after.queries] == [(0, 0)] * 4


def test_a_batch_that_one_sink_has_failed_to_write_is_in_the_others_once(plant: Plant) -> None:
    make_topic(plant.bootstrap, "halved")
    pipeline = fan("halved", plant.root)
    broken = plant.root / "broken"

    @pipeline.sink(Topic("halved-odd", key="id", partitions=1))
    def odd(orders: DataFrame) -> DataFrame:
        return orders.select(failing_while(broken)("id").alias("id"))

    plant.feed("halved", [order(number) for number in range(10)])
    broken.touch()
    with pytest.raises(PipelineError, match=r"odd: .*ValueError: no . today"):
        plant.run(pipeline)
    ended = {each.query: each.event for each in plant.told if each.event in {"failed", "ended"}}
    assert (ended["halved.odd"], ended["halved.out"], ended["halved.archive"]) == ("failed", "ended", "ended")
    assert ids(plant, "halved-out") == table_ids(plant.root / "table") == numbers(10)

    broken.unlink()
    plant.feed("halved", [order(number) for number in range(10, 15)])
    plant.run(pipeline)
    for topic in ("halved-out", "halved-odd"):
        assert ids(plant, topic) == numbers(15)
    assert table_ids(plant.root / "table") == numbers(15)


def forget_commit(checkpoint: StoragePath, batch: int) -> None:
    """Have Spark repeat a batch, as after a kill before its commit."""
    for name in (f"{batch}", f".{batch}.crc"):
        (checkpoint / "commits" / name).unlink()


@pytest.mark.parametrize("finished", [True, False])
def test_a_batch_that_an_upsert_has_already_is_skipped_and_the_query_goes_on(
    plant: Plant, *, finished: bool
) -> None:
    """As after a kill between the commit of the table and that of Spark's checkpoint."""
    name = f"merged-{finished}"
    make_topic(plant.bootstrap, name)
    pipeline = Pipeline(name)
    pipeline.source("orders", topic=name, decode=ORDERS)

    @pipeline.sink(Delta(str(plant.root / name)).upsert(keys="id", sequence_by="price"), every="1 second")
    def newest(orders: DataFrame) -> DataFrame:
        return orders.select("id", "price")

    pipeline.expect("orders", "not free", "price > 1")
    plant.feed(name, [order(number % 5, price=number) for number in range(10)])
    plant.feed(name, [b"no order"])
    plant.run(pipeline)
    checkpoint = plant.state(pipeline).checkpoint(f"{name}.orders.shared")
    forget_commit(checkpoint, 0)
    if not finished:
        plant.feed(name, [order(2, price=50), order(7, price=0)])
    plant.told.clear()
    plant.run(pipeline)

    table = DeltaTable(str(plant.root / name)).to_pyarrow_table().to_pylist()
    expected = {"0": 5, "1": 6, "2": 7, "3": 8, "4": 9} | ({} if finished else {"2": 50, "7": 0})
    assert {row["id"]: row["price"] for row in table} == expected
    assert [each.value() for each in read(plant.bootstrap, f"{name}.dead-letters")] == [b"no order"]
    batches = [each for each in plant.told if each.event == "batch" and each.query.endswith("newest")]
    found = {each.batch: (each.written, each.broken) for each in batches if each.rows}
    assert found == {0: (0, {})} | ({} if finished else {1: (2, {"orders": {"not free": 1}})})


def test_a_repeated_batch_has_its_lag_and_rows_that_are_computed_again_are_counted_once(plant: Plant) -> None:
    make_topic(plant.bootstrap, "lagging")
    pipeline = orders("lagging", options={"maxOffsetsPerTrigger": "10"})

    @pipeline.sink(Topic("lagging-too", partitions=1))
    def too(orders: DataFrame) -> DataFrame:
        if not orders.isStreaming:
            orders.sparkSession.catalog.clearCache()  # as if an executor were lost
        return orders.select("id")

    plant.feed("lagging", [order(number) for number in range(10)])
    plant.run(pipeline)
    forget_commit(plant.state(pipeline).checkpoint("lagging.orders.shared"), 0)
    plant.feed("lagging", [order(number) for number in range(10, 25)])
    plant.run(pipeline)

    for sink in ("out", "too"):
        told = [each for each in plant.told if each.query == f"lagging.{sink}" and each.event == "batch"]
        assert [(each.batch, each.rows, each.lag) for each in told if each.rows] == [
            (0, 10, 0),
            (0, 10, 15),
            (1, 10, 5),
            (2, 5, 0),
        ]


def test_a_batch_that_runs_no_job_is_reported(plant: Plant) -> None:
    make_topic(plant.bootstrap, "stuck")
    plant.feed("stuck", [order(1)])
    pipeline = orders("stuck")
    reported = threading.Event()
    create(pipeline, plant.bootstrap, missing_topics(pipeline, plant.bootstrap))

    @pipeline.sink(Topic("stuck-too", partitions=1))
    def too(orders: DataFrame) -> DataFrame:
        assert orders.isStreaming or reported.wait(TIMEOUT_S)
        return orders

    def observe(progress: Progress) -> None:
        plant.told.append(progress)
        if progress.event == "stalled":
            reported.set()

    state = plant.state(pipeline)
    watchdog = Watchdog(after_s=0.5)
    Runner(plant.spark, pipeline, plant.bootstrap, state, [observe], watchdog=watchdog).run(to_the_end=True)

    stalled = {each.query: each for each in plant.told if each.event == "stalled"}
    assert set(stalled) == {"stuck.out", "stuck.too", "stuck.orders.dead-letters"}
    assert "its batch has run no Spark job for " in stalled["stuck.out"].error
    figures = Figures("stuck.out")
    for each in plant.told:
        if each.query == figures.query:
            figures.add(each)
    assert (figures.event, figures.error, figures.written) == ("ended", "", 1)


def copies(name: str, *sinks: str) -> Pipeline:
    """A pipeline from the topic NAME to a topic NAME-SINK for each sink."""
    pipeline = Pipeline(
        name, restart=Restart(limit=50, backoff_s=0)
    )  # a busy machine starts workers too slowly
    pipeline.source("orders", topic=name, decode=ORDERS, bad_rows="drop")
    for sink in sinks:

        def copy(orders: Any) -> Any:
            return orders.select("id")

        copy.__name__ = sink
        pipeline.sink(Topic(f"{name}-{sink}", key="id", partitions=1))(copy)
    return pipeline


@pytest.mark.long
def test_sinks_that_come_and_go_get_every_record_once(plant: Plant) -> None:
    make_topic(plant.bootstrap, "moving")
    runs = (("b", "c"), ("b", "d"), ("b", "c", "d"))
    for run, sinks in enumerate(runs):
        plant.feed("moving", [order(number) for number in range(run * 5, run * 5 + 5)])
        plant.run(copies("moving", *sinks))

    for sink in "bcd":  # b and c shared a query, which c has left; d came later
        assert ids(plant, f"moving-{sink}") == numbers(15)
    state = plant.state(copies("moving", "b"))
    stored = json.loads((state.path / "shared-queries.json").read_text())
    assert stored["queries"] == {"moving.orders.shared": {"source": "orders", "sinks": ["b"]}}
    assert state.has_run("moving.c")
    assert state.has_run("moving.d")
