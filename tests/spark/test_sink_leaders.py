"""A large write during which a leader dies: every row is there, once, and in its order."""

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from cluster.waiting import PATIENCE_S, until
from spark.queries import Queries
from spark.written import found, save
from support.process import ClusterProcess
from wire.confluent import settings

pytestmark = pytest.mark.extended

TOPIC: Final = "sunk"
PARTITIONS: Final = 3
PER_TASK: Final = 120_000
TASKS: Final = 2
HALF: Final = PER_TASK // 2


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    """Three brokers, each of which leads a partition."""
    with ClusterProcess(tmp_path_factory.mktemp("cluster")) as process:
        topic = NewTopic(
            TOPIC,
            PARTITIONS,
            replica_assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]],
            config={"min.insync.replicas": "2"},
        )
        admin = AdminClient(settings(process.bootstrap))
        admin.create_topics([topic])[TOPIC].result(timeout=30)
        yield process


def test_a_leader_killed_in_the_middle_of_a_write_costs_no_row_and_doubles_none(
    spark: SparkSession, cluster: ClusterProcess, tmp_path: Path
) -> None:
    queries = Queries(spark, cluster.bootstrap, tmp_path)
    done = tmp_path / "done"

    def with_a_pause(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Half of the rows, and the other half when something has happened."""
        rows = 0
        for batch in batches:
            deadline = time.monotonic() + PATIENCE_S
            while rows >= HALF and not done.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            rows += batch.num_rows
            yield batch

    table = (
        spark.range(TASKS * PER_TASK, numPartitions=TASKS)
        .mapInArrow(with_a_pause, "id bigint")
        .selectExpr("cast(id % 1000 as string) as key", "rpad(cast(id as string), 200, ' ') as value")
    )

    def kill_a_leader() -> None:
        try:
            until("some rows have been written", lambda: found(queries, TOPIC, PARTITIONS))
            os.kill(cluster.members["broker-1"], signal.SIGKILL)
        finally:
            done.touch()

    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(kill_a_leader)
        save(queries, table, topic=TOPIC)  # in this thread, where Spark knows of Python's sources
        killing.result(PATIENCE_S)

    tasks: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in found(queries, TOPIC, PARTITIONS):
        number = int(row.value or b"")
        tasks[row.partition, number // PER_TASK].append(number)
    assert sorted(n for each in tasks.values() for n in each) == list(range(TASKS * PER_TASK))
    for each in tasks.values():
        assert each == sorted(each)
