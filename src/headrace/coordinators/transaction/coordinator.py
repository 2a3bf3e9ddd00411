"""The transaction coordinator: the transactional ids of one partition of `__transaction_state`.

    InitProducerId        EMPTY             a new producer epoch fences earlier instances of the producer
    AddPartitionsToTxn    ONGOING           a partition is added before its leader accepts the first record
    EndTxn, a timeout     PREPARE_…         the outcome is decided once this record is committed
    WriteTxnMarkers       COMPLETE_…        every partition has its marker

Whoever drives the coordinator sends the markers of the transactions that `take_prepared` returns, once
everything in the log is committed, and calls `complete` when all partitions have them.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from headrace.coordinators.deadlines import Deadlines
from headrace.coordinators.decision import Decision, Producer
from headrace.coordinators.machine import NO_PRODUCER, CoordinatorMachine
from headrace.coordinators.transaction import errors
from headrace.coordinators.transaction.records import TransactionRecord, decode_record, encode_record
from headrace.coordinators.transaction.state import (
    EPOCH_BUMP_VERSION,
    LAST_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    Transaction,
    TransactionState,
)
from headrace.protocol.ids import TopicPartition

TransactionDecision = Decision[TransactionRecord]
_SHOWN_CHARS = 100  # of a transactional id in a message; it may have 32 KiB


class TransactionLimits(NamedTuple):
    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    two_phase_commit: bool = False


class InitProducerId(NamedTuple):
    transactional_id: str
    timeout_ms: int
    expected: Producer | None = None  # the producer that the client has, if it has one
    two_phase_commit: bool = False
    keep_prepared: bool = False


class EndTransaction(NamedTuple):
    """An EndTxn request. Before v5 it has transaction version 0."""

    transactional_id: str
    producer: Producer
    commit: bool
    client_version: int


class TransactionCoordinator(CoordinatorMachine[TransactionRecord]):
    def __init__(self, limits: TransactionLimits) -> None:
        self.limits = limits
        self.transactions: dict[str, Transaction] = {}
        self.deadlines: Deadlines[str] = Deadlines()  # of ongoing transactions
        self.counts = dict.fromkeys(TransactionState, 0)  # of transactional ids, by state
        self.timed_out = 0
        self._prepared: dict[str, None] = {}  # in the order of their decisions

    def init_producer_id(
        self, request: InitProducerId, now_ms: int, new_producer_id: int | None = None
    ) -> TransactionDecision:
        """Give the producer an epoch that fences earlier instances; abort its ongoing transaction first.

        The answer is the `Producer`. Raise ProducerIdRequired if `new_producer_id` is needed and missing.
        """
        if not request.transactional_id:
            raise errors.InvalidTransactionalId("the transactional id is empty (INVALID_REQUEST)")
        if request.two_phase_commit and not self.limits.two_phase_commit:
            raise errors.TwoPhaseCommitDisabled(
                "transaction.two.phase.commit.enable is false (TRANSACTIONAL_ID_AUTHORIZATION_FAILED)"
            )
        if request.keep_prepared:
            raise errors.KeepPreparedUnsupported("keepPreparedTxn is not supported (UNSUPPORTED_VERSION)")
        if not request.two_phase_commit and not 0 < request.timeout_ms <= self.limits.max_timeout_ms:
            raise errors.InvalidTransactionTimeout(
                f"transaction timeout {request.timeout_ms} ms is not between 1 and "
                f"transaction.max.timeout.ms={self.limits.max_timeout_ms} (INVALID_TRANSACTION_TIMEOUT)"
            )
        timeout_ms = NO_TIMEOUT_MS if request.two_phase_commit else request.timeout_ms
        current = self.transactions.get(request.transactional_id)
        if current is None:
            current = Transaction(
                transactional_id=request.transactional_id,
                producer_id=_required(new_producer_id),
                producer_epoch=NO_PRODUCER_EPOCH,
                timeout_ms=timeout_ms,
            )
        _check_not_prepared(current)
        expected = request.expected
        if expected is not None and not (
            current.producer_epoch == NO_PRODUCER_EPOCH
            or expected.producer_id == current.producer_id
            or (expected.producer_id == current.previous_producer_id and expected.epoch >= LAST_EPOCH - 1)
        ):
            raise _fenced(current, expected)
        if current.state is TransactionState.ONGOING:
            decision = self._prepare(current, now_ms, commit=False, new_producer_id=new_producer_id)
            decision.answer = errors.ConcurrentTransactions(
                f"{_shown(current)} is being aborted: retry (CONCURRENT_TRANSACTIONS)"
            )
            return decision
        if current.is_epoch_exhausted and (expected is None or expected.epoch == current.producer_epoch):
            producer = Producer(_required(new_producer_id), 0)
            last_epoch = NO_PRODUCER_EPOCH if expected is None else current.producer_epoch
        else:
            producer, last_epoch = _next_epoch(current, expected)
        next_ = current.initialized(
            producer, last_producer_epoch=last_epoch, timeout_ms=timeout_ms, now_ms=now_ms
        )
        return _decision(next_, now_ms, producer)

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: frozenset[TopicPartition],
        client_version: int,
        now_ms: int,
    ) -> TransactionDecision:
        """Add partitions to the ongoing transaction, or begin one with them."""
        current = self._of_producer(transactional_id, producer)
        if current.state is TransactionState.ONGOING and partitions <= current.partitions:
            return Decision(now_ms)
        return _decision(current.with_partitions(partitions, client_version, now_ms), now_ms)

    def ongoing_partitions(
        self, transactional_id: str, producer: Producer, now_ms: int
    ) -> TransactionDecision:
        """Return, as the answer, the partitions of the ongoing transaction; none if there is none.

        The set is never changed, so that the caller may compare many partitions with it in slices.
        """
        current = self._of_producer(transactional_id, producer)
        return Decision(
            now_ms, answer=current.partitions if current.state is TransactionState.ONGOING else frozenset()
        )

    def end(
        self, request: EndTransaction, now_ms: int, new_producer_id: int | None = None
    ) -> TransactionDecision:
        """EndTxn: decide the outcome. The answer is the `Producer` with which the client continues.

        Raise ProducerIdRequired if `new_producer_id` is needed and missing.
        """
        current = self._not_prepared(request.transactional_id)
        if request.client_version < EPOCH_BUMP_VERSION:
            _check_producer(current, request.producer)
            if current.state is TransactionState.ONGOING:
                next_ = current.prepared(
                    commit=request.commit, client_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms
                )
                return _decision(next_, now_ms, current.producer)
            if _outcome(current.state) is request.commit:
                return Decision(now_ms, answer=current.producer)  # the response was lost
            raise _wrong_state(current, request.commit)
        is_retry = _is_retried_end(current, request.producer)
        if not is_retry:
            _check_producer(current, request.producer)
        if current.state is TransactionState.ONGOING:
            return self._prepare(current, now_ms, commit=request.commit, new_producer_id=new_producer_id)
        if is_retry and _outcome(current.state) is request.commit:
            return Decision(now_ms, answer=current.producer)
        if is_retry or request.commit:
            raise _wrong_state(current, request.commit)
        # No partition was added: the producer cannot know that, so that it may abort.
        return self._prepare(current, now_ms, commit=False, new_producer_id=new_producer_id)

    def _prepare(
        self, current: Transaction, now_ms: int, *, commit: bool, new_producer_id: int | None
    ) -> TransactionDecision:
        """Decide the outcome and bump the epoch: requests sent before cannot affect a later transaction."""
        next_ = current.prepared(
            commit=commit,
            client_version=EPOCH_BUMP_VERSION,
            next_producer_id=_required(new_producer_id) if current.is_epoch_exhausted else NO_PRODUCER_ID,
            now_ms=now_ms,
        )
        return _decision(next_, now_ms, next_.next_producer)

    def complete(self, prepared: Transaction, now_ms: int) -> TransactionDecision:
        """Complete a transaction whose markers are written, unless it is complete already."""
        if self.transactions.get(prepared.transactional_id) != prepared:
            return Decision(now_ms)
        return _decision(prepared.completed(now_ms), now_ms)

    def describe(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise errors.InvalidTransactionalId("the transactional id is empty (INVALID_REQUEST)")
        current = self.transactions.get(transactional_id)
        if current is None:
            raise errors.TransactionalIdNotFound(
                f"transactional id {transactional_id[:_SHOWN_CHARS]!r} does not exist "
                "(TRANSACTIONAL_ID_NOT_FOUND)"
            )
        return current

    def _of_producer(self, transactional_id: str, producer: Producer) -> Transaction:
        """Return the state of a transactional id if `producer` may change it."""
        current = self._not_prepared(transactional_id)
        _check_producer(current, producer)
        return current

    def _not_prepared(self, transactional_id: str) -> Transaction:
        """Return the state of a transactional id, unless it is prepared.

        This is checked before the producer, which may have the producer id that it gets with completion.
        """
        if not transactional_id:
            raise errors.InvalidTransactionalId("the transactional id is empty (INVALID_REQUEST)")
        current = self.transactions.get(transactional_id)
        if current is None:
            raise errors.InvalidProducerIdMapping(
                f"transactional id {transactional_id[:_SHOWN_CHARS]!r} has no producer id "
                "(INVALID_PRODUCER_ID_MAPPING)"
            )
        _check_not_prepared(current)
        return current

    def take_prepared(self) -> list[Transaction]:
        """Return the transactions that were prepared since the last call: their markers are to be sent."""
        if not self._prepared:
            return []
        names, self._prepared = self._prepared, {}
        transactions = (self.transactions.get(name) for name in names)
        return [current for current in transactions if current is not None and current.state.is_prepared]

    def expire(self, now_ms: int) -> Iterator[TransactionDecision]:
        """Abort the transactions that have exceeded their timeout, and fence their producers.

        Apply each decision before the next.
        """
        for name in self.deadlines.due(now_ms):
            current = self.transactions.get(name)
            if current is not None and current.state is TransactionState.ONGOING:
                # There is no new producer id at hand if the epochs are exhausted. The last epoch, which no
                # producer has, fences as well, and the next InitProducerId gets a new producer id.
                self.timed_out += 1
                next_ = current.prepared(
                    commit=False,
                    client_version=EPOCH_BUMP_VERSION,
                    next_producer_id=NO_PRODUCER_ID,
                    now_ms=now_ms,
                )
                yield _decision(next_, now_ms)

    def expire_ids(self, now_ms: int, names: Iterable[str]) -> TransactionDecision:
        """Delete those of the transactional ids that were not used for transactional.id.expiration.ms."""
        before_ms = now_ms - self.limits.id_expiration_ms
        decision: TransactionDecision = Decision(now_ms)
        for name in names:
            current = self.transactions.get(name)
            if current is None or current.state.is_prepared or current.state is TransactionState.ONGOING:
                continue
            if current.last_update_ms <= before_ms:
                decision.records.append(TransactionRecord(name, None))
        return decision

    encode = staticmethod(encode_record)
    decode = staticmethod(decode_record)

    @staticmethod
    def is_replaced_by_later(key: bytes) -> bool:
        """Return True: every record has the whole state of its transactional id."""
        del key
        return True

    def apply(self, record: TransactionRecord, producer_id: int = NO_PRODUCER) -> None:
        assert producer_id == NO_PRODUCER, "the coordinator's own records are not transactional"
        name, transaction = record
        previous = self.transactions.pop(name, None)
        if previous is not None:
            self.counts[previous.state] -= 1
        if transaction is None:
            self.deadlines.clear(name)
            return
        self.transactions[name] = transaction
        self.counts[transaction.state] += 1
        if transaction.state.is_prepared:
            self._prepared[name] = None
        if transaction.state is TransactionState.ONGOING and transaction.timeout_ms != NO_TIMEOUT_MS:
            self.deadlines.set(name, transaction.start_ms + transaction.timeout_ms)
        else:
            self.deadlines.clear(name)


def _decision(next_: Transaction, now_ms: int, answer: object = None) -> TransactionDecision:
    return Decision(now_ms, records=[TransactionRecord(next_.transactional_id, next_)], answer=answer)


def _required(new_producer_id: int | None) -> int:
    if new_producer_id is None:
        raise errors.ProducerIdRequired("a new producer id is needed")
    return new_producer_id


def _next_epoch(current: Transaction, expected: Producer | None) -> tuple[Producer, int]:
    """Return the producer with its next epoch, and the epoch with which the client may retry."""
    bumped = Producer(current.producer_id, current.producer_epoch + 1)
    if expected is None:
        return bumped, NO_PRODUCER_EPOCH
    if current.producer_epoch in {NO_PRODUCER_EPOCH, expected.epoch}:
        return bumped, current.producer_epoch
    if expected.epoch == current.last_producer_epoch:
        return current.producer, current.last_producer_epoch  # a retry: the response was lost
    raise _fenced(current, expected)


def _is_retried_end(current: Transaction, producer: Producer) -> bool:
    """Return whether `producer` is the one of the completed transaction, before its epoch was bumped."""
    if current.state is TransactionState.ONGOING or current.state is TransactionState.EMPTY:
        return False
    if producer.producer_id == current.producer_id and producer.epoch + 1 == current.producer_epoch:
        return True
    has_rotated = current.producer_epoch == 0 and producer.epoch == LAST_EPOCH - 1
    return has_rotated and producer.producer_id == current.previous_producer_id


def _outcome(state: TransactionState) -> bool | None:
    """Return whether a complete transaction was committed; None if it is not complete."""
    outcomes = {TransactionState.COMPLETE_COMMIT: True, TransactionState.COMPLETE_ABORT: False}
    return outcomes.get(state)


def _check_not_prepared(current: Transaction) -> None:
    if current.state.is_prepared:
        raise errors.ConcurrentTransactions(
            f"the markers of {_shown(current)} are being written: retry (CONCURRENT_TRANSACTIONS)"
        )


def _shown(current: Transaction) -> str:
    return f"transaction {current.transactional_id[:_SHOWN_CHARS]!r}"


def _check_producer(current: Transaction, producer: Producer) -> None:
    """Raise unless `producer` has the producer id and the epoch of the transactional id."""
    if current.producer_id != producer.producer_id:
        raise errors.InvalidProducerIdMapping(
            f"{_shown(current)} has producer id {current.producer_id}, not {producer.producer_id} "
            "(INVALID_PRODUCER_ID_MAPPING)"
        )
    if current.producer_epoch != producer.epoch:
        raise _fenced(current, producer)


def _fenced(current: Transaction, got: Producer) -> errors.ProducerFenced:
    return errors.ProducerFenced(
        f"{_shown(current)}: producer {got.producer_id} with epoch {got.epoch} is fenced, current are "
        f"{current.producer_id} and {current.producer_epoch} (PRODUCER_FENCED)"
    )


def _wrong_state(current: Transaction, commit: bool) -> errors.InvalidTransactionState:
    return errors.InvalidTransactionState(
        f"{_shown(current)} cannot be {'committed' if commit else 'aborted'}: its state is "
        f"{current.state.kafka_name} (INVALID_TXN_STATE)"
    )
