"""Partitions with logs in a directory of the test, for tests of what uses partitions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace.broker.replicas.partition import Partition
from headrace.coordination.znodes import PartitionState
from headrace.protocol.ids import TopicPartition
from headrace.storage.config import LogConfig
from support.logs import open_test_log
from support.records import make_batch

HERE, THERE, ELSEWHERE = 1, 2, 3
REPLICAS = (HERE, THERE, ELSEWHERE)
ID = TopicPartition("t", 0)
TOPIC_ID = b"t".ljust(16)
LED = PartitionState(
    topic="t", partition=0, leader=HERE, leader_epoch=3, isr=REPLICAS, controller_epoch=5, version=7
)
FOLLOWED = replace(LED, leader=THERE)


def make_partition(directory: Path, state: PartitionState | None = LED) -> Partition:
    """Return a replica of broker 1 with an empty log, in the role of `state`."""
    partition = Partition(ID, TOPIC_ID, open_test_log(directory / "t-0", LogConfig()), HERE)
    partition.use_min_insync_replicas(2)
    if state is not None:
        partition.become(state, REPLICAS, 0)
    return partition


def change(partition: Partition, state: PartitionState, **changes: Any) -> bool:
    """Give the partition the state that follows `state`; return whether there is a new leader epoch."""
    return partition.become(replace(state, version=state.version + 1, **changes), REPLICAS, 0)


def write(partition: Partition, *values: bytes) -> None:
    partition.append(make_batch(list(values) or [b"value"]), acks_all=False)


def fetch(partition: Partition, broker_id: int, offset: int, *, now_ms: int = 0) -> None:
    """Have a follower fetch from `offset` on, which says that it has everything before."""
    partition.follower_fetches(broker_id, offset, broker_epoch=40 + broker_id, now_ms=now_ms)
