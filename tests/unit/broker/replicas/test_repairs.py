"""Damaged segments of a leader and of a follower: what is checked, proposed, copied and served meanwhile."""

import asyncio
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.peers.peer import Peer
from headrace.broker.replicas.partition import Partition
from headrace.broker.replicas.repairs import Repairs
from headrace.broker.replicas.scrub import Scrub
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.batch import HEADER_SIZE
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from headrace.replication.leader import UNUSABLE
from headrace.storage.errors import CorruptLog
from headrace.storage.log import Log
from support.logs import open_test_log, read_all
from support.records import make_batch
from unit.broker.replica_samples import (
    ELSEWHERE,
    FOLLOWED,
    HERE,
    ID,
    LED,
    REPLICAS,
    THERE,
    TOPIC_ID,
    change,
    fetch,
    make_partition,
)

SEGMENT = 4  # records


def fill(log: Log) -> None:
    """Write three closed segments and the beginning of a fourth."""
    for number in range(3 * SEGMENT + 1):
        if number % SEGMENT == 0:
            log.roll()
        log.append(make_batch([b"%d" % number * 9]), leader_epoch=3)


@pytest.fixture
def healthy(tmp_path: Path) -> Iterator[Log]:
    log = open_test_log(tmp_path / "other")
    fill(log)
    yield log
    log.release()


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    partition = make_partition(tmp_path, None)
    fill(partition.log)
    yield partition
    partition.log.release()


def flip_a_bit(log: Log, number: int) -> None:
    """Damage the first batch of a segment."""
    path = log.segments[number].path
    data = bytearray(path.read_bytes())
    data[HEADER_SIZE + 2] ^= 1
    with path.open("r+b") as file:
        file.write(data)


def wanted_isr(partition: Partition) -> AbstractSet[int] | None:
    return partition.wanted_isr(now_ms=0, max_lag_ms=1000, live=REPLICAS)


class OtherReplica:
    """Serves the records of a log to whoever fetches as a consumer; `error` for each request otherwise."""

    def __init__(self, log: Log, error: ErrorCode = ErrorCode.NONE) -> None:
        self._log = log
        self._error = error
        self.offsets: list[int] = []

    async def ask(self, request: FetchRequest, _versions: range, *, timeout_s: float) -> Any:
        assert timeout_s > 0
        assert request.replica_state.replica_id == -2
        (wanted,) = request.topics[0].partitions
        self.offsets.append(wanted.fetch_offset)
        records = b"" if self._error else bytes(self._log.read(wanted.fetch_offset, 100))
        data = PartitionData(
            partition_index=0,
            error_code=self._error,
            high_watermark=self._log.log_end_offset,
            aborted_transactions=None,
            records=records,
        )
        return FetchResponse(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])])

    def close(self) -> None:
        pass


def look(partition: Partition, **others: OtherReplica) -> list[Partition]:
    """Look for damage once and wait for the repairs; return the partitions whose ISR was considered."""
    considered: list[Partition] = []
    by_id = {THERE: others.get("there"), ELSEWHERE: others.get("elsewhere")}

    async def connect_to(broker_id: int) -> Peer:
        return cast("Peer", by_id[broker_id])

    async def run() -> None:
        repairs = Repairs(
            HERE,
            {ID: partition},
            suspected=lambda: {partition.log},
            live_brokers=lambda: REPLICAS,
            connect_to=connect_to,
            consider=considered.append,
        )
        await repairs.look()
        if repairs._repairing is not None:
            await repairs._repairing

    asyncio.run(run())
    return considered


