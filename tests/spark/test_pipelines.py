"""Pipelines on a real session and a real broker: where rows go, and where a run goes on."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from cluster.waiting import until
from headrace.client.groups.admin import GroupAdmin
from headrace.client.wire.brokers import Brokers
from headrace.pipeline import Parquet, Pipeline, PipelineError, Text, Topic
from headrace.pipeline.observers import Groups, History, history
from headrace.pipeline.plan import plan
from headrace.pipeline.topics import missing_topics
from spark.plant import ORDERS, Plant, order, orders
from wire.confluent import make_topic, read

PATIENCE_S: Final = 240


def headers(message: Any) -> Mapping[str, bytes]:
    return dict(message.headers() or [])


def ids(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted((each["id"] for each in rows), key=int)


def test_bad_rows_go_to_a_topic_with_reason_and_origin_and_groups_have_the_offsets(plant: Plant) -> None:
    make_topic(plant.bootstrap, "letters", partitions=2, retention_ms="-1")  # one record is old
    plant.feed("letters", [order(1), b"\xff\x00", order(2)], key=b"k", headers=[("mine", b"1")])
    plant.feed("letters", [b'{"id": "3", "price": "dear"}'], partition=1, timestamp=1_767_225_600_000)
    pipeline = orders("letters")
    groups, kept = Groups(plant.bootstrap), History(plant.bootstrap)

    plant.run(pipeline, groups, kept)
    groups.close()
    kept.close()

    assert ids(plant.rows("letters-out")) == ["1", "2"]
    assert {each.key() for each in plant.records("letters-out")} == {b"1", b"2"}
    letters = read(plant.bootstrap, "letters.dead-letters", partitions=[0, 1])
    assert len(letters) == 2
    found = {each.value(): each for each in letters}
    assert found.keys() == {b"\xff\x00", b'{"id": "3", "price": "dear"}'}
    first, second = headers(found[b"\xff\x00"]), headers(found[b'{"id": "3", "price": "dear"}'])
    assert found[b"\xff\x00"].key() == b"k"
    assert first["reason"] == b"it is not UTF-8"
    assert (first["topic"], first["partition"], first["offset"]) == (b"letters", b"0", b"1")
    assert (first["pipeline"], first["source"], first["mine"]) == (b"letters", b"orders", b"1")
    assert second["reason"] == b"it is JSON, but does not fit id string, price double"
    assert (second["partition"], second["offset"]) == (b"1", b"0")
    assert second["timestamp"] == b"1767225600000"

    for group in ("letters.out", "letters.orders.dead-letters"):
        (described,) = GroupAdmin(Brokers(plant.bootstrap)).describe([group])
        assert {(each.partition, each.committed, each.lag) for each in described.partitions} == {
            (0, 3, 0),
            (1, 1, 0),
        }
    batches = [each for each in plant.told if each.event == "batch" and each.rows]
    assert {(each.query, each.rows, each.written, each.lag) for each in batches} == {
        ("letters.out", 4, 2, 0),
        ("letters.orders.dead-letters", 4, 2, 0),
    }
    assert [(each.query, each.event) for each in history(plant.bootstrap, "letters")] == [
        (each.query, each.event) for each in plant.told
    ]


def test_queries_that_begin_in_different_runs_begin_at_the_same_offsets(plant: Plant) -> None:
    """The one of `sums` cannot start in the first run: its checkpoint's directory is a file."""
    make_topic(plant.bootstrap, "apart", partitions=1)
    plant.feed("apart", [order(1), b"before"])
    pipeline = orders("apart", starting="latest")

    @pipeline.sink(Topic("apart-sums", key="id", partitions=1), mode="update")
    def sums(orders: DataFrame) -> DataFrame:
        return orders.groupBy("id").count()

    state = plant.state(pipeline)
    blocked = Path(str(state.checkpoint(pipeline.query_name("sums"))))
    blocked.parent.mkdir(parents=True)
    blocked.touch()
    with pytest.raises(PipelineError, match="apart-sums"):
        plant.run(pipeline)
    blocked.unlink()
    plant.feed("apart", [order(2), b"between"])

    assert [each.lag for each in plan(pipeline, plant.bootstrap, state).queries] == [2, 2, 2]
    plant.run(pipeline)
    assert ids(plant.rows("apart-out")) == ids(plant.rows("apart-sums")) == ["2"]
    assert [each.value() for each in plant.records("apart.dead-letters")] == [b"between"]
    assert state.initial_offsets == {}


