"""A batch read during which the leader of its partition dies, or hands over: every row arrives, once."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from cluster.waiting import PATIENCE_S, until
from headrace.client.cluster.cluster import Cluster
from headrace.client.cluster.moves import Move
from spark.queries import OURS, Queries
from spark.readers import batch_reader, offsets_of
from support.process import ClusterProcess
from wire.confluent import send, sent_offsets, settings

pytestmark = pytest.mark.extended

TOPIC: Final = "led"
ROWS: Final = 200_000  # four times what a reader hands over at once


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    """Three brokers, and a topic on all of them."""
    with ClusterProcess(tmp_path_factory.mktemp("cluster")) as process:
        admin = AdminClient(settings(process.bootstrap))
        topic = NewTopic(TOPIC, 1, replica_assignment=[[2, 3, 1]])
        admin.create_topics([topic])[TOPIC].result(timeout=30)
        messages = [{"value": b"%d" % n, "partition": 0} for n in range(ROWS)]
        sent_offsets(send(process.bootstrap, TOPIC, messages, linger_ms=50))
        yield process


def partition(bootstrap: str) -> Any:
    return AdminClient(settings(bootstrap)).list_topics(TOPIC, timeout=20).topics[TOPIC].partitions[0]


def read_with_a_pause(table: DataFrame, root: Path, meanwhile: Callable[[], None]) -> list[int]:
    """The values; after the first piece of them the reader waits until `meanwhile` is over."""
    begun, done = root / "begun", root / "done"

    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            begun.touch()
            deadline = time.monotonic() + PATIENCE_S
            while not done.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            yield batch

    rows = table.select(table.value).mapInArrow(slowly, "value binary")
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: [int(row[0]) for row in rows.toLocalIterator()])
        try:
            until("the read has begun", begun.exists)
            meanwhile()
        finally:
            done.touch()
        return reading.result(PATIENCE_S)


def table_of(spark: SparkSession, cluster: ClusterProcess, root: Path) -> DataFrame:
    queries = Queries(spark, cluster.bootstrap, root)
    small_pieces: dict[str, Any] = {"kafka.max.partition.fetch.bytes": 100_000}
    return queries.table(OURS, subscribe=TOPIC, **small_pieces)


def test_a_leader_killed_in_the_middle_of_a_read_costs_no_row(
    spark: SparkSession, cluster: ClusterProcess, tmp_path: Path
) -> None:
    def kill_the_leader() -> None:
        leader = partition(cluster.bootstrap).leader
        os.kill(cluster.members[f"broker-{leader}"], signal.SIGKILL)
        until("another one leads", lambda: partition(cluster.bootstrap).leader not in {leader, -1})

    found = read_with_a_pause(table_of(spark, cluster, tmp_path), tmp_path, kill_the_leader)
    assert found == list(range(ROWS))


@pytest.mark.long  # the test above has a leader that is gone, which costs more
def test_a_leader_moved_in_the_middle_of_a_read_costs_no_row(
    spark: SparkSession, cluster: ClusterProcess, tmp_path: Path
) -> None:
    def move_the_leader() -> None:
        """To another one of the three, wherever it is now."""
        until("all are in sync", lambda: len(partition(cluster.bootstrap).isrs) == 3)
        before = partition(cluster.bootstrap)
        others = [each for each in before.replicas if each != before.leader]
        with Cluster(cluster.bootstrap) as client:
            client.reassign([Move(topic=TOPIC, partition=0, replicas=(*others, before.leader))])
            until("the others are preferred", lambda: not client.reassignments())
        admin = AdminClient(settings(cluster.bootstrap))
        admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(TOPIC, 0)]).result(timeout=30)
        until("another one leads", lambda: partition(cluster.bootstrap).leader == others[0])

    found = read_with_a_pause(table_of(spark, cluster, tmp_path), tmp_path, move_the_leader)
    assert found == list(range(ROWS))


def test_leaders_that_move_after_a_batch_is_planned_cost_no_row(cluster: ClusterProcess) -> None:
    """The plan names the leaders, and a task with several partitions asks one of them for all."""
    topic = "planned"
    admin = AdminClient(settings(cluster.bootstrap))
    replicas = [[1 + n % 3, 1 + (n + 1) % 3, 1 + (n + 2) % 3] for n in range(6)]
    admin.create_topics([NewTopic(topic, 6, replica_assignment=replicas)])[topic].result(timeout=30)
    messages = [{"value": b"%d" % n, "partition": n % 6} for n in range(60)]
    sent_offsets(send(cluster.bootstrap, topic, messages))
    reader = batch_reader(cluster.bootstrap, subscribe=topic)
    tasks = reader.partitions()
    assert len(tasks) == 3
    read_before = offsets_of(reader, tasks)
    until("all are in sync", lambda: all(len(each.isrs) == 3 for each in described(admin, topic).values()))
    os.kill(cluster.members["broker-3"], signal.SIGKILL)
    until("the others lead", lambda: all(each.leader in {1, 2} for each in described(admin, topic).values()))

    assert sorted(read_before) == sorted(offsets_of(reader, tasks)) == sorted([*range(10)] * 6)


def described(admin: AdminClient, topic: str) -> Any:
    return admin.list_topics(topic, timeout=20).topics[topic].partitions
