"""`df.write` with our connector and with Spark's own: the same records, where they belong."""

from collections import Counter
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame

from cluster.waiting import until
from compat.kafka_tools.samples import samples
from spark.queries import BOTH, OURS, Queries
from spark.topics import CODECS
from spark.written import SCHEMA, found, new_topic, numbers, save, values
from wire.requests import fresh_name

PARTITIONS: Final = 5


def shapes(queries: Queries) -> DataFrame:
    """Keys, values and headers, each of which is sometimes null or empty; one task, so that order counts."""
    rows = [(each.key, each.value, list(each.headers) or None) for each in samples(400)]
    return queries.spark.createDataFrame([*rows, (b"", b"", []), (None, None, None)], SCHEMA).coalesce(1)


def count_to(queries: Queries, count: int, tasks: int = 1) -> DataFrame:
    return queries.spark.range(count, numPartitions=tasks).selectExpr("cast(id as string) as value")


def test_both_write_the_same_records_to_the_same_partitions(queries: Queries) -> None:
    table = shapes(queries)
    ours, theirs = (new_topic(queries, each, partitions=PARTITIONS) for each in BOTH)
    save(queries, table, topic=ours)
    save(queries, table, BOTH[1], topic=theirs)

    we, they = (found(queries, each, PARTITIONS) for each in (ours, theirs))
    assert len(we) == len(they) == table.count()
    assert [each for each in we if each.key is not None] == [each for each in they if each.key is not None]
    assert Counter(each[1:] for each in we if each.key is None) == Counter(
        each[1:] for each in they if each.key is None
    )


def test_text_is_written_as_utf_8_by_both(queries: Queries) -> None:
    table = queries.spark.createDataFrame([("schlüssel", "wert"), ("ключ", None)], "key string, value string")
    ours, theirs = (new_topic(queries, each, partitions=PARTITIONS) for each in BOTH)
    save(queries, table, topic=ours)
    save(queries, table, BOTH[1], topic=theirs)

    rows = found(queries, ours, PARTITIONS)
    assert {each.key for each in rows} == {"schlüssel".encode(), "ключ".encode()}
    assert rows == found(queries, theirs, PARTITIONS)


def test_rows_go_to_the_topic_and_partition_of_their_columns(queries: Queries) -> None:
    first, second = (new_topic(queries, partitions=3) for _ in range(2))
    table = queries.spark.range(60).selectExpr(
        f"if(id % 2 = 0, '{first}', '{second}') as topic",
        "cast(id % 3 as int) as partition",
        "cast(id as string) as value",
    )
    save(queries, table)

    for parity, topic in enumerate((first, second)):
        rows = found(queries, topic, 3)
        assert numbers(rows) == [n for n in range(60) if n % 2 == parity]
        assert all(int(each.value or b"") % 3 == each.partition for each in rows)


def test_the_option_topic_counts_more_than_the_column(queries: Queries) -> None:
    topic = new_topic(queries)
    table = queries.spark.range(3).selectExpr("'nowhere' as topic", "cast(id as string) as value")
    save(queries, table, topic=topic)

    assert numbers(found(queries, topic)) == [0, 1, 2]


def test_a_topic_that_is_not_there_is_made_if_brokers_do_so(queries: Queries) -> None:
    topic = fresh_name("made")
    save(queries, count_to(queries, 10, tasks=2), topic=topic)

    assert numbers(found(queries, topic)) == list(range(10))


def test_rows_without_a_key_are_spread(queries: Queries) -> None:
    topic = new_topic(queries, partitions=4)
    save(queries, count_to(queries, 4000), topic=topic)

    rows = found(queries, topic, 4)
    assert numbers(rows) == list(range(4000))
    assert Counter(each.partition for each in rows) == dict.fromkeys(range(4), 1000)


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_can_be_read(queries: Queries, codec: str) -> None:
    topic = new_topic(queries)
    options: dict[str, Any] = {"kafka_compression_type": codec, "kafka_batch_size": 1000}
    save(queries, count_to(queries, 500), topic=topic, **options)

    assert values(found(queries, topic)) == [b"%d" % n for n in range(500)]


@pytest.mark.parametrize("acks", ["0", "1"])
def test_fewer_acknowledgements_write_as_much(queries: Queries, acks: str) -> None:
    topic = new_topic(queries)
    save(queries, count_to(queries, 100), topic=topic, kafka_acks=acks)

    until("all are there", lambda: numbers(found(queries, topic)) == list(range(100)))


@pytest.mark.parametrize("connector", BOTH)
def test_what_is_read_from_a_topic_can_be_written_as_it_is(queries: Queries, connector: str) -> None:
    """Its offsets and timestamps are no part of what is written."""
    topic = new_topic(queries, partitions=len(CODECS))
    table = queries.table(OURS, subscribe="shapes", includeHeaders=True)
    save(queries, table, connector, topic=topic)

    assert found(queries, topic, len(CODECS)) == found(queries, "shapes", len(CODECS))


def test_no_rows_are_no_records(queries: Queries) -> None:
    topic = new_topic(queries)
    save(queries, shapes(queries).limit(0), topic=topic)

    assert found(queries, topic) == []
