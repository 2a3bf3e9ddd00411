"""`spark.readStream` with our connector and with Spark's own: the same rows, over restarts and growth."""

import json
from typing import Any

from confluent_kafka.admin import NewPartitions

from spark.queries import BOTH, OURS, THEIRS, Queries, Stream
from spark.topics import CODECS, FOREVER, PER_CODEC, SIZES, plain, write
from wire.confluent import make_topic
from wire.requests import fresh_name


def values(stream: Stream) -> list[bytes]:
    return [row[1] for row in stream.rows()]


def test_both_read_what_is_there_and_end(queries: Queries) -> None:
    ours, theirs = (each.finish() for each in queries.streams(subscribe="shapes", includeHeaders=True))

    assert len(ours.rows()) == len(CODECS) * PER_CODEC
    assert ours.rows() == theirs.rows()
    assert ours.query.lastProgress is not None


def test_a_starting_query_adds_no_key_to_the_environment_that_queries_share(queries: Queries) -> None:
    """Spark inserts keys without a lock: two that start together may corrupt the map for every task."""
    session: Any = queries.spark._jsparkSession
    environment = (
        session.sessionState().dataSourceManager().lookupDataSource("headrace").dataSourceCls().envVars()
    )
    before = set(environment)
    queries.stream(OURS, subscribe="shapes").finish()

    assert set(environment) == before


def test_both_read_all_of_it_in_batches_of_a_given_size(queries: Queries) -> None:
    limit = 700
    ours, theirs = (each.finish() for each in queries.streams(subscribe="skewed", maxOffsetsPerTrigger=limit))

    assert ours.rows() == theirs.rows()
    assert len(ours.rows()) == sum(SIZES)
    assert sum(SIZES) // limit < len(ours.batches) <= sum(SIZES) // limit + 2
    assert max(map(len, ours.batches.values())) <= limit + len(SIZES)  # one more of each, lest one starves


def test_both_go_on_where_they_stopped(queries: Queries) -> None:
    topic = fresh_name("stopped")
    make_topic(queries.bootstrap, topic, partitions=2, retention_ms=FOREVER)
    write(queries.bootstrap, topic, plain(10), 0)
    first = [each.finish() for each in queries.streams(name="r", subscribe=topic)]
    write(queries.bootstrap, topic, plain(5, first=10), 0)
    write(queries.bootstrap, topic, plain(3), 1)
    second = [each.finish() for each in queries.streams(name="r", subscribe=topic)]

    assert [len(each.rows()) for each in first] == [10, 10]
    assert second[0].rows() == second[1].rows()
    assert values(second[0]) == [b"value %d" % n for n in (10, 11, 12, 13, 14, 0, 1, 2)]


def test_a_query_of_theirs_goes_on_as_one_of_ours(queries: Queries) -> None:
    topic = fresh_name("migrated")
    make_topic(queries.bootstrap, topic, partitions=2, retention_ms=FOREVER)
    write(queries.bootstrap, topic, plain(10), 0)
    queries.stream(THEIRS, name="migrated", subscribe=topic).finish()
    queries.checkpoint(THEIRS, "migrated").rename(queries.checkpoint(OURS, "migrated"))
    write(queries.bootstrap, topic, plain(5, first=10), 0)
    write(queries.bootstrap, topic, plain(2), 1)

    ours = queries.stream(OURS, name="migrated", subscribe=topic).finish()
    assert [(row[3], row[4]) for row in ours.rows()] == [*((0, n) for n in range(10, 15)), (1, 0), (1, 1)]


