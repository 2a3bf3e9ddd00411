"""Asking transaction coordinators whether partitions are part of a transaction (KIP-890).

A transaction that has records on a partition of which its coordinator does not know would never get a marker
there, and would block readers for ever. So a leader accepts the first batch of a transaction only after its
coordinator has confirmed the partition, or has added it, which clients since Kafka 4.0 leave to the leader.

Produce and TxnOffsetCommit use it in this sequence. In Produce, a batch that has to wait has a task of its
own: it is appended even if its client disconnects meanwhile, like a batch that need not wait.

    verification = verifier.required(partition, transactional_id, producer, adds=..., size=...)
    if verification is None:  the transaction has records here: append at once
    try:
        error = await verification.answer()
        if error is not None:  refuse the batch with refusal_of(error, ...)
        partition.append(batch, acks_all=..., verification=verification)
    finally:
        verifier.release(partition, verification, size)
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from headrace.broker.errors import RefusedByCoordinator, TimedOut
from headrace.broker.replicas.partition import Partition
from headrace.broker.replicas.pending_verification import Verification
from headrace.coordinators.decision import Producer
from headrace.coordinators.errors import CoordinatorError, CoordinatorNotAvailable
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema import add_partitions_to_txn as api
from headrace.storage.errors import InvalidTxnState

ADD_PARTITIONS_VERSIONS: Final = range(5, 6)
MAX_WAITING_BYTES: Final = 256 * 1024 * 1024  # of batches that wait
_TIMEOUT_S: Final = 5.0  # for the coordinator's response
_CONCURRENT_S: Final = 1.0  # for the markers of the previous transaction
_FIRST_BACKOFF_S, _MAX_BACKOFF_S = 0.002, 0.05


class AskBroker(Protocol):
    """Sends a request to a broker and returns its response; raises PeerGone."""

    def __call__(
        self, broker_id: int, request: Message, versions: range, *, timeout_s: float
    ) -> Awaitable[Any]: ...


class _Question(NamedTuple):
    """What one request asks: about one transaction, and all partitions of the same moment."""

    transactional_id: str
    producer: Producer
    adds: bool  # partitions that are not in the transaction


class TransactionVerifier:
    """Verifies each producer once per transaction and partition; one request for all partitions at a time."""

    def __init__(
        self,
        *,
        coordinator_id: Callable[[str], int],
        ask: AskBroker,
        loop: Callable[[], asyncio.AbstractEventLoop],
        is_enabled: Callable[[], bool],
    ) -> None:
        """`is_enabled` returns transaction.partition.verification.enable."""
        self._coordinator_id = coordinator_id
        self._ask = ask
        self._loop = loop
        self._is_enabled = is_enabled
        self._collected: dict[_Question, list[tuple[TopicPartition, Verification]]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting_bytes = 0

    def required(
        self, partition: Partition, transactional_id: str, producer: Producer, *, adds: bool, size: int = 0
    ) -> Verification | None:
        """Return what a batch of `size` bytes has to wait for, or None if its transaction has records here.

        Call `release` when the batch is appended or refused. `adds` is whether partitions are added that are
        not part of the transaction yet. Raise TimedOut, which is retriable, if too many bytes wait.
        """
        current = partition.verifications.get(producer.producer_id)
        if self._waiting_bytes + size > MAX_WAITING_BYTES:
            raise TimedOut(
                f"{partition.id}: {self._waiting_bytes} bytes of batches wait for transaction coordinators "
                "(REQUEST_TIMED_OUT)"
            )
        if current is None or current.epoch != producer.epoch:
            if partition.log.producers.is_in_transaction(producer.producer_id, producer.epoch):
                return None
            current = Verification(producer, partition.leader_epoch)
            partition.verifications[producer.producer_id] = current
            if adds or self._is_enabled():
                if not self._collected:
                    self._loop().call_soon(self._send)
                question = _Question(transactional_id, producer, adds)
                self._collected[question].append((partition.id, current))
            else:
                current.finish(None)
        current.holds += 1
        self._waiting_bytes += size
        return current

    def release(self, partition: Partition, verification: Verification, size: int = 0) -> None:
        """Forget the verification after its last batch, so that it cannot be used in a later transaction."""
        self._waiting_bytes -= size
        verification.holds -= 1
        if verification.holds == 0 and partition.verifications.get(verification.producer_id) is verification:
            del partition.verifications[verification.producer_id]

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _send(self) -> None:
        """Ask the questions that were collected in this turn of the event loop."""
        collected, self._collected = self._collected, defaultdict(list)
        for question, asked in collected.items():
            task = self._loop().create_task(self._verify(question, asked))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _verify(self, question: _Question, asked: list[tuple[TopicPartition, Verification]]) -> None:
        """Ask the coordinator, and again while it completes the previous transaction; finish `asked`."""
        topics: dict[str, list[int]] = defaultdict(list)
        for (topic, partition), _ in asked:
            topics[topic].append(partition)
        transaction = api.AddPartitionsToTxnTransaction(
            transactional_id=question.transactional_id,
            producer_id=question.producer.producer_id,
            producer_epoch=question.producer.epoch,
            verify_only=not question.adds,
            topics=[api.AddPartitionsToTxnTopic(name=name, partitions=ids) for name, ids in topics.items()],
        )
        deadline, backoff_s = self._loop().time() + _CONCURRENT_S, _FIRST_BACKOFF_S
        errors: Mapping[TopicPartition, KafkaError] = {}
        failure: KafkaError | None = CoordinatorNotAvailable("the broker is stopping")
        try:
            while True:
                errors = await self._request(transaction)
                concurrent = any(error.code == ErrorCode.CONCURRENT_TRANSACTIONS for error in errors.values())
                if not (concurrent and question.adds) or self._loop().time() > deadline:
                    break
                await asyncio.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)
            failure = None
        except KafkaError as error:
            failure = error
        finally:
            for id_, verification in asked:
                verification.finish(failure or errors.get(id_))

    async def _request(
        self, transaction: api.AddPartitionsToTxnTransaction
    ) -> Mapping[TopicPartition, KafkaError]:
        """Send the transaction to its coordinator, and return the errors of its partitions."""
        coordinator = self._coordinator_id(transaction.transactional_id)
        request = api.AddPartitionsToTxnRequest(transactions=[transaction])
        try:
            response: api.AddPartitionsToTxnResponse = await self._ask(
                coordinator, request, ADD_PARTITIONS_VERSIONS, timeout_s=_TIMEOUT_S
            )
        except PeerGone as error:
            raise CoordinatorNotAvailable(
                f"the transaction coordinator, broker {coordinator}, does not answer: {error} "
                "(COORDINATOR_NOT_AVAILABLE)"
            ) from error
        if response.error_code:
            raise _refused(response.error_code)
        return {
            TopicPartition(topic.name, result.partition_index): _refused(result.partition_error_code)
            for answered in response.results_by_transaction
            for topic in answered.topic_results
            for result in topic.results_by_partition
            if result.partition_error_code
        }


def _refused(code: int) -> CoordinatorError:
    error = ErrorCode(code)
    return RefusedByCoordinator(
        error, f"the transaction coordinator has refused the partition ({error.name})"
    )


def refusal_of(error: KafkaError, *, knows_abortable: bool, retried_as: type[KafkaError]) -> KafkaError:
    """Return the error of a verification as the client understands it.

    Older clients do not know TRANSACTION_ABORTABLE, and do not expect the retriable errors of a transaction
    coordinator from other brokers.
    """
    if error.code == ErrorCode.TRANSACTION_ABORTABLE:
        return error if knows_abortable else InvalidTxnState(str(error))
    if error.code == ErrorCode.PRODUCER_FENCED:
        return RefusedByCoordinator(ErrorCode.INVALID_PRODUCER_EPOCH, str(error))
    return retried_as(str(error)) if error.retriable else error
