"""Records that retention, or somebody, has removed before they were read: `failOnDataLoss` true and false."""

import json
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from cluster.waiting import until
from headrace.spark.errors import DataLoss
from headrace.spark.source import StreamReader
from spark.queries import OURS, THEIRS, Queries
from spark.readers import ALL, offsets_of, stream_reader
from spark.topics import FOREVER, plain, write
from wire.confluent import make_topic, settings
from wire.process import BrokerProcess
from wire.requests import fresh_name

pytestmark = pytest.mark.extended


def delete_records(bootstrap: str, topic: str, *, before: int) -> None:
    admin = AdminClient(settings(bootstrap))
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(timeout=20)


def make_lost(bootstrap: str) -> str:
    """A topic whose first 40 records of 60 are gone."""
    topic = fresh_name("lost")
    make_topic(bootstrap, topic, retention_ms=FOREVER)
    write(bootstrap, topic, plain(60))
    delete_records(bootstrap, topic, before=40)
    return topic


def test_a_batch_that_wants_what_is_gone_fails_and_says_what_to_do(queries: Queries) -> None:
    topic = make_lost(queries.bootstrap)
    start = json.dumps({topic: {"0": 10}})

    with pytest.raises(Py4JJavaError, match="Some data may have been lost"):
        queries.rows(THEIRS, subscribe=topic, startingOffsets=start)
    with pytest.raises(PySparkException) as failure:
        queries.rows(OURS, subscribe=topic, startingOffsets=start)
    said = str(failure.value)
    assert f"{topic}-0 offsets 10 to 60 are wanted, and {topic}-0 begins at 40" in said
    assert "failOnDataLoss to false" in said


def test_a_batch_that_may_lose_records_reads_the_rest(queries: Queries) -> None:
    topic = make_lost(queries.bootstrap)
    start = json.dumps({topic: {"0": 10}})

    rows = queries.same(subscribe=topic, startingOffsets=start, failOnDataLoss=False)
    assert [row[4] for row in rows] == list(range(40, 60))


def test_a_batch_of_nothing_but_what_is_gone_is_empty(queries: Queries) -> None:
    topic = make_lost(queries.bootstrap)
    bounds = {
        "startingOffsets": json.dumps({topic: {"0": 10}}),
        "endingOffsets": json.dumps({topic: {"0": 30}}),
    }

    assert queries.rows(OURS, subscribe=topic, failOnDataLoss=False, **bounds) == []


def test_from_the_earliest_offset_nothing_is_lost(queries: Queries) -> None:
    topic = make_lost(queries.bootstrap)

    assert [row[4] for row in queries.same(subscribe=topic)] == list(range(40, 60))


def stopped_before_a_loss(queries: Queries) -> dict[str, Any]:
    """A query that has read 10 records; then 50 came, and the first 40 of all are gone."""
    topic = fresh_name("behind")
    options = {"name": "behind", "subscribe": topic}
    make_topic(queries.bootstrap, topic, retention_ms=FOREVER)
    write(queries.bootstrap, topic, plain(10))
    for each in queries.streams(**options):
        each.finish()
    write(queries.bootstrap, topic, plain(50, first=10))
    delete_records(queries.bootstrap, topic, before=40)
    return options


def test_a_stream_that_comes_too_late_fails_and_says_what_to_do(queries: Queries) -> None:
    options = stopped_before_a_loss(queries)
    topic = options["subscribe"]

    with pytest.raises(PySparkException) as failure:
        queries.stream(OURS, **options).finish()
    assert f"{topic}-0 offsets 10 to 60 are wanted, and {topic}-0 begins at 40 by now" in str(failure.value)
    assert "failOnDataLoss to false" in str(failure.value)


def test_a_stream_that_may_lose_records_goes_on_with_the_rest(queries: Queries) -> None:
    options = stopped_before_a_loss(queries)

    ours, theirs = (each.finish() for each in queries.streams(**options, failOnDataLoss=False))
    assert ours.rows() == theirs.rows()
    assert [row[4] for row in ours.rows()] == list(range(40, 60))


def recreate(bootstrap: str, topic: str, *, records: int) -> None:
    admin = AdminClient(settings(bootstrap))
    admin.delete_topics([topic])[topic].result(timeout=20)
    until("the topic is gone", lambda: topic not in admin.list_topics(timeout=20).topics)
    make_topic(bootstrap, topic, retention_ms=FOREVER)
    write(bootstrap, topic, plain(records))


def test_a_topic_that_was_recreated_is_not_mistaken_for_the_one_that_was_read(queries: Queries) -> None:
    """With more records than were read of the old one: offsets do not tell the two topics apart."""
    topic = fresh_name("again")
    make_topic(queries.bootstrap, topic, retention_ms=FOREVER)
    write(queries.bootstrap, topic, plain(10))
    options: dict[str, Any] = {"name": "again", "subscribe": topic, "fetchOffset.retryIntervalMs": 10}
    queries.stream(OURS, **options).finish()
    recreate(queries.bootstrap, topic, records=12)

    with pytest.raises(PySparkException, match=f"topic {topic} was deleted and recreated: .* id .* id "):
        queries.stream(OURS, **options).finish()
    rest = queries.stream(OURS, **options, failOnDataLoss=False).finish()
    assert [row[4] for row in rest.rows()] == list(range(12))
    write(queries.bootstrap, topic, plain(2))
    assert [row[4] for row in queries.stream(OURS, **options).finish().rows()] == [12, 13]