def test_bad_rows_that_are_dropped_are_in_no_topic(plant: Plant) -> None:
    make_topic(plant.bootstrap, "dropped")
    plant.feed("dropped", [order(1), b"nonsense", None, order(2)])
    pipeline = orders("dropped", bad_rows="drop")

    assert [each.name for each in missing_topics(pipeline, plant.bootstrap)] == ["dropped-out"]
    plant.run(pipeline)

    assert [row.get("id") for row in plant.rows("dropped-out")] == ["1", None, "2"]


def test_a_bad_row_ends_the_pipeline_if_that_is_asked_for_and_says_where_it_is(plant: Plant) -> None:
    make_topic(plant.bootstrap, "failing")
    plant.feed("failing", [order(1), b"nonsense"])

    with pytest.raises(PipelineError) as error:
        plant.run(orders("failing", bad_rows="fail"))

    said = str(error.value)
    assert said.startswith("failing.out: ")
    assert "source orders: failing-0 offset 1: it is not JSON" in said
    assert "\n" not in said
    assert [each.query for each in plant.told if each.event == "failed"] == ["failing.out"]
    assert plant.state(orders("failing")).pid is None


def test_rows_that_change_are_written_to_a_topic_again_by_key(plant: Plant) -> None:
    make_topic(plant.bootstrap, "sums")
    pipeline = Pipeline("sums")
    pipeline.source("orders", topic="sums", decode=ORDERS)

    @pipeline.sink(Topic("sums-out", key="id", partitions=1), mode="update")
    def out(orders: DataFrame) -> DataFrame:
        return orders.groupBy("id").agg(F.sum("price").alias("price"))

    plant.feed("sums", [order(1, 2.0), order(1, 3.0), order(2, 1.0)])
    plant.run(pipeline)
    plant.feed("sums", [order(1, 5.0)])
    plant.run(pipeline)

    rows = plant.rows("sums-out")
    assert sorted((row["id"], row["price"]) for row in rows[:2]) == [("1", 5.0), ("2", 1.0)]
    assert [(row["id"], row["price"]) for row in rows[2:]] == [("1", 10.0)]
    batches = [each for each in plant.told if (each.query, each.event) == ("sums.out", "batch")]
    assert batches[-1].state_rows == 2


