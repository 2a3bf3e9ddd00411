"""Decisions of the transaction coordinator, as Kafka 4.3 makes them."""

import pytest

from headrace.coordinators.decision import Producer
from headrace.coordinators.transaction.coordinator import (
    EndTransaction,
    InitProducerId,
    TransactionCoordinator,
    TransactionDecision,
    TransactionLimits,
)
from headrace.coordinators.transaction.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTransactionState,
    ProducerFenced,
    ProducerIdRequired,
    TransactionalIdNotFound,
)
from headrace.coordinators.transaction.records import TransactionRecord
from headrace.coordinators.transaction.state import LAST_EPOCH, NO_TIMEOUT_MS, Transaction, TransactionState
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.ids import TopicPartition

A, B = TopicPartition("orders", 0), TopicPartition("payments", 3)
OLD, NEW = 0, 2  # transaction versions


class Driver:
    """Carries decisions out at once, like a coordinator whose log never fails."""

    def __init__(self, limits: TransactionLimits | None = None) -> None:
        self.machine = TransactionCoordinator(limits or TransactionLimits())
        self.now_ms = 1_000
        self._next_id = 500

    def __getitem__(self, name: str) -> Transaction:
        return self.machine.transactions[name]

    def _carry_out(self, decision: TransactionDecision) -> object:
        for record in decision.records:
            key, value = self.machine.encode(record)
            assert self.machine.decode(key, value) is not None
            self.machine.apply(record)
        if isinstance(decision.answer, KafkaError):
            raise decision.answer
        return decision.answer

    def init(
        self,
        name: str = "t",
        expected: Producer | None = None,
        *,
        timeout_ms: int = 60_000,
        two_phase_commit: bool = False,
        keep_prepared: bool = False,
    ) -> Producer:
        init = InitProducerId(name, timeout_ms, expected, two_phase_commit, keep_prepared)
        try:
            answer = self._carry_out(self.machine.init_producer_id(init, self.now_ms))
        except ProducerIdRequired:
            self._next_id += 1
            answer = self._carry_out(self.machine.init_producer_id(init, self.now_ms, self._next_id))
        assert isinstance(answer, Producer)
        return answer

    def add(self, producer: Producer, *partitions: TopicPartition, version: int = NEW) -> None:
        added = frozenset(partitions or (A,))
        self._carry_out(self.machine.add_partitions("t", producer, added, version, self.now_ms))

    def ongoing(self, producer: Producer) -> frozenset[TopicPartition]:
        partitions = self._carry_out(self.machine.ongoing_partitions("t", producer, self.now_ms))
        assert isinstance(partitions, frozenset)
        return partitions

    def end(self, producer: Producer, *, commit: bool, version: int = NEW) -> Producer:
        request = EndTransaction("t", producer, commit, version)
        try:
            answer = self._carry_out(self.machine.end(request, self.now_ms))
        except ProducerIdRequired:
            self._next_id += 1
            answer = self._carry_out(self.machine.end(request, self.now_ms, self._next_id))
        assert isinstance(answer, Producer)
        return answer

    def complete(self) -> list[Transaction]:
        """Complete what is prepared, as if all markers were written."""
        prepared = self.machine.take_prepared()
        for transaction in prepared:
            self._carry_out(self.machine.complete(transaction, self.now_ms))
        return prepared

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        for decision in self.machine.expire(self.now_ms):
            self._carry_out(decision)


@pytest.fixture
def driver() -> Driver:
    return Driver()


# -- InitProducerId --------------------------------------------------------------------------------


def test_each_instance_of_a_producer_gets_the_next_epoch(driver: Driver) -> None:
    first, second = driver.init(), driver.init()

    assert (first.producer_id, first.epoch) == (501, 0)
    assert (second.producer_id, second.epoch) == (501, 1)
    assert driver.init("other").producer_id == 502


def test_an_earlier_instance_is_fenced(driver: Driver) -> None:
    first = driver.init()
    driver.init()

    with pytest.raises(ProducerFenced, match="producer 501 with epoch 0 is fenced, current are 501 and 1"):
        driver.add(first)
    with pytest.raises(ProducerFenced):
        driver.end(first, commit=True)
    with pytest.raises(ProducerFenced):
        driver.ongoing(first)
    with pytest.raises(ProducerFenced):
        driver.init(expected=first)


def test_the_ongoing_transaction_of_an_earlier_instance_is_aborted_first(driver: Driver) -> None:
    first = driver.init()
    driver.add(first)

    with pytest.raises(ConcurrentTransactions):
        driver.init()
    assert driver["t"].state is TransactionState.PREPARE_ABORT
    with pytest.raises(ConcurrentTransactions):
        driver.init()
    driver.complete()
    second = driver.init()

    assert second == Producer(501, 2)  # one epoch for the abort, which no producer has had
    with pytest.raises(ProducerFenced):
        driver.add(first)


