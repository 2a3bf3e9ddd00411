"""Partitions in doubt: when a controller asks silent replicas again, and how long it waits for others."""

import asyncio
import selectors
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from headrace.protocol.ids import LeaderEpoch, Offset, TopicPartition
from headrace.replication.controller.in_doubt_waits import InDoubtWaits
from headrace.replication.controller.model import ClusterModel, Member, Survey, TopicModel
from headrace.replication.election import NO_LEADER, Partition, Progress

KEY = TopicPartition("t", 0)
WAIT_S = 100.0
ANSWERED: Survey = {KEY: {2: Progress(LeaderEpoch(0), Offset(5)), 3: Progress(LeaderEpoch(0), Offset(7))}}
IN_DOUBT = Partition(
    replicas=(1, 2, 3),
    leader=NO_LEADER,
    leader_epoch=LeaderEpoch(5),
    isr=(1, 2, 3),
    in_doubt=(2, 3),
    min_insync_replicas=2,
)


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__(selector := selectors.DefaultSelector())
        self.now, self._select = 0.0, selector.select
        selector.select = self._jump  # type: ignore[method-assign]

    def time(self) -> float:
        return self.now

    def _jump(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return self._select(0)


class Setup:
    """A controller's waits while brokers 2 and 3 are back; every settling asks them, and nothing changes."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.settled_at: list[float] = []
        self.model = ClusterModel(
            members={each: Member(broker_id=each, epoch=100 + each) for each in (2, 3)},
            topics={"t": TopicModel(topic_id=bytes(16), version=0, partitions={0: IN_DOUBT})},
        )
        self.waits = InDoubtWaits(self.model, wait_s=lambda: WAIT_S, settle_soon=self.settle)

    def settle(self, keys: Collection[TopicPartition]) -> None:
        self.settled_at.append(round(asyncio.get_running_loop().time(), 1))
        self.waits.look(keys, self.survey)


def test_silent_replicas_are_asked_again_with_backoff_and_one_that_has_restarted_soon() -> None:
    async def story() -> None:
        setup = Setup({KEY: {2: ANSWERED[KEY][2]}})
        setup.settle([KEY])
        await asyncio.sleep(10)
        assert setup.settled_at == [0.0, 0.2, 0.6, 1.4, 3.0, 6.0, 9.0]

        setup.model.members[3] = Member(broker_id=3, epoch=200)
        setup.settle([KEY])
        await asyncio.sleep(1)
        assert setup.settled_at[7:] == [10.0, 10.2, 10.6]

        setup.survey = ANSWERED
        await asyncio.sleep(50)
        assert setup.settled_at[10:] == [11.4]

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(story())


def test_others_are_waited_for_once() -> None:
    async def story() -> None:
        setup = Setup(ANSWERED)
        for _ in range(3):
            setup.waits.look([KEY], ANSWERED)
        await asyncio.sleep(2 * WAIT_S)
        assert setup.settled_at == [WAIT_S]
        assert setup.model.waited_for == {KEY}

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(story())


def test_a_partition_that_has_a_leader_is_not_settled_again() -> None:
    async def story() -> None:
        setup = Setup(ANSWERED)
        setup.waits.look([KEY], ANSWERED)
        setup.model.apply({KEY: replace(IN_DOUBT, leader=3, isr=(3,), in_doubt=())})
        await asyncio.sleep(2 * WAIT_S)
        assert setup.settled_at == []

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(story())