@pytest.fixture
def read_topic(broker: BrokerProcess) -> tuple[str, dict[str, Any]]:
    """A topic with 10 records, and where a query is that has read them."""
    topic = fresh_name("again")
    make_topic(broker.bootstrap, topic, retention_ms=FOREVER)
    write(broker.bootstrap, topic, plain(10))
    reader = stream_reader(broker.bootstrap, subscribe=topic)
    end = reader.latestOffset(reader.initialOffset(), ALL)
    reader.stop()
    return topic, end


def quick_reader(bootstrap: str, topic: str, **options: str) -> StreamReader:
    """It does not wait long for brokers that lag behind."""
    given = {"fetchOffset.retryIntervalMs": "10"} | options
    return stream_reader(bootstrap, subscribe=topic, **given)


@pytest.mark.parametrize("records", [4, 10, 12])
def test_a_recreated_topic_is_read_from_its_first_record_if_records_may_be_lost(
    broker: BrokerProcess,
    read_topic: tuple[str, dict[str, Any]],
    records: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic, start = read_topic
    recreate(broker.bootstrap, topic, records=records)
    strict = quick_reader(broker.bootstrap, topic)
    with pytest.raises(DataLoss, match=f"topic {topic} was deleted and recreated"):
        strict.latestOffset(start, ALL)
    strict.stop()
    lenient = quick_reader(broker.bootstrap, topic, failOnDataLoss="false")
    lenient.prepareForTriggerAvailableNow()
    end = lenient.latestOffset(start, ALL)

    assert offsets_of(lenient, lenient.partitions(start, end)) == list(range(records))
    assert lenient.latestOffset(end, ALL) == end
    lenient.stop()
    assert "failOnDataLoss is false: the new topic is read from its first record" in caplog.text


def test_a_query_goes_on_from_offsets_without_topic_ids(
    broker: BrokerProcess, read_topic: tuple[str, dict[str, Any]]
) -> None:
    """As in checkpoints of Spark's own connector and of earlier versions: an end before the start tells."""
    topic, _ = read_topic
    start = {topic: {"0": 10}}
    write(broker.bootstrap, topic, plain(2))
    reader = quick_reader(broker.bootstrap, topic)
    assert offsets_of(reader, reader.partitions(start, reader.latestOffset(start, ALL))) == [10, 11]
    recreate(broker.bootstrap, topic, records=4)

    end = reader.latestOffset(start, ALL)
    with pytest.raises(DataLoss, match=f"{topic}-0 was read up to offset 10 and ends at 4 now"):
        reader.partitions(start, end)
    reader.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_is_recreated_after_a_batch_was_planned_is_not_read_in_its_place(
    broker: BrokerProcess, read_topic: tuple[str, dict[str, Any]], fails: bool
) -> None:
    topic, start = read_topic
    write(broker.bootstrap, topic, plain(3))
    planning = quick_reader(broker.bootstrap, topic, failOnDataLoss=str(fails))
    end = planning.latestOffset(start, ALL)
    tasks = planning.partitions(start, end)
    recreate(broker.bootstrap, topic, records=20)
    restarted = quick_reader(broker.bootstrap, topic, failOnDataLoss=str(fails))
    if fails:
        with pytest.raises(DataLoss, match="deleted and recreated"):
            offsets_of(planning, tasks)
        with pytest.raises(DataLoss, match="deleted and recreated"):
            restarted.partitions(start, end)
    else:
        assert offsets_of(planning, tasks) == []
        assert restarted.partitions(start, end) == []
        rest = restarted.latestOffset(end, ALL)
        assert offsets_of(restarted, restarted.partitions(end, rest)) == list(range(20))
    planning.stop()
    restarted.stop()


def test_a_topic_that_is_gone_fails_the_stream_that_has_read_it(queries: Queries) -> None:
    topic, other = fresh_name("gone"), fresh_name("gone")
    admin = make_topic(queries.bootstrap, topic, retention_ms=FOREVER)
    make_topic(queries.bootstrap, other, retention_ms=FOREVER)
    for each in (topic, other):
        write(queries.bootstrap, each, plain(3))
    options: dict[str, Any] = {"name": "gone", "subscribePattern": f"{topic}|{other}"}
    queries.stream(OURS, **options).finish()
    admin.delete_topics([topic])[topic].result(timeout=20)
    until("the topic is gone", lambda: topic not in admin.list_topics(timeout=20).topics)
    write(queries.bootstrap, other, plain(2))

    with pytest.raises(PySparkException, match=f"{topic}-0 is gone: it was read up to offset 3"):
        queries.stream(OURS, **options).finish()
    rest = queries.stream(OURS, **options, failOnDataLoss=False).finish()
    assert [(row[2], row[4]) for row in rest.rows()] == [(other, 3), (other, 4)]
