"""Markers go to the leaders of their partitions until all of them are written, whatever fails meanwhile."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.coordinators import transaction_markers
from headrace.broker.coordinators.transaction_markers import MAX_MARKERS, TransactionMarkers
from headrace.coordinators.errors import CoordinatorNotAvailable
from headrace.coordinators.transaction.state import Transaction, TransactionState
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_markers, "_RETRY_S", 0.001)


class Shard:
    """A coordinator that may move, or lack replicas for a while."""

    def __init__(self) -> None:
        self.is_current = True
        self.leader_epoch = 7
        self.completed: list[str] = []
        self.refusals = 0

    def write(self, decide: Callable[[Any, int], Any]) -> None:
        if self.refusals:
            self.refusals -= 1
            raise CoordinatorNotAvailable("too few replicas")
        machine = SimpleNamespace(complete=lambda transaction, _now_ms: transaction.transactional_id)
        self.completed.append(decide(machine, 0))


class Brokers:
    """Answers as leaders would; `codes` are the next answers about partitions."""

    def __init__(self) -> None:
        self.leaders = {A: 1, B: 2, C: 2}
        self.codes: dict[TopicPartition, list[ErrorCode]] = {}
        self.unreachable: dict[int, int] = {}  # brokers, and for how many requests
        self.asked: list[tuple[int, TopicPartition, bool]] = []

    @property
    def image(self) -> Any:
        topics: dict[str, Any] = {}
        for (topic, partition), leader in self.leaders.items():
            found = topics.setdefault(topic, SimpleNamespace(replicas={}, states={}))
            found.replicas[partition] = [1, 2]
            found.states[partition] = SimpleNamespace(leader=leader)
        return SimpleNamespace(topics=topics, brokers={1: None, 2: None})

    async def ask(
        self, broker_id: int, request: Any, versions: range, *, timeout_s: float
    ) -> WriteTxnMarkersResponse:
        assert isinstance(request, WriteTxnMarkersRequest)
        assert (versions, timeout_s > 0) == (range(2, 3), True)
        await asyncio.sleep(0)
        if self.unreachable.get(broker_id):
            self.unreachable[broker_id] -= 1
            raise PeerGone("refused")
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                self._answer(broker_id, TopicPartition(topic.name, index), marker)
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )

    def _answer(
        self, broker_id: int, partition: TopicPartition, marker: Any
    ) -> WritableTxnMarkerPartitionResult:
        assert (marker.coordinator_epoch, marker.transaction_version) == (7, 2)
        self.asked.append((broker_id, partition, marker.transaction_result))
        code = self.codes.get(partition, [])
        return WritableTxnMarkerPartitionResult(
            partition_index=partition.partition, error_code=code.pop(0) if code else ErrorCode.NONE
        )


class Stage:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.brokers = Brokers()
        self.shard = Shard()
        image: Any = SimpleNamespace(topics={}, brokers={})
        self.markers = TransactionMarkers(image, self.brokers.ask, lambda: loop)

    def write(self, *partitions: TopicPartition, commit: bool = True, name: str = "t", id_: int = 9) -> None:
        self.markers._image = self.brokers.image
        state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
        transaction = Transaction(
            transactional_id=name,
            producer_id=id_,
            producer_epoch=3,
            timeout_ms=1000,
            state=state,
            partitions=frozenset(partitions),
            client_version=2,
        )
        shard: Any = self.shard
        self.markers.write(shard, transaction)

    def run_until(self, condition: Callable[[], bool]) -> None:
        async def wait() -> None:
            async with asyncio.timeout(10):
                while not condition():  # noqa: ASYNC110  there is nothing to wait for but turns of the loop
                    await asyncio.sleep(0)

        self.loop.run_until_complete(wait())

    def turns(self, count: int = 50) -> None:
        async def wait() -> None:
            for _ in range(count):
                await asyncio.sleep(0)

        self.loop.run_until_complete(wait())


@pytest.fixture
def stage() -> Iterator[Stage]:
    loop = asyncio.new_event_loop()
    yield Stage(loop)
    loop.close()


@pytest.mark.parametrize("commit", [True, False])
def test_each_leader_gets_the_markers_of_its_partitions(stage: Stage, commit: bool) -> None:
    stage.write(A, B, C, commit=commit)
    stage.run_until(lambda: stage.shard.completed == ["t"])

    assert sorted(stage.brokers.asked) == [(1, A, commit), (2, B, commit), (2, C, commit)]
    assert stage.markers.queued == 0


def test_a_transaction_without_partitions_is_complete_at_once(stage: Stage) -> None:
    stage.write()

    assert stage.shard.completed == ["t"]


def test_a_marker_is_sent_again_to_whoever_leads_then(stage: Stage) -> None:
    stage.brokers.codes = {A: [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS]}
    ask = stage.brokers.ask

    async def ask_and_move(broker_id: int, request: Any, versions: range, *, timeout_s: float) -> Any:
        response = await ask(broker_id, request, versions, timeout_s=timeout_s)
        stage.brokers.leaders[A] = 2  # before the coordinator sees that the marker was refused
        stage.markers._image = stage.brokers.image
        return response

    stage.markers.ask = ask_and_move
    stage.write(A, B)
    stage.run_until(lambda: stage.shard.completed == ["t"])

    assert [broker for broker, partition, _ in stage.brokers.asked if partition == A] == [1, 2, 2]
    assert [broker for broker, partition, _ in stage.brokers.asked if partition == B] == [2]


def test_a_broker_that_cannot_be_reached_is_asked_again(stage: Stage) -> None:
    stage.brokers.unreachable = {1: 3}
    stage.write(A)
    stage.run_until(lambda: stage.shard.completed == ["t"])

    assert stage.brokers.unreachable == {1: 0}


def test_a_partition_without_a_leader_is_waited_for_and_a_deleted_one_is_not(stage: Stage) -> None:
    stage.brokers.leaders = {A: -1}
    stage.write(A, C)
    stage.turns()
    assert stage.brokers.asked == []
    stage.brokers.leaders = {A: 2}
    stage.markers._image = stage.brokers.image
    stage.run_until(lambda: stage.shard.completed == ["t"])

    assert stage.brokers.asked == [(2, A, True)]


def test_a_later_epoch_on_the_partition_proves_that_the_transaction_has_ended(stage: Stage) -> None:
    stage.brokers.codes = {A: [ErrorCode.INVALID_PRODUCER_EPOCH]}
    stage.write(A)
    stage.run_until(lambda: stage.shard.completed == ["t"])

    assert len(stage.brokers.asked) == 1


def test_completion_is_retried_until_the_log_takes_it(stage: Stage) -> None:
    stage.shard.refusals = 2
    stage.write(A)
    stage.run_until(lambda: stage.shard.completed == ["t"])

    assert len(stage.brokers.asked) == 1


def test_a_coordinator_that_has_moved_leaves_the_rest_to_the_next(stage: Stage) -> None:
    stage.brokers.codes = {A: [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 1000}
    stage.write(A)
    stage.run_until(lambda: len(stage.brokers.asked) > 2)
    stage.shard.is_current = False
    stage.turns()
    asked = len(stage.brokers.asked)
    stage.turns(500)

    assert len(stage.brokers.asked) <= asked + 1
    assert stage.shard.completed == []


def test_markers_that_are_queued_while_the_last_request_ends_are_sent(stage: Stage) -> None:
    stage.write(A)
    stage.run_until(lambda: stage.shard.completed == ["t"])
    for number in range(20):  # at every turn of the loop in which the sender may be ending
        stage.write(A, name=f"first{number}", id_=100 + number)
        stage.turns(number)
        stage.write(A, name=f"second{number}", id_=200 + number)
        stage.turns(60)

        assert stage.shard.completed[-2:] == [f"first{number}", f"second{number}"]


def test_markers_of_many_transactions_share_requests_of_a_bounded_size(stage: Stage) -> None:
    sizes = []
    ask = stage.brokers.ask

    async def counted(broker_id: int, request: Any, versions: range, *, timeout_s: float) -> Any:
        sizes.append(
            sum(len(topic.partition_indexes) for marker in request.markers for topic in marker.topics)
        )
        return await ask(broker_id, request, versions, timeout_s=timeout_s)

    stage.markers.ask = counted
    for number in range(1200):
        stage.write(A, name=f"t{number}", id_=number)
    stage.run_until(lambda: len(stage.shard.completed) == 1200)

    assert sizes == [100] * 12


def test_transactions_whose_markers_are_written_together_are_completed_a_few_at_a_time(stage: Stage) -> None:
    """Each completion writes a record: the event loop serves others in between."""
    seen: list[int] = []
    for number in range(MAX_MARKERS):
        stage.write(A, name=f"t{number}", id_=number)

    def all_completed() -> bool:
        seen.append(len(stage.shard.completed))
        return seen[-1] == MAX_MARKERS

    stage.run_until(all_completed)
    steps = [after - before for before, after in pairwise(seen)]
    assert max(steps) <= transaction_markers._COMPLETED_TOGETHER
