"""How far a stream is: as a consumer group that every tool can show, and as lag in Spark's own progress."""

from functools import partial
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from cluster.waiting import until
from spark.queries import OURS, Queries
from spark.topics import FOREVER, plain, write
from wire.confluent import make_topic, settings
from wire.requests import fresh_name

pytestmark = pytest.mark.extended


def committed(bootstrap: str, group: str) -> dict[int, int]:
    """The offsets of a group by partition, as `headrace group describe` and other tools ask for them."""
    admin = AdminClient(settings(bootstrap))
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result(timeout=20).topic_partitions
    return {each.partition: each.offset for each in found}


def _is_at(bootstrap: str, group: str, offsets: dict[int, int]) -> bool:
    return committed(bootstrap, group) == offsets


def test_a_query_that_has_ended_leaves_its_last_offsets_with_its_group(queries: Queries) -> None:
    topic, group = fresh_name("told"), fresh_name("pipeline")
    make_topic(queries.bootstrap, topic, partitions=2, retention_ms=FOREVER)
    write(queries.bootstrap, topic, plain(10), 0)
    write(queries.bootstrap, topic, plain(3), 1)
    options: dict[str, Any] = {"subscribe": topic, "kafka.group.id": group, "maxOffsetsPerTrigger": 8}

    queries.stream(OURS, **options).finish()
    assert committed(queries.bootstrap, group) == {0: 10, 1: 3}


def test_a_query_that_has_nothing_to_do_has_told_its_group_all_it_did(queries: Queries) -> None:
    topic, group = fresh_name("told"), fresh_name("pipeline")
    make_topic(queries.bootstrap, topic, retention_ms=FOREVER)
    options: dict[str, Any] = {"subscribe": topic, "kafka.group.id": group}
    running = queries.stream(OURS, now=False, **options)
    for count in (4, 7):
        write(queries.bootstrap, topic, plain(count - len(running.rows())))
        running.await_rows(count)
        until(f"the group is at {count}", partial(_is_at, queries.bootstrap, group, {0: count}))


def test_a_query_without_a_group_of_its_own_leaves_none_behind(queries: Queries) -> None:
    admin = AdminClient(settings(queries.bootstrap))
    before = {each.group_id for each in admin.list_consumer_groups().result(timeout=20).valid}
    queries.stream(OURS, subscribe="shapes").finish()

    after = {each.group_id for each in admin.list_consumer_groups().result(timeout=20).valid}
    assert after == before


def test_progress_has_the_lag_of_each_partition(queries: Queries) -> None:
    stream = queries.stream(OURS, subscribe="skewed", maxOffsetsPerTrigger=1000).finish()

    first, *_, last = stream.progress()
    assert first["latestOffset"] == {"skewed": {"0": 2000, "1": 30, "2": 0, "3": 7}}
    assert first["endOffset"]["skewed"]["0"] < 1000
    assert last["endOffset"]["skewed"] == last["latestOffset"]["skewed"]