def test_a_leader_with_damage_proposes_an_isr_without_itself_and_only_once(
    partition: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    partition.become(LED, REPLICAS, 0)
    flip_a_bit(partition.log, 1)
    partition.log.suspects.add(SEGMENT)

    assert look(partition) == [partition]

    assert wanted_isr(partition) == {THERE, ELSEWHERE}
    damage, next_step = [each.message for each in caplog.records if each.levelname == "ERROR"]
    assert (
        f"{partition.log.segments[1].path}: the offsets 4 to 7 are damaged: byte 0: batch checksum" in damage
    )
    assert "handed over to one of the brokers [2, 3]" in next_step
    with pytest.raises(CorruptLog):
        partition.log.read(5, 1000)
    assert partition.log.read(SEGMENT * 2, 1000)

    change(partition, LED, leader=THERE, leader_epoch=4, isr=(THERE, ELSEWHERE))
    assert partition.is_repaired_first
    change(partition, replace(LED, version=8), leader=HERE, leader_epoch=5, isr=REPLICAS)

    assert wanted_isr(partition) is None


def test_a_leader_that_is_alone_in_sync_leads_on_and_says_so(
    partition: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    partition.become(replace(LED, isr=(HERE,)), REPLICAS, 0)
    flip_a_bit(partition.log, 1)
    partition.log.suspects.add(SEGMENT)

    look(partition)

    assert wanted_isr(partition) is None
    assert "no other replica is in sync: this broker leads on" in caplog.text
    assert partition.log.read(0, 1000)


def test_a_suspect_without_damage_is_forgotten(partition: Partition) -> None:
    partition.become(LED, REPLICAS, 0)
    partition.log.suspects.update([SEGMENT, 3 * SEGMENT, 17])

    look(partition)

    assert not partition.log.suspects
    assert not partition.log.damaged


def test_a_follower_copies_the_damaged_offsets_and_nothing_else(partition: Partition, healthy: Log) -> None:
    partition.become(replace(FOLLOWED, isr=(THERE, ELSEWHERE)), REPLICAS, 0)
    flip_a_bit(partition.log, 1)
    partition.log.suspects.add(SEGMENT)
    other = OtherReplica(healthy)

    look(partition, there=other)

    assert other.offsets[0] == SEGMENT
    assert all(SEGMENT <= offset < 2 * SEGMENT for offset in other.offsets)
    assert not partition.log.damaged
    assert not partition.is_repaired_first
    assert read_all(partition.log) == read_all(healthy)


def test_if_the_leader_has_the_same_damage_another_replica_is_asked(
    partition: Partition, healthy: Log
) -> None:
    partition.become(FOLLOWED, REPLICAS, 0)
    flip_a_bit(partition.log, 1)
    partition.log.suspects.add(SEGMENT)

    look(
        partition, there=OtherReplica(healthy, ErrorCode.KAFKA_STORAGE_ERROR), elsewhere=OtherReplica(healthy)
    )

    assert read_all(partition.log) == read_all(healthy)


def test_a_follower_that_cannot_be_repaired_follows_all_the_same(partition: Partition, healthy: Log) -> None:
    partition.become(replace(FOLLOWED, isr=(THERE,)), REPLICAS, 0)
    flip_a_bit(partition.log, 1)
    partition.log.suspects.add(SEGMENT)
    path = partition.log.segments[1].path
    before = path.read_bytes()

    look(partition, there=OtherReplica(healthy, ErrorCode.KAFKA_STORAGE_ERROR))

    assert not partition.is_repaired_first
    assert list(partition.log.damaged) == [SEGMENT]
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.repaired"))


def test_records_that_a_follower_fetches_again_and_again_are_suspect(partition: Partition) -> None:
    partition.become(LED, REPLICAS, 0)
    fetch(partition, THERE, SEGMENT)
    for _ in range(UNUSABLE - 1):
        partition.serve_follower(THERE, SEGMENT)
    partition.serve_follower(ELSEWHERE, SEGMENT)
    assert not partition.log.suspects

    partition.serve_follower(THERE, SEGMENT)

    assert partition.log.suspects == {SEGMENT}


@pytest.mark.parametrize(("rate", "suspects"), [("1e9", {SEGMENT}), ("0", set())])
def test_the_scrub_suspects_damaged_closed_segments(
    partition: Partition, rate: str, suspects: set[int]
) -> None:
    flip_a_bit(partition.log, 1)
    config = BrokerConfig.of({"broker.id": "1", "log.scrub.io.max.bytes.per.second": rate})
    partitions: dict[TopicPartition, Partition] = {ID: partition}

    asyncio.run(Scrub(partitions, config=lambda: config).run())

    assert partition.log.suspects == suspects


@pytest.mark.parametrize("replicas", [REPLICAS, (HERE,)])
def test_a_wrong_leader_epoch_is_damage_if_there_is_another_replica(
    partition: Partition, replicas: tuple[int, ...]
) -> None:
    partition.become(LED, replicas, 0)
    path = partition.log.segments[1].path
    data = bytearray(path.read_bytes())
    data[15] ^= 1
    path.write_bytes(data)
    partition.log.suspects.add(SEGMENT)

    look(partition)

    assert bool(partition.log.damaged) == (len(replicas) > 1)
    assert not partition.log.suspects