@contextmanager
def default_file_system(spark: SparkSession, url: str) -> Iterator[None]:
    """Spark's own, where paths without a scheme are looked for."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    before = settings.get("fs.defaultFS")
    settings.set("fs.defaultFS", url)
    try:
        yield
    finally:
        settings.set("fs.defaultFS", before)


def test_a_second_run_goes_on_exactly_where_the_first_has_ended(plant: Plant) -> None:
    """Also if the first had paths without a scheme on this machine, and those of the second are on HDFS."""
    make_topic(plant.bootstrap, "resumed")
    pipeline = orders("resumed", bad_rows="drop")

    @pipeline.sink(Parquet(str(plant.root / "files")))
    def files(orders: DataFrame) -> DataFrame:
        return orders.select("id")

    for numbers, file_system in ((range(10), "file:///"), (range(10, 25), "hdfs://127.0.0.1:1")):
        plant.feed("resumed", [order(number) for number in numbers])
        with default_file_system(plant.spark, file_system):
            plant.run(pipeline)

    everything = [str(number) for number in range(25)]
    assert ids(plant.rows("resumed-out")) == everything
    stored = plant.spark.read.parquet(str(plant.root / "files")).collect()
    assert ids([row.asDict() for row in stored]) == everything


@pytest.mark.long  # test_exactly_once_streams.py repeats batches without a pipeline
def test_a_batch_that_is_repeated_is_in_its_topic_once(plant: Plant) -> None:
    """In every mode; Spark lets sinks in Python only append, so the others are written by foreachBatch."""
    make_topic(plant.bootstrap, "repeated")
    pipeline = orders("repeated", bad_rows="drop")

    @pipeline.sink(Topic("repeated-sums", key="id", partitions=1), mode="update")
    def sums(orders: DataFrame) -> DataFrame:
        return orders.groupBy("id").count()

    plant.feed("repeated", [order(number) for number in range(10)])
    plant.run(pipeline)
    for query in ("repeated.out", "repeated.sums"):
        commits = plant.state(pipeline).checkpoint(query) / "commits"
        for note in (commits / "0", commits / ".0.crc"):
            note.unlink()
    plant.feed("repeated", [order(number) for number in range(10, 15)])
    plant.run(pipeline)

    everything = sorted(str(number) for number in range(15))
    assert sorted(ids(plant.rows("repeated-out"))) == everything
    assert sorted(ids(plant.rows("repeated-sums"))) == everything


def test_a_directory_of_parquet_files_that_another_query_writes_to_is_refused(plant: Plant) -> None:
    make_topic(plant.bootstrap, "shared")
    plant.feed("shared", [order(number) for number in range(10)])

    def pipeline(name: str) -> Pipeline:
        made = Pipeline(name)
        made.source("orders", topic="shared", decode=ORDERS, bad_rows="drop")

        @made.sink(Parquet(str(plant.root / "shared-files")))
        def files(orders: DataFrame) -> DataFrame:
            return orders.select("id")

        return made

    plant.run(pipeline("first"))
    with pytest.raises(PipelineError, match="shared-files has files of batches 0 to 0 of a query without"):
        plant.run(pipeline("second"))
    offsets = Path(str(plant.state(pipeline("second")).checkpoint("second.files"))) / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").touch()
    with pytest.raises(PipelineError, match="shared-files belongs to another query"):
        plant.run(pipeline("second"))


def test_a_replay_reads_what_came_since_and_a_reset_everything(plant: Plant) -> None:
    make_topic(plant.bootstrap, "again", retention_ms="-1")
    pipeline = orders("again", bad_rows="drop")
    for number in range(4):
        plant.feed("again", [order(number)], timestamp=1_767_225_600_000 + number * 1000)
    plant.run(pipeline)
    assert ids(plant.rows("again-out")) == ["0", "1", "2", "3"]

    plant.state(pipeline).replay(1_767_225_602_000)
    plant.run(pipeline)
    assert ids(plant.rows("again-out")[4:]) == ["2", "3"]

    assert plant.state(pipeline).reset() == ["again.out"]
    plant.run(pipeline)
    assert ids(plant.rows("again-out")[6:]) == ["0", "1", "2", "3"]


def test_a_pipeline_that_is_stopped_ends_after_its_batch_and_nothing_is_written_twice(plant: Plant) -> None:
    make_topic(plant.bootstrap, "stopped")
    pipeline = orders("stopped", bad_rows="drop", options={"maxOffsetsPerTrigger": "20"})
    plant.feed("stopped", [order(number) for number in range(160)])
    runner = plant.runner(pipeline)

    def stop() -> None:
        until("a batch is done", lambda: any(each.rows for each in plant.told), timeout_s=PATIENCE_S)
        assert plant.state(pipeline).pid is not None
        runner.stop()

    stopping = threading.Thread(target=stop)  # Spark wants the thread that its session was made in
    stopping.start()
    runner.run()
    stopping.join()
    assert plant.told[-1].event == "ended"

    plant.run(pipeline)
    assert ids(plant.rows("stopped-out")) == [str(number) for number in range(160)]


def test_what_fails_in_a_function_is_told_in_a_sentence(plant: Plant) -> None:
    make_topic(plant.bootstrap, "broken")
    pipeline = Pipeline("broken")
    pipeline.source("lines", topic="broken", decode=Text(), bad_rows="drop")

    @pipeline.sink(Topic("broken-out", partitions=1))
    def out(lines: DataFrame) -> DataFrame:
        return lines.select(F.udf(lambda text: str(1 / len(text)))("value").alias("value"))

    plant.feed("broken", [b""])
    with pytest.raises(PipelineError) as error:
        plant.run(pipeline)
    assert "division by zero" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_column_that_is_not_there_is_told_with_the_function_that_wants_it(plant: Plant) -> None:
    make_topic(plant.bootstrap, "unfit")
    pipeline = Pipeline("unfit")
    pipeline.source("orders", topic="unfit", decode=ORDERS)

    @pipeline.sink(Topic("unfit-out", key="prize", partitions=1))
    def out(orders: DataFrame) -> DataFrame:
        return orders.select("id")

    with pytest.raises(PipelineError, match=r"out\(\), to topic unfit-out: .*prize"):
        plant.run(pipeline)
    assert plant.told == []
