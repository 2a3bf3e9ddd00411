"""What housekeeping does by the settings, and says of a log that it cannot see to."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.replicas.housekeeping import Housekeeping, logged
from headrace.broker.replicas.partition import Partition
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.ids import TopicPartition
from headrace.storage.checkpoints import read_offsets
from headrace.storage.config import LogConfig
from headrace.storage.directory import HIGH_WATERMARKS, LogDirectory
from headrace.storage.identity import Identity

ID, TOPIC_ID = TopicPartition("orders", 0), bytes(16)


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogDirectory]:
    identity = Identity(1, "our-cluster")
    logs = LogDirectory.open(tmp_path, identity, config_of=lambda _topic: LogConfig(), now_ms=lambda: 0)
    yield logs
    logs.release()


def made(logs: LogDirectory) -> Partition:
    return Partition(ID, TOPIC_ID, logs.create(ID, TOPIC_ID, LogConfig()), broker_id=1)


def test_a_log_that_is_dropped_while_it_is_seen_to_is_no_error(
    logs: LogDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    partition = made(logs)
    partitions = {ID: partition}

    with logged("flush", partition, partitions):
        del partitions[ID]
        logs.delete(ID)
        partition.log.flush()

    assert caplog.messages == []


def test_nor_is_one_that_is_dropped_and_made_anew(
    logs: LogDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    former = made(logs)
    logs.delete(ID)

    with logged("flush", former, {ID: made(logs)}):
        former.log.flush()

    assert caplog.messages == []


def test_a_log_that_fails_in_its_place_is_one(logs: LogDirectory, caplog: pytest.LogCaptureFixture) -> None:
    partition = made(logs)

    with logged("flush", partition, {ID: partition}):
        partition.log.offline = "its disk is gone"
        partition.log.flush()

    assert caplog.messages == ["flush of orders-0 failed: its disk is gone"]


class CountedPartitions(dict[TopicPartition, Partition]):
    """No partitions; counts how often they are looked through."""

    looks = 0

    def values(self) -> Any:
        self.looks += 1
        return super().values()


@pytest.mark.parametrize(("threads", "looks"), [("0", 0), ("1", 1), ("4", 1)])
def test_the_cleaner_rests_while_it_has_no_threads(logs: LogDirectory, threads: str, looks: int) -> None:
    config, partitions = BrokerConfig.of({"log.cleaner.threads": threads}), CountedPartitions()
    housekeeping = Housekeeping(
        config=lambda: config, partitions=partitions, moved=set(), logs=lambda: logs, jobs=lambda: ()
    )

    asyncio.run(housekeeping.compact())

    assert partitions.looks == looks


def test_a_checkpoint_has_the_high_watermarks_that_have_moved(logs: LogDirectory, tmp_path: Path) -> None:
    moved: set[Partition] = set()
    log = logs.create(ID, TOPIC_ID, LogConfig())
    partition = Partition(ID, TOPIC_ID, log, broker_id=1, moved=moved)
    partitions = {ID: partition}
    housekeeping = Housekeeping(
        config=lambda: BrokerConfig.of({}), partitions=partitions, moved=moved, logs=lambda: logs, jobs=tuple
    )

    asyncio.run(housekeeping._checkpoint())
    assert (moved, dict(logs.high_watermarks)) == (set(), {})  # the log has no files

    partition.start_over_at(5)
    asyncio.run(housekeeping._checkpoint())
    assert moved == set()
    assert read_offsets(tmp_path / HIGH_WATERMARKS) == {ID: 5}

    partition.start_over_at(7)
    del partitions[ID]
    logs.delete(ID)
    asyncio.run(housekeeping._checkpoint())
    assert read_offsets(tmp_path / HIGH_WATERMARKS) == {}
