"""Any interleaving of what producers, zombies, timeouts, lost responses and failovers do to one coordinator.

Records of the coordinator are committed some time after they are appended, and a failover may lose those that
are not: answers and markers have to wait, as in `headrace.broker`. Every partition has the real producer
state, which accepts a batch if its transaction was verified or is open there. Requests and markers arrive in
any order, or twice. Whatever happens, a transaction is all or nothing.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.coordinators.decision import Producer
from headrace.coordinators.transaction.coordinator import (
    EndTransaction,
    InitProducerId,
    TransactionCoordinator,
    TransactionDecision,
    TransactionLimits,
)
from headrace.coordinators.transaction.errors import ProducerIdRequired
from headrace.coordinators.transaction.records import TransactionRecord
from headrace.coordinators.transaction.state import (
    EPOCH_BUMP_VERSION,
    LAST_EPOCH,
    Transaction,
    TransactionState,
)
from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import ProducerId, TopicPartition
from headrace.storage.producers.state import EndMarker, ProducerState
from simulation.log import Batch

EXAMPLES = 30 * int(os.environ.get("HEADRACE_EXAMPLES", "3"))
NAME = "t"
PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
TIMEOUT_MS = 1_000
VERSIONS = st.sampled_from([EPOCH_BUMP_VERSION, 0])
WHICH = st.sampled_from([1, 1, 1, 2, 3])  # of the latest instances: the newest, or a zombie
LOST = st.sampled_from([False, False, True])  # whether the producer gets no answer


class Leader:
    """The leader of one partition: one producer id, its open transaction, and what was decided."""

    def __init__(self, producer_id: int) -> None:
        self.state = ProducerState(ProducerId(producer_id))
        self.end_offset = 0
        self.open_: list[int] = []  # records without an outcome
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self.verifying: dict[int, int] = {}  # questions to the coordinator, with the epoch of the producer

    def is_in_transaction(self, producer: Producer) -> bool:
        return bool(self.open_) and self.state.epoch == producer.epoch

    def write(self, record: int, producer: Producer, sequence: int) -> None:
        """Append a batch; raise KafkaError if the producer state refuses it."""
        batch = Batch(record, *producer, sequence, base_offset=self.end_offset, is_transactional=True)
        header: Any = batch
        assert self.state.check(header) is None, "no batch is sent twice here"
        assert not self.open_ or self.state.epoch == producer.epoch, "two transactions are open"
        self.state.record(header)
        self.end_offset += 1
        self.open_.append(record)

    def end(self, transaction: Transaction, coordinator_epoch: int) -> bool:
        """Append a marker; return whether the coordinator takes the partition for done."""
        marker = EndMarker(transaction.state.is_commit, coordinator_epoch)
        header: Any = Batch(0, *transaction.producer, -1, base_offset=self.end_offset, marker=marker)
        try:
            self.state.check_marker(header, marker, transaction.client_version)
        except KafkaError as error:
            return error.code.name == "INVALID_PRODUCER_EPOCH"
        self.state.end_transaction(header, marker)
        self.end_offset += 1
        (self.committed if marker.commit else self.aborted).extend(self.open_)
        self.open_ = []
        keeps_epoch = transaction.client_version < EPOCH_BUMP_VERSION
        self.verifying = {
            question: epoch
            for question, epoch in self.verifying.items()
            if epoch >= transaction.producer_epoch and not keeps_epoch
        }
        return True


@dataclass
class Instance:
    """One instance of the producer: what it believes."""

    producer: Producer
    version: int
    records: list[int] = field(default_factory=list)  # accepted, in its current transaction
    sequences: dict[TopicPartition, int] = field(default_factory=dict)
    writing: set[TopicPartition] = field(default_factory=set)  # without an answer so far
    ending: bool | None = None  # the outcome in an EndTxn without an answer: the producer can only retry it


@dataclass(frozen=True)
class Marker:
    """A marker on its way: a coordinator that is loaded again sends markers of its own."""

    coordinator_epoch: int
    transaction: Transaction
    partition: TopicPartition


class TransactionHistories(RuleBasedStateMachine):
    @initialize(epochs_left=st.sampled_from([LAST_EPOCH, 2, 3]), version=VERSIONS)
    def begin(self, epochs_left: int, version: int) -> None:
        self.log: list[tuple[bytes, bytes | None]] = []
        self.slow_for = 0  # decisions whose records are appended and not committed
        self.committed = 0  # records of the log that no failover can lose
        self.waiting: list[tuple[int, Callable[[], None]]] = []  # what to do when so many are committed
        self.machine = TransactionCoordinator(TransactionLimits())
        self.coordinator_epoch = 0
        self.undecided: list[Transaction] = []  # prepared, and not committed yet
        self.leaders: dict[tuple[TopicPartition, int], Leader] = {}
        self.now_ms = 0
        self.next_id = 0
        self.next_record = 0
        self.next_question = 0
        self.instances: list[Instance] = []
        self.ends: list[EndTransaction] = []  # requests that were sent
        self.held_up_for = 0  # transactions whose markers do not arrive at once
        self.markers: list[Marker] = []  # sent, and not delivered
        self.delivered: list[Marker] = []
        self.answered: list[tuple[list[int], bool]] = []  # what clients were told: records, committed
        self.written: dict[
            int, Producer
        ] = {}  # records of transaction version 2, which has an epoch for each
        if epochs_left < LAST_EPOCH:
            almost = Producer(self.new_id(), LAST_EPOCH - 1 - epochs_left)
            used = Transaction(
                transactional_id=NAME,
                producer_id=almost.producer_id,
                producer_epoch=almost.epoch,
                timeout_ms=TIMEOUT_MS,
            )
            self.carry_out(TransactionDecision(0, records=[TransactionRecord(NAME, used)]))
        self.start_an_instance(version, lost=False)

    # -- the coordinator -----------------------------------------------------------------------

    def carry_out(
        self, decision: TransactionDecision, then: Callable[[Any], None] = lambda _answer: None
    ) -> None:
        """Append and apply; answer, and send markers, when everything appended so far is committed."""
        for record in decision.records:
            self.log.append(self.machine.encode(record))
            self.machine.apply(record)
        answer = decision.answer
        if not isinstance(answer, KafkaError):
            self.waiting.append((len(self.log), lambda: then(answer)))
        self.hand_over_prepared()
        self.keep_up()

    def keep_up(self) -> None:
        """Commit everything, unless followers are slow; then do what was waiting for that."""
        if self.slow_for:
            self.slow_for -= 1
            self.act()
        else:
            self.commit_all()

    def hand_over_prepared(self) -> None:
        for transaction in self.machine.take_prepared():
            self.undecided.append(transaction)
            self.waiting.append((len(self.log), partial(self.send_markers, transaction)))

    def send_markers(self, transaction: Transaction) -> None:
        self.undecided.remove(transaction)
        self.markers += [
            Marker(self.coordinator_epoch, transaction, partition)
            for partition in sorted(transaction.partitions)
        ]
        if not transaction.partitions:
            self.carry_out(self.machine.complete(transaction, self.now_ms))
        elif self.held_up_for:
            self.held_up_for -= 1
        else:
            self.deliver_all()

    def act(self) -> None:
        """Do what had to wait for what is committed now."""
        due = [action for end, action in self.waiting if end <= self.committed]
        self.waiting = [each for each in self.waiting if each[0] > self.committed]
        for action in due:
            action()

    def commit_all(self) -> None:
        self.committed = len(self.log)
        self.act()

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id

    @rule(decisions=st.integers(1, 4))
    def slow_down(self, decisions: int) -> None:
        """The followers of the coordinator's log fetch nothing for a while."""
        self.slow_for = decisions

    @rule(data=st.data())
    def catch_up(self, data: st.DataObject) -> None:
        """The followers have fetched some more of the coordinator's log, or all."""
        self.committed = data.draw(st.integers(self.committed, len(self.log)))
        self.act()

    @rule(data=st.data())
    def fail_over(self, data: st.DataObject) -> None:
        """The coordinator crashes. The next one loads what is left of the log and sends what is prepared.

        Nobody is told anything about requests that were waiting, and some of what was not committed is lost.
        """
        del self.log[data.draw(st.integers(self.committed, len(self.log))) :]
        self.waiting.clear()
        self.undecided.clear()
        for leader in self.leaders.values():
            leader.verifying.clear()  # the leader gets no answer, and tells its client to retry
        for instance in self.instances:
            instance.writing.clear()
        self.machine = TransactionCoordinator(TransactionLimits())
        self.coordinator_epoch += 1
        for key, value in dict(self.log).items():
            record = self.machine.decode(key, value)
            assert record is not None
            self.machine.apply(record)
        self.slow_for = 0
        self.hand_over_prepared()
        self.keep_up()

    # -- producers -----------------------------------------------------------------------------

    @rule(version=VERSIONS, lost=LOST)
    def start_an_instance(self, version: int, lost: bool) -> None:
        def started(answer: Any) -> None:
            assert isinstance(answer, Producer)
            if not lost:
                self.instances.append(Instance(answer, version))

        request = InitProducerId(NAME, TIMEOUT_MS)
        try:
            try:
                decision = self.machine.init_producer_id(request, self.now_ms)
            except ProducerIdRequired:
                decision = self.machine.init_producer_id(request, self.now_ms, self.new_id())
        except KafkaError:
            return
        self.carry_out(decision, started)

    @precondition(lambda self: self.instances)
    @rule(which=WHICH, partitions=st.sets(st.sampled_from(PARTITIONS), min_size=1))
    def write(self, which: int, partitions: set[TopicPartition]) -> None:
        """Any instance, the newest or a zombie, writes to some partitions."""
        instance = self.instances[-which:][0]
        if instance.ending is None:
            for partition in sorted(partitions - instance.writing):
                self.write_to(partition, instance)

    def write_to(self, partition: TopicPartition, instance: Instance) -> None:
        producer = instance.producer
        leader = self.leaders.setdefault((partition, producer.producer_id), Leader(producer.producer_id))
        if leader.is_in_transaction(producer):
            self.append(leader, instance, partition)
            return
        self.next_question += 1
        question = self.next_question
        leader.verifying[question] = producer.epoch
        instance.writing.add(partition)

        def confirmed(_answer: object) -> None:
            instance.writing.discard(partition)
            if leader.verifying.pop(question, None) is not None and instance.producer == producer:
                self.append(leader, instance, partition)

        try:
            added = frozenset([partition])
            decision = self.machine.add_partitions(NAME, producer, added, instance.version, self.now_ms)
        except KafkaError:
            del leader.verifying[question]
            instance.writing.discard(partition)
            return
        self.carry_out(decision, confirmed)

    def append(self, leader: Leader, instance: Instance, partition: TopicPartition) -> None:
        sequence = instance.sequences.get(partition, 0)
        try:
            leader.write(self.next_record, instance.producer, sequence)
        except KafkaError:
            return  # INVALID_PRODUCER_EPOCH, for example
        instance.sequences[partition] = sequence + 1
        instance.records.append(self.next_record)
        if instance.version >= EPOCH_BUMP_VERSION:
            self.written[self.next_record] = instance.producer
        self.next_record += 1

    @precondition(lambda self: self.instances)
    @rule(which=WHICH, commit=st.booleans(), lost=LOST)
    def end(self, which: int, commit: bool, lost: bool) -> None:
        """EndTxn. A producer whose answer is lost retries, and does nothing else before it is answered."""
        instance = self.instances[-which:][0]
        if instance.writing or not instance.records:
            return  # no client ends a transaction that it still writes, or has not begun
        if instance.ending is not None:
            commit = instance.ending
        instance.ending = commit
        producer, records = instance.producer, instance.records

        def ended(answer: Any) -> None:
            assert isinstance(answer, Producer)
            if lost or instance.producer != producer or instance.records is not records:
                return
            self.answered.append((records, commit))
            if answer != producer:
                instance.sequences = {}
            instance.producer, instance.records, instance.ending = answer, [], None

        request = EndTransaction(NAME, producer, commit, instance.version)
        self.ends.append(request)
        self.handle_end(request, ended)

    @precondition(lambda self: self.ends)
    @rule(data=st.data())
    def end_again(self, data: st.DataObject) -> None:
        """An EndTxn request arrives twice, the second time perhaps in a later transaction."""
        request = data.draw(st.sampled_from(self.ends))
        if request.client_version >= EPOCH_BUMP_VERSION:
            self.handle_end(request, lambda _answer: None)

    def handle_end(self, request: EndTransaction, then: Callable[[Any], None]) -> None:
        try:
            try:
                decision = self.machine.end(request, self.now_ms)
            except ProducerIdRequired:
                decision = self.machine.end(request, self.now_ms, self.new_id())
        except KafkaError:
            return
        self.carry_out(decision, then)

    @rule(ms=st.sampled_from([1, TIMEOUT_MS // 3, TIMEOUT_MS]))
    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        for decision in self.machine.expire(self.now_ms):
            self.carry_out(decision)

    # -- markers -------------------------------------------------------------------------------

    @precondition(lambda self: self.markers)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """Deliver any marker; the coordinator that has sent it completes a transaction that has them all."""
        self.deliver_one(data.draw(st.integers(0, len(self.markers) - 1)))

    @rule(transactions=st.integers(1, 3))
    def hold_up_markers(self, transactions: int) -> None:
        """The markers of the next transactions do not arrive at once."""
        self.held_up_for = transactions

    @precondition(lambda self: self.markers)
    @rule()
    def deliver_all(self) -> None:
        for _ in range(len(self.markers)):
            if self.markers:
                self.deliver_one(0)

    def deliver_one(self, index: int) -> None:
        marker = self.markers.pop(index)
        is_current = marker.coordinator_epoch == self.coordinator_epoch
        if not self.append_marker(marker):
            if is_current:
                self.markers.append(marker)  # it is sent again
            return
        self.delivered.append(marker)
        sent = [(each.coordinator_epoch, each.transaction) for each in self.markers]
        if is_current and (marker.coordinator_epoch, marker.transaction) not in sent:
            self.carry_out(self.machine.complete(marker.transaction, self.now_ms))

    @precondition(lambda self: self.delivered)
    @rule(data=st.data())
    def deliver_again(self, data: st.DataObject) -> None:
        """A request is repeated long after its transaction. Only version 2 is safe against that."""
        if all(each.version >= EPOCH_BUMP_VERSION for each in self.instances):
            self.append_marker(data.draw(st.sampled_from(self.delivered)))

    def append_marker(self, marker: Marker) -> bool:
        producer_id = marker.transaction.producer_id
        leader = self.leaders.setdefault((marker.partition, producer_id), Leader(producer_id))
        return leader.end(marker.transaction, marker.coordinator_epoch)

    # -- what must hold ------------------------------------------------------------------------

    @invariant()
    def an_open_transaction_is_known_to_its_coordinator(self) -> None:
        """Otherwise nobody would ever write its marker, and readers would wait for ever."""
        found = self.machine.transactions.get(NAME)
        for (partition, producer_id), leader in self.leaders.items():
            if leader.open_:
                assert found is not None
                assert producer_id == found.producer_id
                pending = {
                    each.partition
                    for each in self.markers
                    if each.transaction == found and each.coordinator_epoch == self.coordinator_epoch
                }
                is_ahead = not found.state.is_prepared or found in self.undecided
                assert partition in (found.partitions if is_ahead else pending), f"{partition} hangs: {found}"

    @invariant()
    def what_was_said_is_so(self) -> None:
        """A transaction whose end was acknowledged has this outcome everywhere, or markers on their way."""
        for records, committed in self.answered:
            for leader in self.leaders.values():
                wrong = leader.aborted if committed else leader.committed
                assert not set(records) & set(wrong)

    @invariant()
    def no_transaction_is_torn(self) -> None:
        committed = {self.written.get(each) for leader in self.leaders.values() for each in leader.committed}
        aborted = {self.written.get(each) for leader in self.leaders.values() for each in leader.aborted}
        assert committed & aborted <= {None}, "a transaction is committed here and aborted there"

    @invariant()
    def the_log_has_the_state(self) -> None:
        found = self.machine.transactions.get(NAME)
        if found is not None:
            key, value = self.machine.encode(TransactionRecord(NAME, found))
            assert dict(self.log)[key] == value
        counted = {state: int(found is not None and found.state is state) for state in TransactionState}
        assert self.machine.counts == counted

    def teardown(self) -> None:
        """When nothing fails any more and nobody ends anything, no transaction stays open."""
        if not hasattr(self, "machine"):
            return
        self.slow_for = 0
        self.commit_all()
        self.pass_time(2 * TIMEOUT_MS)
        for _ in range(len(self.markers) + 1):
            markers, self.markers = self.markers, []
            for marker in markers:
                if not self.append_marker(marker) and marker.coordinator_epoch == self.coordinator_epoch:
                    self.markers.append(marker)
        assert not self.markers
        assert not [partition for partition, leader in self.leaders.items() if leader.open_]


TransactionHistories.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=40, deadline=None
)
TestTransactionHistories = TransactionHistories.TestCase