def test_a_producer_may_bump_its_own_epoch_and_retry_that(driver: Driver) -> None:
    first = driver.init()
    second = driver.init(expected=first)
    retried = driver.init(expected=first)  # its response was lost

    assert second == retried == Producer(501, 1)


def test_a_producer_whose_epochs_are_exhausted_gets_another_id(driver: Driver) -> None:
    exhaust(driver)
    last = driver["t"].producer

    fresh = driver.init(expected=last)

    assert last.epoch == LAST_EPOCH - 1
    assert fresh == Producer(502, 0)
    with pytest.raises(ProducerFenced):
        driver.init(expected=Producer(501, 7))
    with pytest.raises(InvalidProducerIdMapping):
        driver.add(last)


def exhaust(driver: Driver) -> None:
    """Give the producer the last epoch that a producer may have."""
    driver.init()
    while driver["t"].producer_epoch < LAST_EPOCH - 1:
        driver.init()


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001, 2**31 - 1])
def test_absurd_timeouts_are_refused(driver: Driver, timeout_ms: int) -> None:
    with pytest.raises(KafkaError) as refused:
        driver.init(timeout_ms=timeout_ms)

    assert refused.value.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert not driver.machine.transactions


def test_two_phase_commit_is_as_in_kafka_43(driver: Driver) -> None:
    with pytest.raises(KafkaError) as disabled:
        driver.init(two_phase_commit=True)
    enabled = Driver(TransactionLimits(two_phase_commit=True))
    with pytest.raises(KafkaError) as keeping:
        enabled.init(two_phase_commit=True, keep_prepared=True)
    producer = enabled.init(two_phase_commit=True)
    enabled.add(producer)
    enabled.pass_time(365 * 24 * 3_600_000)

    assert disabled.value.code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert keeping.value.code == ErrorCode.UNSUPPORTED_VERSION
    assert (enabled["t"].timeout_ms, enabled["t"].state) == (NO_TIMEOUT_MS, TransactionState.ONGOING)


# -- partitions ------------------------------------------------------------------------------------


def test_partitions_are_added_once(driver: Driver) -> None:
    producer = driver.init()
    driver.add(producer, A)
    began_ms = driver["t"].start_ms
    driver.now_ms += 5
    driver.add(producer, B)

    again = driver.machine.add_partitions("t", producer, frozenset([A, B]), NEW, driver.now_ms)

    assert again.records == []
    assert driver["t"].partitions == {A, B}
    assert (driver["t"].start_ms, driver["t"].last_update_ms) == (began_ms, driver.now_ms)


def test_only_partitions_of_the_ongoing_transaction_are_verified(driver: Driver) -> None:
    producer = driver.init()
    assert driver.ongoing(producer) == frozenset()
    driver.add(producer, A)
    assert driver.ongoing(producer) == {A}
    following = driver.end(producer, commit=True)
    driver.complete()

    assert driver.ongoing(following) == frozenset()


def test_nothing_is_added_or_verified_while_markers_are_written(driver: Driver) -> None:
    producer = driver.init()
    driver.add(producer)
    following = driver.end(producer, commit=True)

    for each in (producer, following):
        with pytest.raises(ConcurrentTransactions):
            driver.add(each)
        with pytest.raises(ConcurrentTransactions):
            driver.ongoing(each)
    driver.complete()
    driver.add(following, B)

    assert driver["t"].partitions == {B}


def test_unknown_ids_have_no_producer(driver: Driver) -> None:
    with pytest.raises(InvalidProducerIdMapping):
        driver.add(Producer(1, 0), A)
    with pytest.raises(InvalidProducerIdMapping):
        driver.ongoing(Producer(1, 0))
    with pytest.raises(InvalidProducerIdMapping):
        driver.end(Producer(1, 0), commit=True)
    with pytest.raises(TransactionalIdNotFound):
        driver.machine.describe("t")


# -- EndTxn ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_the_epoch_is_bumped_with_every_transaction(driver: Driver, commit: bool) -> None:
    producer = driver.init()
    driver.add(producer, A, B)

    following = driver.end(producer, commit=commit)
    (prepared,) = driver.complete()

    assert following == Producer(501, 1)
    assert prepared.producer == following  # markers have the next epoch
    assert prepared.partitions == {A, B}
    assert prepared.state.is_commit is commit
    assert driver["t"].state.is_commit is commit
    assert driver["t"].producer == following
    with pytest.raises(ProducerFenced):
        driver.add(producer)


