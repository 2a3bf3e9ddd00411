"""What a person reads whose rows cannot be written: which column, option or topic, and what to do."""

import socket
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark.queries import OURS, STREAM_TIMEOUT_S, Queries
from spark.written import new_topic, save
from wire.confluent import make_topic
from wire.process import BrokerProcess

pytestmark = pytest.mark.extended

VALUE: Final = "cast(id as string) as value"
COLUMNS: Final[dict[str, tuple[list[str], str]]] = {
    "no value": (
        ["cast(id as string) as key"],
        "there is no column 'value'; a record has key, value, topic,",
    ),
    "a number for a value": (["id as value"], "column 'value' is bigint, expected string or binary"),
    "a wide partition": ([VALUE, "id as partition"], "column 'partition' is bigint, expected int"),
    "a map of headers": (
        [VALUE, "map('k', cast('v' as binary)) as headers"],
        "column 'headers' is map<string,binary>, expected array<struct<key:string,value:binary>>",
    ),
    "a column too many": (
        [VALUE, "id as price"],
        "column 'price' is not part of a record: drop it, or put it into the value",
    ),
    "no such partition": (
        [VALUE, "cast(7 as int) as partition"],
        "a row wants partition 7 of strict, which has 1: from 0 to 0",
    ),
}


@pytest.fixture(scope="module")
def strict(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queries]:
    """A broker that makes no topics, with one of them."""
    root = tmp_path_factory.mktemp("strict")
    with BrokerProcess(root, {"auto.create.topics.enable": "false"}) as broker:
        make_topic(broker.bootstrap, "strict", max_message_bytes="5000")
        yield Queries(spark, broker.bootstrap, root)


def table(queries: Queries, *columns: str) -> DataFrame:
    return queries.spark.range(3, numPartitions=1).selectExpr(*(columns or (VALUE,)))


def refusal(queries: Queries, rows: DataFrame, **options: Any) -> str:
    """What is printed; it has no frames of Java's."""
    with pytest.raises(PySparkException) as failure:
        save(queries, rows, **options)
    text = str(failure.value)
    assert "\tat " not in text
    return text


@pytest.mark.parametrize(("columns", "sentence"), COLUMNS.values(), ids=COLUMNS.keys())
def test_columns_that_do_not_fit_are_named(strict: Queries, columns: list[str], sentence: str) -> None:
    assert sentence in refusal(strict, table(strict, *columns), topic="strict")


def test_who_does_not_say_where_is_asked(strict: Queries) -> None:
    said = refusal(strict, table(strict))

    assert "option 'topic': missing; name the topic with this option, or in a column 'topic'" in said


def test_a_row_without_a_topic_is_refused(strict: Queries) -> None:
    rows = table(strict, VALUE, "if(id = 2, null, 'strict') as topic")

    assert "a row has no topic: fill the column 'topic', or set the option topic" in refusal(strict, rows)


def test_a_topic_that_is_not_there_is_named(strict: Queries) -> None:
    said = refusal(strict, table(strict), topic="nowhere")

    assert "there is no topic 'nowhere': create it (headrace topic create nowhere), or correct" in said


def test_records_larger_than_the_topic_allows_are_refused(strict: Queries) -> None:
    large = refusal(strict, table(strict, "repeat('x', 9000) as value"), topic="strict", kafka_batch_size=1)
    many = refusal(strict, table(strict, "repeat('x', 4000) as value"), topic="strict")

    assert "strict-0: " in large
    assert "a record is larger than the topic's max.message.bytes allows; raise that, or set" in large
    assert "larger than the topic's max.message.bytes allows; raise that, or set kafka.batch.size" in many


def test_a_topic_is_not_overwritten(strict: Queries) -> None:
    writer = table(strict).write.format(OURS).options(**strict.options({"topic": "strict"}))

    with pytest.raises(
        PySparkException, match="option 'mode': records are only appended to a topic: use mode"
    ):
        writer.mode("overwrite").save()


def test_brokers_that_are_not_there_are_named(strict: Queries) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{held.getsockname()[1]}"
        said = refusal(strict, table(strict), topic="strict", kafka_bootstrap_servers=nobody)
    assert f"no broker answers at {nobody}" in said


def test_a_stream_of_complete_results_is_refused(queries: Queries) -> None:
    target = new_topic(queries)
    options = queries.options({"subscribe": "shapes", "startingOffsets": "earliest"})
    counts = queries.spark.readStream.format(OURS).options(**options).load().groupBy("value").count()
    query = (
        counts.select("value")
        .writeStream.format(OURS)
        .options(**queries.options({"topic": target}))
        .option("checkpointLocation", str(queries.checkpoint(OURS, target)))
        .outputMode("complete")
        .start()
    )

    with pytest.raises(
        PySparkException, match="option 'outputMode': complete would write all results with every batch"
    ):
        query.awaitTermination(STREAM_TIMEOUT_S)
