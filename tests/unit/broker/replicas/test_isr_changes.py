"""Proposals of another ISR: what is sent to the controller, and what its answers change."""

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.replicas.isr_changes import VERSIONS, IsrChanges
from headrace.broker.replicas.partition import Partition, monotonic_ms
from headrace.broker.slices import at_once
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from unit.broker.replica_samples import (
    ELSEWHERE,
    HERE,
    ID,
    LED,
    REPLICAS,
    THERE,
    TOPIC_ID,
    change,
    fetch,
    make_partition,
    write,
)

MAX_LAG_MS = 10_000
BROKER_EPOCH = 41


class FakeController:
    """Records proposals, and answers each with the next of `answers`, which may be an exception."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.proposals: list[AlterPartitionRequest] = []
        self.answers: list[ErrorCode | Exception] = []
        self.then: Callable[[], object] = lambda: None

    async def ask(self, request: Message, versions: range, *, timeout_s: float) -> Any:
        assert (versions, timeout_s > 0) == (VERSIONS, True)
        assert isinstance(request, AlterPartitionRequest)
        self.proposals.append(request)
        answer = self.answers.pop(0)
        self.then()
        if isinstance(answer, Exception):
            raise answer
        data = AlterPartitionResponsePartitionData(
            partition_index=0,
            error_code=answer,
            leader_id=HERE,
            leader_epoch=3,
            isr=[HERE],
            partition_epoch=8,
        )
        topic = AlterPartitionResponseTopicData(topic_id=TOPIC_ID, partitions=[data])
        return AlterPartitionResponse(error_code=0, topics=[topic])


@pytest.fixture
def leader(tmp_path: Path) -> Partition:
    """A leader whose followers have both fetched everything just now."""
    partition = make_partition(tmp_path)
    for each in (THERE, ELSEWHERE):
        fetch(partition, each, 0, now_ms=monotonic_ms())
    return partition


@pytest.fixture
def controller(leader: Partition) -> FakeController:
    return FakeController(leader)


def propose(controller: FakeController, live: Collection[int] = REPLICAS) -> None:
    """Look at every partition once, and return when no proposal is pending any more."""

    async def look() -> None:
        changes = IsrChanges(
            HERE,
            {ID: controller.partition},
            broker_epoch=lambda: BROKER_EPOCH,
            max_lag_ms=lambda: MAX_LAG_MS,
            live_brokers=lambda: live,
            ask_controller=controller.ask,
        )
        at_once(changes.look_at_all())
        if changes._task is not None:
            await changes._task

    asyncio.run(look())


def lag(partition: Partition, broker_id: int) -> None:
    """Have a follower lack a record for longer than replica.lag.time.max.ms, and no other one."""
    assert partition.leadership is not None
    write(partition)
    for each in partition.leadership.followers.keys() - {broker_id}:
        fetch(partition, each, 1, now_ms=monotonic_ms())
    partition.leadership.followers[broker_id].caught_up_ms -= 2 * MAX_LAG_MS


def isr_of(request: AlterPartitionRequest) -> dict[int, int]:
    (topic,) = request.topics
    (partition,) = topic.partitions
    return {each.broker_id: each.broker_epoch for each in partition.new_isr_with_epochs or ()}


def test_an_isr_whose_members_keep_up_is_not_changed(controller: FakeController) -> None:
    propose(controller)

    assert controller.proposals == []


def test_a_follower_that_lags_is_proposed_to_leave_with_the_epochs_of_the_others(
    controller: FakeController, leader: Partition
) -> None:
    lag(leader, ELSEWHERE)
    controller.answers = [ErrorCode.NONE]
    controller.then = lambda: change(leader, LED, isr=(HERE, THERE))

    propose(controller)

    (request,) = controller.proposals
    assert isr_of(request) == {HERE: BROKER_EPOCH, THERE: 42}
    assert (request.broker_id, request.broker_epoch) == (HERE, BROKER_EPOCH)
    assert request.topics[0].partitions[0].leader_epoch == LED.leader_epoch
    assert request.topics[0].partitions[0].partition_epoch == LED.version


def test_a_follower_that_has_caught_up_is_proposed_to_join(
    controller: FakeController, leader: Partition
) -> None:
    change(leader, LED, isr=(HERE, THERE))
    fetch(leader, ELSEWHERE, 0, now_ms=monotonic_ms())
    controller.answers = [ErrorCode.INELIGIBLE_REPLICA]

    propose(controller)

    assert set(isr_of(controller.proposals[0])) == {HERE, THERE, ELSEWHERE}


def test_a_follower_whose_broker_is_not_registered_does_not_join(
    controller: FakeController, leader: Partition
) -> None:
    change(leader, LED, isr=(HERE, THERE))
    fetch(leader, ELSEWHERE, 0, now_ms=monotonic_ms())

    propose(controller, live=(HERE, THERE))

    assert controller.proposals == []


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST])
def test_a_proposal_that_is_refused_for_good_is_withdrawn(
    controller: FakeController, leader: Partition, code: ErrorCode
) -> None:
    lag(leader, ELSEWHERE)
    controller.answers = [code]

    propose(controller)

    assert len(controller.proposals) == 1
    assert leader.leadership is not None
    assert leader.leadership.proposed is None


@pytest.mark.parametrize(
    "answer", [PeerGone("no answer"), ErrorCode.INVALID_UPDATE_VERSION, ValueError("a bug")]
)
def test_a_proposal_that_may_have_been_accepted_is_sent_again_unchanged(
    controller: FakeController, leader: Partition, answer: ErrorCode | Exception
) -> None:
    lag(leader, ELSEWHERE)
    controller.answers = [answer, ErrorCode.INELIGIBLE_REPLICA]

    propose(controller)

    first, second = controller.proposals
    assert isr_of(first) == isr_of(second) == {HERE: BROKER_EPOCH, THERE: 42}


def test_a_proposal_ends_when_another_broker_leads(controller: FakeController, leader: Partition) -> None:
    lag(leader, ELSEWHERE)
    controller.answers = [PeerGone("no answer")]
    controller.then = lambda: change(leader, LED, leader=THERE, leader_epoch=4)

    propose(controller)

    assert len(controller.proposals) == 1