@pytest.mark.parametrize("commit", [True, False])
def test_old_clients_keep_their_epoch(driver: Driver, commit: bool) -> None:
    producer = driver.init()
    driver.add(producer, A, version=OLD)

    same = driver.end(producer, commit=commit, version=OLD)
    (prepared,) = driver.complete()

    assert same == prepared.producer == producer
    assert prepared.client_version == OLD
    assert driver.end(producer, commit=commit, version=OLD) == producer  # the response was lost
    with pytest.raises(InvalidTransactionState):
        driver.end(producer, commit=not commit, version=OLD)


def test_an_end_can_be_retried_but_not_changed(driver: Driver) -> None:
    producer = driver.init()
    driver.add(producer)
    following = driver.end(producer, commit=True)
    with pytest.raises(ConcurrentTransactions):
        driver.end(producer, commit=True)
    driver.complete()

    assert driver.end(producer, commit=True) == following
    with pytest.raises(InvalidTransactionState, match="cannot be aborted: its state is CompleteCommit"):
        driver.end(producer, commit=False)


def test_a_delayed_end_does_not_touch_the_next_transaction(driver: Driver) -> None:
    producer = driver.init()
    driver.add(producer)
    following = driver.end(producer, commit=True)
    driver.complete()
    driver.add(following, B)

    for commit in (True, False):
        with pytest.raises(ProducerFenced):
            driver.end(producer, commit=commit)
    assert driver["t"].state is TransactionState.ONGOING


def test_a_transaction_without_partitions_can_be_aborted_but_not_committed(driver: Driver) -> None:
    """A producer with transaction version 2 does not know whether a partition was added."""
    producer = driver.init()
    with pytest.raises(InvalidTransactionState):
        driver.end(producer, commit=True)
    with pytest.raises(InvalidTransactionState):
        driver.end(producer, commit=False, version=OLD)

    following = driver.end(producer, commit=False)
    driver.complete()

    assert following.epoch == producer.epoch + 1
    assert driver["t"].state is TransactionState.COMPLETE_ABORT
    assert driver.end(following, commit=False).epoch == following.epoch + 1


def test_the_last_epoch_of_a_producer_ends_with_another_producer_id(driver: Driver) -> None:
    exhaust(driver)
    last = driver["t"].producer
    driver.add(last)

    following = driver.end(last, commit=True)
    (prepared,) = driver.complete()

    assert following == Producer(502, 0)
    assert prepared.producer == Producer(501, LAST_EPOCH)
    assert driver["t"].producer == following
    assert driver.end(last, commit=True) == following  # a retry
    driver.add(following)


# -- time ------------------------------------------------------------------------------------------


def test_a_transaction_is_aborted_at_its_timeout_and_its_producer_fenced(driver: Driver) -> None:
    producer = driver.init()
    driver.add(producer)
    driver.pass_time(59_999)
    assert driver.complete() == []
    driver.pass_time(1)

    (prepared,) = driver.complete()
    assert driver.machine.timed_out == 1
    assert prepared.state is TransactionState.PREPARE_ABORT
    assert prepared.producer == Producer(501, 1)
    with pytest.raises(ProducerFenced):
        driver.add(producer)
    with pytest.raises(InvalidTransactionState):
        driver.end(producer, commit=True)


def test_a_timeout_with_the_last_epoch_needs_no_new_producer_id(driver: Driver) -> None:
    exhaust(driver)
    driver.add(driver["t"].producer)
    driver.pass_time(60_000)
    driver.complete()

    assert driver["t"].producer == Producer(501, LAST_EPOCH)
    assert driver.init() == Producer(502, 0)


def test_unused_ids_expire_unless_they_have_a_transaction(driver: Driver) -> None:
    driver.init("idle")
    ongoing = driver.init()
    driver.add(ongoing)
    driver.now_ms += driver.machine.limits.id_expiration_ms

    decision = driver.machine.expire_ids(driver.now_ms, ["idle", "t", "gone"])

    assert [(record.transactional_id, record.transaction) for record in decision.records] == [("idle", None)]
    driver._carry_out(decision)
    assert set(driver.machine.transactions) == {"t"}


# -- records ---------------------------------------------------------------------------------------


def test_the_next_coordinator_continues(driver: Driver) -> None:
    producer = driver.init()
    driver.add(producer, A, B)
    driver.end(producer, commit=True)
    loaded = TransactionCoordinator(TransactionLimits())
    record = loaded.decode(*driver.machine.encode(TransactionRecord("t", driver["t"])))
    assert record is not None
    loaded.apply(record)

    (prepared,) = loaded.take_prepared()

    assert prepared.partitions == {A, B}
    assert prepared.producer == driver["t"].producer
    assert loaded.take_prepared() == []
