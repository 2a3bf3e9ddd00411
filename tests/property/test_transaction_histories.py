"""Any interleaving of what producers, zombies, timeouts, lost responses and failovers do to one coordinator.

The partitions are modelled as Kafka's leaders are: they accept a record if its transaction was verified or is
open there, and markers by the rules of `ProducerState`. Whatever the order, a transaction is all or nothing.
"""

import os
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.coordinator.decision import Producer
from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.transaction.coordinator import (
    EndTransaction,
    InitProducerId,
    TransactionCoordinator,
    TransactionDecision,
)
from headrace.transaction.errors import ProducerIdRequired
from headrace.transaction.limits import TransactionLimits
from headrace.transaction.records import TransactionRecord
from headrace.transaction.state import EPOCH_BUMP_VERSION, Transaction, TransactionState

EXAMPLES = 30 * int(os.environ.get("HEADRACE_EXAMPLES", "3"))
NAME = "t"
PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
TIMEOUT_MS = 1_000
VERSIONS = st.sampled_from([0, EPOCH_BUMP_VERSION])


@dataclass
class Leader:
    """What the leader of one partition knows of the producer: epoch, open transaction, what was decided."""

    epoch: int = -1
    open_: list[int] = field(default_factory=list)  # records without an outcome
    committed: list[int] = field(default_factory=list)
    aborted: list[int] = field(default_factory=list)

    def marker(self, epoch: int, *, commit: bool, version: int) -> bool:
        """Append a marker; return whether the leader accepts it."""
        if epoch < self.epoch or (version >= EPOCH_BUMP_VERSION and self.open_ and epoch == self.epoch):
            return False
        (self.committed if commit else self.aborted).extend(self.open_)
        self.open_, self.epoch = [], epoch
        return True


@dataclass
class Instance:
    """One instance of the producer: what it believes."""

    producer: Producer
    version: int
    records: list[int] = field(default_factory=list)  # accepted, in its current transaction


