"""A leader that is asked to step down agrees when the next leader has all of its records, or not at all."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.broker.errors import NotLeader
from headrace.broker.replicas.partition import Partition
from headrace.broker.replicas.stepping_down import step_down
from headrace.coordination.znodes import PartitionState
from headrace.protocol.between_brokers.step_down import StepDownPartition
from headrace.protocol.ids import TopicPartition
from headrace.storage.config import LogConfig
from support.logs import open_test_log
from support.records import make_batch

HERE, THERE = 1, 2
ID = TopicPartition("t", 0)
STATE = PartitionState(
    topic="t", partition=0, leader=HERE, leader_epoch=3, isr=[HERE, THERE], controller_epoch=5, version=7
)
WANTED = [StepDownPartition(topic_name="t", partition_index=0, partition_epoch=7, next_leader=THERE)]


@pytest.fixture
def leader(tmp_path: Path) -> Partition:
    partition = Partition(ID, b"t".ljust(16), open_test_log(tmp_path / "t-0", LogConfig()), HERE)
    partition.become(STATE, [HERE, THERE], 0)
    return partition


def write(partition: Partition) -> None:
    partition.append(make_batch([b"value"]), acks_all=False)


def fetch(partition: Partition, offset: int) -> None:
    partition.follower_fetches(THERE, offset, broker_epoch=1, now_ms=0)


def ask(partition: Partition, *, timeout_s: float = 0.05, epoch: int = 5) -> list[Partition]:
    return asyncio.run(step_down({ID: partition}, WANTED, controller_epoch=epoch, timeout_s=timeout_s))


def test_a_leader_whose_successor_has_everything_agrees_and_takes_no_more_writes(leader: Partition) -> None:
    write(leader)
    fetch(leader, 1)

    assert ask(leader) == [leader]
    with pytest.raises(NotLeader):
        write(leader)


def test_a_leader_whose_successor_lags_goes_on(leader: Partition) -> None:
    write(leader)
    fetch(leader, 0)

    assert ask(leader) == []
    write(leader)


def test_a_leader_waits_for_its_successor(leader: Partition) -> None:
    write(leader)

    async def story() -> list[Partition]:
        asked = asyncio.ensure_future(step_down({ID: leader}, WANTED, controller_epoch=5, timeout_s=30))
        await asyncio.sleep(0.01)
        with pytest.raises(NotLeader):
            write(leader)
        fetch(leader, 1)
        return await asked

    assert asyncio.run(story()) == [leader]


def test_a_controller_that_is_gone_before_the_answer_leaves_the_leader_as_it_was(leader: Partition) -> None:
    write(leader)

    async def story() -> None:
        asked = asyncio.ensure_future(step_down({ID: leader}, WANTED, controller_epoch=5, timeout_s=30))
        await asyncio.sleep(0.01)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(story())
    write(leader)


@pytest.mark.parametrize(
    "later",
    [
        replace(STATE, version=8),
        replace(STATE, controller_epoch=6),
        replace(STATE, version=8, leader_epoch=4),
    ],
    ids=["a later write", "a later controller", "a later epoch"],
)
def test_a_state_that_was_decided_later_has_it_take_writes_again(
    leader: Partition, later: PartitionState
) -> None:
    fetch(leader, 0)
    assert ask(leader) == [leader]

    leader.become(later, [HERE, THERE], 0)

    write(leader)


def test_the_state_that_it_was_asked_in_does_not(leader: Partition) -> None:
    fetch(leader, 0)
    assert ask(leader) == [leader]

    leader.become(STATE, [HERE, THERE], 0)

    with pytest.raises(NotLeader):
        write(leader)


def test_a_request_of_the_past_changes_nothing(leader: Partition) -> None:
    later = PartitionState(
        topic="t", partition=0, leader=HERE, leader_epoch=3, isr=[HERE], controller_epoch=5, version=8
    )
    leader.become(later, [HERE, THERE], 0)

    assert ask(leader) == []
    write(leader)


def test_an_earlier_request_that_times_out_does_not_take_back_a_later_promise(leader: Partition) -> None:
    write(leader)

    async def story() -> None:
        earlier = asyncio.ensure_future(step_down({ID: leader}, WANTED, controller_epoch=5, timeout_s=0.05))
        await asyncio.sleep(0.01)
        promise = leader.step_down(controller_epoch=6, partition_epoch=7)
        assert promise is not None
        assert await earlier == []

    asyncio.run(story())
    with pytest.raises(NotLeader):
        write(leader)
