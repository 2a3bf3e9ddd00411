"""The first batch of a transaction waits for its coordinator, in order, and never for a stale answer."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.coordinators import transaction_verification
from headrace.broker.coordinators.transaction_verification import TransactionVerifier, refusal_of
from headrace.broker.errors import LeadershipInterrupted, RefusedByCoordinator, TimedOut
from headrace.broker.replicas.partition import Partition
from headrace.broker.replicas.pending_verification import Verification
from headrace.coordinators.decision import Producer
from headrace.coordinators.errors import CoordinatorNotAvailable, NotCoordinator
from headrace.coordinators.transaction.errors import ProducerFenced
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from headrace.storage.errors import InvalidProducerEpoch, InvalidTxnState
from support.records import make_batch
from unit.broker.replica_samples import FOLLOWED, LED, REPLICAS, make_partition

PRODUCER = Producer(9, 0)
ABORTABLE = RefusedByCoordinator(ErrorCode.TRANSACTION_ABORTABLE, "not part of the transaction")


def batch(sequence: int = 0, *, epoch: int = 0) -> bytearray:
    return make_batch(1, producer_id=9, producer_epoch=epoch, base_sequence=sequence, transactional=True)


class Coordinator:
    """Answers what it is told to, one request after the other."""

    def __init__(self) -> None:
        self.requests: list[AddPartitionsToTxnRequest] = []
        self.answers: list[ErrorCode | Exception] = []
        self.id: int | KafkaError = 1

    def coordinator_id(self, _transactional_id: str) -> int:
        if isinstance(self.id, KafkaError):
            raise self.id
        return self.id

    async def ask(self, broker_id: int, request: Any, versions: range, *, timeout_s: float) -> Any:
        assert (broker_id, versions, timeout_s > 0) == (1, range(5, 6), True)
        self.requests.append(request)
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if self.answers else ErrorCode.NONE
        if isinstance(answer, Exception):
            raise answer
        (transaction,) = request.transactions
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id,
                    topic_results=[
                        AddPartitionsToTxnTopicResult(
                            name=topic.name,
                            results_by_partition=[
                                AddPartitionsToTxnPartitionResult(
                                    partition_index=index, partition_error_code=answer
                                )
                                for index in topic.partitions
                            ],
                        )
                        for topic in transaction.topics
                    ],
                )
            ]
        )


class Stage:
    def __init__(self, loop: asyncio.AbstractEventLoop, root: Path) -> None:
        self.loop = loop
        self.coordinator = Coordinator()
        self.enabled = True
        self.partition = make_partition(root)
        self.verifier = TransactionVerifier(
            coordinator_id=self.coordinator.coordinator_id,
            ask=self.coordinator.ask,
            loop=lambda: loop,
            is_enabled=lambda: self.enabled,
        )

    def required(self, partition: Partition | None = None, *, adds: bool = True) -> Verification | None:
        return self.verifier.required(partition or self.partition, "t", PRODUCER, adds=adds)

    def mark(self, producer: Producer, *, commit: bool, version: int) -> None:
        async def append() -> None:
            self.partition.append_marker(
                producer, commit=commit, coordinator_epoch=0, transaction_version=version
            )

        self.loop.run_until_complete(append())

    def outcome(self, verification: Verification | None) -> KafkaError | None:
        """Wait for the answer of the coordinator, and return it."""
        assert verification is not None
        return self.loop.run_until_complete(asyncio.wait_for(verification.answer(), 10))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(transaction_verification, "_FIRST_BACKOFF_S", 0.0001)
    loop = asyncio.new_event_loop()
    yield Stage(loop, tmp_path)
    loop.close()


def test_a_batch_is_accepted_with_a_verification_only(stage: Stage) -> None:
    with pytest.raises(InvalidTxnState):
        stage.partition.append(batch(), acks_all=False)
    verification = stage.required()
    assert stage.outcome(verification) is None

    stage.partition.append(batch(), acks_all=False, verification=verification)

    assert stage.required() is verification  # others of the same moment are not overtaken
    assert verification is not None
    for _ in range(2):
        stage.verifier.release(stage.partition, verification)
    assert stage.required() is None  # the log knows the transaction
    stage.partition.append(batch(1), acks_all=False)


def test_one_request_asks_for_all_partitions_of_the_moment(stage: Stage, tmp_path: Path) -> None:
    other = make_partition(tmp_path / "other")
    other.id = TopicPartition("other", 3)
    first, second = stage.required(), stage.required(other)

    assert stage.outcome(first) is None
    assert stage.outcome(second) is None
    (request,) = stage.coordinator.requests
    (transaction,) = request.transactions
    assert (transaction.transactional_id, transaction.verify_only) == ("t", False)
    assert {(topic.name, *topic.partitions) for topic in transaction.topics} == {
        (stage.partition.id.topic, stage.partition.id.partition),
        ("other", 3),
    }


def test_batches_that_wait_are_appended_in_their_order(stage: Stage) -> None:
    """Also those that arrive when the answer is there and the first ones are not appended yet."""
    appended: list[int] = []
    verification = stage.required()
    assert verification is not None

    async def append(number: int) -> None:
        assert await verification.answer() is None
        appended.append(number)

    async def append_all() -> None:
        async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
            for number in range(3):
                joined = stage.required()
                assert joined is verification
                tasks.create_task(append(number))
            await asyncio.sleep(0)
            verification.finish(None)
            await append(3)

    stage.loop.run_until_complete(append_all())

    assert appended == [0, 1, 2, 3]


def test_a_client_that_disconnects_does_not_keep_the_batches_of_others_from_their_answer(
    stage: Stage,
) -> None:
    verification = stage.required()
    assert verification is not None

    async def cancel_one_of_two() -> KafkaError | None:
        gone = stage.loop.create_task(verification.answer())
        other = stage.loop.create_task(verification.answer())
        await asyncio.sleep(0)
        gone.cancel()
        return await asyncio.wait_for(other, 10)

    assert stage.loop.run_until_complete(cancel_one_of_two()) is None


def test_a_marker_invalidates_the_verification_of_the_transaction_that_it_ends(stage: Stage) -> None:
    """The answer of the coordinator and the marker have crossed: the batch is too late."""
    verification = stage.required(adds=False)
    stage.outcome(verification)
    stage.mark(PRODUCER, commit=False, version=0)

    with pytest.raises(InvalidTxnState):
        stage.partition.append(batch(), acks_all=False, verification=verification)


def test_a_marker_of_version_2_leaves_the_verification_of_the_next_transaction(stage: Stage) -> None:
    """The client has the next epoch already when the marker of the last transaction is retried."""
    following = Producer(9, 1)
    verification = stage.verifier.required(stage.partition, "t", following, adds=True)
    stage.outcome(verification)
    stage.mark(following, commit=True, version=2)

    stage.partition.append(batch(epoch=1), acks_all=False, verification=verification)


def test_an_older_epoch_is_fenced_whatever_was_verified(stage: Stage) -> None:
    verification = stage.required()
    stage.outcome(verification)
    stage.mark(Producer(9, 4), commit=False, version=2)

    with pytest.raises(InvalidProducerEpoch):
        stage.partition.append(batch(), acks_all=False, verification=verification)


def interrupt_leadership(partition: Partition) -> None:
    """Let another broker lead for one leader epoch."""
    partition.become(replace(FOLLOWED, leader_epoch=LED.leader_epoch + 1, version=90), REPLICAS, 0)
    partition.become(replace(LED, leader_epoch=LED.leader_epoch + 2, version=91), REPLICAS, 0)


def test_a_batch_that_was_verified_before_another_broker_led_is_retried_and_verified_again(
    stage: Stage,
) -> None:
    verification = stage.required(adds=False)
    stage.outcome(verification)
    interrupt_leadership(stage.partition)

    with pytest.raises(LeadershipInterrupted) as refused:
        stage.partition.append(batch(), acks_all=False, verification=verification)
    assert refused.value.retriable
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    retried = stage.required(adds=False)
    assert retried is not verification
    stage.outcome(retried)
    stage.partition.append(batch(), acks_all=False, verification=retried)
    assert len(stage.coordinator.requests) == 2


def test_a_marker_in_the_same_leader_epoch_is_no_reason_to_retry(stage: Stage) -> None:
    interrupt_leadership(stage.partition)
    verification = stage.required(adds=False)
    stage.outcome(verification)
    stage.mark(PRODUCER, commit=False, version=0)

    with pytest.raises(InvalidTxnState):
        stage.partition.append(batch(), acks_all=False, verification=verification)


def test_the_previous_transaction_is_waited_for(stage: Stage) -> None:
    stage.coordinator.answers = [ErrorCode.CONCURRENT_TRANSACTIONS] * 3

    assert stage.outcome(stage.required()) is None
    assert len(stage.coordinator.requests) == 4


def test_a_verification_without_adding_is_not_retried(stage: Stage) -> None:
    stage.coordinator.answers = [ErrorCode.CONCURRENT_TRANSACTIONS]

    error = stage.outcome(stage.required(adds=False))

    assert error is not None
    assert error.code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert stage.coordinator.requests[0].transactions[0].verify_only


def test_a_coordinator_that_is_gone_is_an_error_that_clients_retry(stage: Stage) -> None:
    stage.coordinator.answers = [PeerGone("refused")]
    gone = stage.required()
    error = stage.outcome(gone)
    assert isinstance(error, CoordinatorNotAvailable)
    assert gone is not None
    stage.verifier.release(stage.partition, gone)
    stage.coordinator.id = NotCoordinator("nobody")
    assert isinstance(stage.outcome(stage.required()), NotCoordinator)


def test_verification_can_be_switched_off_for_old_clients_only(stage: Stage) -> None:
    stage.enabled = False
    verification = stage.required(adds=False)

    assert stage.outcome(verification) is None
    assert stage.coordinator.requests == []
    assert verification is not None
    stage.verifier.release(stage.partition, verification)
    stage.outcome(stage.required(adds=True))
    assert len(stage.coordinator.requests) == 1


def test_the_bytes_of_batches_that_wait_are_bounded(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_verification, "MAX_WAITING_BYTES", 1000)

    def require() -> Verification | None:
        return stage.verifier.required(stage.partition, "t", PRODUCER, adds=True, size=400)

    waiting = [require(), require()]
    with pytest.raises(TimedOut):
        require()
    assert waiting[0] is not None
    stage.verifier.release(stage.partition, waiting[0], 400)
    assert require() is waiting[0]


def test_errors_are_those_that_clients_of_that_age_know() -> None:
    def code(error: KafkaError, *, knows_abortable: bool = True) -> ErrorCode:
        return refusal_of(error, knows_abortable=knows_abortable, retried_as=CoordinatorNotAvailable).code

    assert code(ABORTABLE) == ErrorCode.TRANSACTION_ABORTABLE
    assert code(ABORTABLE, knows_abortable=False) == ErrorCode.INVALID_TXN_STATE
    assert code(ProducerFenced("x")) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert code(NotCoordinator("x")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