class TransactionHistories(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.log: list[tuple[bytes, bytes | None]] = []
        self.machine = TransactionCoordinator(TransactionLimits())
        self.leaders: dict[tuple[TopicPartition, int], Leader] = {}
        self.now_ms = 0
        self.next_id = 0
        self.next_record = 0
        self.instances: list[Instance] = []
        self.markers: list[tuple[Transaction, TopicPartition]] = []  # sent, and perhaps delayed
        self.delivered: list[tuple[Transaction, TopicPartition]] = []
        self.transactions: list[tuple[list[int], bool]] = []  # what clients were told: records, committed

    # -- the coordinator -----------------------------------------------------------------------

    def carry_out(self, decision: TransactionDecision) -> object:
        for record in decision.records:
            self.log.append(self.machine.encode(record))
            self.machine.apply(record)
        for transaction in self.machine.take_prepared():
            self.markers += [(transaction, partition) for partition in transaction.partitions]
            if not transaction.partitions:
                self.carry_out(self.machine.complete(transaction, self.now_ms))
        if isinstance(decision.answer, KafkaError):
            raise decision.answer
        return decision.answer

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id

    @rule()
    def fail_over(self) -> None:
        """The next coordinator loads the log. What it finds prepared is sent again."""
        self.machine = TransactionCoordinator(TransactionLimits())
        last = dict(self.log)
        for key, value in last.items():
            record = self.machine.decode(key, value)
            assert record is not None
            self.machine.apply(record)
        for transaction in self.machine.take_prepared():
            self.markers += [(transaction, partition) for partition in transaction.partitions]

    # -- producers -----------------------------------------------------------------------------

    @rule(version=VERSIONS, lost=st.booleans())
    def start_an_instance(self, version: int, lost: bool) -> None:
        request = InitProducerId(NAME, TIMEOUT_MS)
        try:
            try:
                answer = self.carry_out(self.machine.init_producer_id(request, self.now_ms))
            except ProducerIdRequired:
                answer = self.carry_out(self.machine.init_producer_id(request, self.now_ms, self.new_id()))
        except KafkaError:
            return
        if not lost:
            assert isinstance(answer, Producer)
            self.instances.append(Instance(answer, version))

    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        """Any instance, the newest or a zombie, writes to any partition."""
        if not self.instances:
            return
        instance = data.draw(st.sampled_from(self.instances[-3:]))
        partition = data.draw(st.sampled_from(PARTITIONS))
        producer = instance.producer
        leader = self.leaders.setdefault((partition, producer.producer_id), Leader())
        if producer.epoch < leader.epoch:
            return  # INVALID_PRODUCER_EPOCH
        if not leader.open_ or leader.epoch != producer.epoch:
            assert not leader.open_ or producer.epoch > leader.epoch
            try:
                added = frozenset([partition])
                self.carry_out(
                    self.machine.add_partitions(NAME, producer, added, instance.version, self.now_ms)
                )
            except KafkaError:
                return
            assert not leader.open_, "a producer with a new epoch writes into an open transaction"
        leader.epoch = producer.epoch
        self.next_record += 1
        leader.open_.append(self.next_record)
        instance.records.append(self.next_record)

    @rule(data=st.data(), commit=st.booleans(), lost=st.booleans())
    def end(self, data: st.DataObject, commit: bool, lost: bool) -> None:
        if not self.instances:
            return
        instance = data.draw(st.sampled_from(self.instances[-3:]))
        request = EndTransaction(NAME, instance.producer, commit, instance.version)
        try:
            try:
                answer = self.carry_out(self.machine.end(request, self.now_ms))
            except ProducerIdRequired:
                answer = self.carry_out(self.machine.end(request, self.now_ms, self.new_id()))
        except KafkaError:
            return
        if lost:
            return  # it may retry, with the same epoch and the same outcome or another one
        assert isinstance(answer, Producer)
        self.transactions.append((instance.records, commit))
        instance.producer, instance.records = answer, []

    @rule(ms=st.integers(1, 2 * TIMEOUT_MS))
    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        for decision in self.machine.expire(self.now_ms):
            self.carry_out(decision)

    # -- markers -------------------------------------------------------------------------------

    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """Deliver any marker; complete a transaction that has them all."""
        if not self.markers:
            return
        marker = self.markers.pop(data.draw(st.integers(0, len(self.markers) - 1)))
        self.append(*marker)
        self.delivered.append(marker)
        if not any(each == marker[0] for each, _ in self.markers):
            self.carry_out(self.machine.complete(marker[0], self.now_ms))

    @rule(data=st.data())
    def deliver_again(self, data: st.DataObject) -> None:
        """A request is repeated long after its transaction. Only version 2 is safe against that."""
        late = [each for each in self.delivered if each[0].client_version == EPOCH_BUMP_VERSION]
        if late:
            self.append(*data.draw(st.sampled_from(late)))

    def append(self, transaction: Transaction, partition: TopicPartition) -> None:
        leader = self.leaders.setdefault((partition, transaction.producer_id), Leader())
        leader.marker(
            transaction.producer_epoch,
            commit=transaction.state.is_commit,
            version=transaction.client_version,
        )

    # -- what must hold ------------------------------------------------------------------------

    @invariant()
    def an_open_transaction_is_known_to_its_coordinator(self) -> None:
        """Otherwise nobody would ever write its marker, and readers would wait for ever."""
        found = self.machine.transactions.get(NAME)
        for (partition, producer_id), leader in self.leaders.items():
            if leader.open_:
                assert found is not None
                assert producer_id == found.producer_id
                pending = {each for transaction, each in self.markers if transaction == found}
                assert partition in (pending if found.state.is_prepared else found.partitions), (
                    f"{partition} hangs: {found}"
                )

    @invariant()
    def what_was_said_is_so(self) -> None:
        """A transaction whose end was acknowledged has this outcome everywhere, or markers on their way."""
        for records, committed in self.transactions:
            for leader in self.leaders.values():
                wrong = leader.aborted if committed else leader.committed
                assert not set(records) & set(wrong)

    @invariant()
    def the_log_has_the_state(self) -> None:
        found = self.machine.transactions.get(NAME)
        if found is not None:
            key, value = self.machine.encode(TransactionRecord(NAME, found))
            assert dict(self.log)[key] == value
        counted = {state: int(found is not None and found.state is state) for state in TransactionState}
        assert self.machine.counts == counted


TransactionHistories.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=40, deadline=None
)
TestTransactionHistories = TransactionHistories.TestCase
