"""Topics with transactions, on Apache Kafka: committed, aborted, overlapping, and one that nobody ended."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from compat.kafka_tools.server import KafkaServer, client_settings
from spark.queries import BOTH, OURS, Queries

pytestmark = pytest.mark.extended

TIMEOUT_S: Final = 30
COMMITTED: Final = {"kafka.isolation.level": "read_committed"}
TOPIC: Final = "transactions"
OPEN: Final = "open-transaction"


class Writer:
    """A transactional producer to partition 0; values say what should become of them."""

    def __init__(self, bootstrap: str, name: str) -> None:
        settings = {"transactional.id": name, "linger.ms": 20, "batch.num.messages": 3}
        self._producer = Producer(client_settings(bootstrap) | settings)
        self._producer.init_transactions(TIMEOUT_S)

    def write(self, topic: str, what: str, count: int) -> None:
        for n in range(count):
            self._producer.produce(topic, value=f"{what} {n}", partition=0)
        assert self._producer.flush(TIMEOUT_S) == 0

    def begin(self) -> None:
        self._producer.begin_transaction()

    def commit(self) -> None:
        self._producer.commit_transaction(TIMEOUT_S)

    def abort(self) -> None:
        self._producer.abort_transaction(TIMEOUT_S)


@pytest.fixture(scope="module")
def written(kafka: KafkaServer) -> Iterator[str]:
    """Two topics: in one, transactions have ended, in the other one has not."""
    for topic in (TOPIC, OPEN):
        kafka.create_topic(topic)
    first, second = Writer(kafka.bootstrap, "first"), Writer(kafka.bootstrap, "second")
    for end, what in ((first.commit, "kept"), (first.abort, "undone")) * 2:
        first.begin()
        first.write(TOPIC, what, 7)
        end()
    for producer in (first, second):
        producer.begin()
    first.write(TOPIC, "kept", 3)
    second.write(TOPIC, "undone", 4)
    first.write(TOPIC, "kept", 2)
    second.abort()
    second.begin()
    second.write(TOPIC, "kept", 2)
    first.commit()
    second.commit()
    first.begin()
    first.write(OPEN, "kept", 4)
    first.commit()
    first.begin()
    first.write(OPEN, "open", 4)
    yield kafka.bootstrap
    first.abort()


@pytest.fixture
def on_kafka(spark: SparkSession, written: str, tmp_path: Path) -> Queries:
    return Queries(spark, written, tmp_path)


def whats(rows: list[tuple[Any, ...]]) -> list[str]:
    return [row[1].decode().split()[0] for row in rows]


def test_a_reader_of_what_is_committed_sees_no_more(on_kafka: Queries) -> None:
    rows = on_kafka.same(subscribe=TOPIC, **COMMITTED)

    assert whats(rows) == ["kept"] * 21


def test_a_reader_of_everything_sees_what_was_aborted_too_and_no_markers(on_kafka: Queries) -> None:
    rows = on_kafka.same(subscribe=TOPIC)

    assert sorted(whats(rows)) == ["kept"] * 21 + ["undone"] * 18


def test_a_transaction_that_is_open_is_not_waited_for(on_kafka: Queries) -> None:
    assert whats(on_kafka.same(subscribe=OPEN, **COMMITTED)) == ["kept"] * 4
    assert whats(on_kafka.same(subscribe=OPEN)) == ["kept"] * 4 + ["open"] * 4


def test_the_option_may_be_named_without_its_prefix(on_kafka: Queries) -> None:
    rows = on_kafka.rows(OURS, subscribe=OPEN, **{"isolation.level": "read_committed"})

    assert whats(rows) == ["kept"] * 4


@pytest.mark.parametrize("start", [9, 12, 27, 33])
def test_reading_may_begin_in_the_middle_of_a_transaction(on_kafka: Queries, start: int) -> None:
    offsets = json.dumps({TOPIC: {"0": start}})

    rows = on_kafka.same(subscribe=TOPIC, startingOffsets=offsets, **COMMITTED)
    assert set(whats(rows)) == {"kept"}
    assert rows[0][4] >= start


def test_tasks_that_begin_in_the_middle_of_transactions_find_the_same(on_kafka: Queries) -> None:
    rows = on_kafka.rows(OURS, subscribe=TOPIC, minPartitions=20, **COMMITTED)

    assert rows == on_kafka.rows(OURS, subscribe=TOPIC, **COMMITTED)


def test_small_pieces_end_in_the_middle_of_transactions(on_kafka: Queries) -> None:
    rows = on_kafka.rows(OURS, subscribe=TOPIC, **COMMITTED, **{"kafka.max.partition.fetch.bytes": 100})

    assert rows == on_kafka.rows(OURS, subscribe=TOPIC, **COMMITTED)


def test_streams_whose_batches_hold_nothing_but_markers_and_aborted_records_go_on(on_kafka: Queries) -> None:
    options: dict[str, Any] = {"subscribePattern": ".*transaction.*", "maxOffsetsPerTrigger": 6} | COMMITTED
    ours, theirs = (on_kafka.stream(each, **options).finish() for each in BOTH)

    assert ours.rows() == theirs.rows()
    assert whats(ours.rows()) == ["kept"] * 25