def test_a_batch_that_was_planned_is_repeated_with_the_same_rows_after_a_restart(queries: Queries) -> None:
    topic = fresh_name("repeated")
    make_topic(queries.bootstrap, topic, retention_ms=FOREVER)
    write(queries.bootstrap, topic, plain(20))
    checkpoint = queries.checkpoint(OURS, "again")
    queries.stream(OURS, name="again", subscribe=topic, maxOffsetsPerTrigger=15).finish()
    for commit in checkpoint.glob("commits/*1*"):  # of batch 1, as if the query had been killed before
        commit.unlink()
    write(queries.bootstrap, topic, plain(20, first=20))
    again = queries.stream(OURS, name="again", subscribe=topic, maxOffsetsPerTrigger=15).finish()

    assert [row[4] for row in again.batches[1]] == [15, 16, 17, 18, 19]
    assert [row[4] for row in again.rows()] == list(range(15, 40))


def test_new_partitions_and_records_are_picked_up_while_both_run(queries: Queries) -> None:
    topic = fresh_name("growing")
    admin = make_topic(queries.bootstrap, topic, retention_ms=FOREVER)
    write(queries.bootstrap, topic, plain(4))
    running = queries.streams(now=False, subscribe=topic, name="growing")
    for each in running:
        each.await_rows(4)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(timeout=20)
    write(queries.bootstrap, topic, plain(3), 2)
    write(queries.bootstrap, topic, plain(2, first=4), 0)

    ours, theirs = (each.await_rows(9) for each in running)
    assert ours == theirs
    assert [(row[3], row[4]) for row in ours] == [*((0, n) for n in range(6)), *((2, n) for n in range(3))]


def test_a_new_partition_is_read_from_its_beginning_after_a_restart(queries: Queries) -> None:
    topic = fresh_name("grown")
    admin = make_topic(queries.bootstrap, topic, retention_ms=FOREVER)
    options: dict[str, Any] = {"name": "grown", "subscribe": topic, "startingOffsets": "latest"}
    write(queries.bootstrap, topic, plain(4))
    for each in queries.streams(**options):
        each.finish()
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(timeout=20)
    write(queries.bootstrap, topic, plain(3), 1)

    ours, theirs = (each.finish() for each in queries.streams(**options))
    assert ours.rows() == theirs.rows()
    assert [(row[3], row[4]) for row in ours.rows()] == [(1, 0), (1, 1), (1, 2)]


def test_a_topic_that_comes_to_match_is_read_from_its_beginning(queries: Queries) -> None:
    prefix = fresh_name("family")
    make_topic(queries.bootstrap, f"{prefix}-a", retention_ms=FOREVER)
    write(queries.bootstrap, f"{prefix}-a", plain(2))
    running = queries.streams(now=False, subscribePattern=f"{prefix}-.*", name="family")
    for each in running:
        each.await_rows(2)
    make_topic(queries.bootstrap, f"{prefix}-b", retention_ms=FOREVER)
    write(queries.bootstrap, f"{prefix}-b", plain(3))

    ours, theirs = (each.await_rows(5) for each in running)
    assert ours == theirs
    assert [row[2][-1] for row in ours] == list("aabbb")


def test_both_begin_where_they_are_told(queries: Queries) -> None:
    start = json.dumps({"skewed": {"0": 1995, "1": -1, "2": -2, "3": 4}})
    ours, theirs = (each.finish() for each in queries.streams(subscribe="skewed", startingOffsets=start))

    assert ours.rows() == theirs.rows()
    assert [(row[3], row[4]) for row in ours.rows()] == [
        *((0, n) for n in range(1995, 2000)),
        (3, 4),
        (3, 5),
        (3, 6),
    ]


def test_a_stream_from_the_latest_offset_reads_only_what_comes_later(queries: Queries) -> None:
    topic = fresh_name("later")
    make_topic(queries.bootstrap, topic, retention_ms=FOREVER)
    write(queries.bootstrap, topic, plain(5))
    options: dict[str, Any] = {"name": "later", "subscribe": topic, "startingOffsets": "latest"}
    for connector in BOTH:
        assert queries.stream(connector, **options).finish().rows() == []
    write(queries.bootstrap, topic, plain(2, first=5))

    ours, theirs = (each.finish() for each in queries.streams(**options))
    assert ours.rows() == theirs.rows()
    assert values(ours) == [b"value 5", b"value 6"]
