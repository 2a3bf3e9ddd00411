"""Rules that keep records safe, each switched off by itself: the checks must notice.

A mutation is a context in which one rule is not in force. What is said of it is what then goes wrong.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from headrace.broker.coordinators.loading import Loader
from headrace.broker.coordinators.shard import CoordinatorShard
from headrace.broker.coordinators.transaction_markers import TransactionMarkers, TransactionShard
from headrace.broker.coordinators.transaction_verification import TransactionVerifier
from headrace.broker.coordinators.transactions import Transactions
from headrace.broker.membership.lease import Lease
from headrace.broker.replicas.isr_changes import IsrChanges
from headrace.broker.replicas.partition import ANY_EPOCH, Partition, Write
from headrace.broker.replicas.replicas import Replicas
from headrace.coordination.session import ANY_VERSION, Check
from headrace.coordination.znodes import ControllerEpoch, PartitionState
from headrace.coordinators.decision import Producer
from headrace.coordinators.group.coordinator import GroupCoordinator
from headrace.coordinators.transaction.coordinator import (
    EndTransaction,
    TransactionCoordinator,
    TransactionDecision,
)
from headrace.coordinators.transaction.state import NO_PRODUCER_EPOCH, Transaction
from headrace.protocol.between_brokers.update_metadata import UpdateMetadataRequest
from headrace.protocol.ids import TopicPartition
from headrace.replication import election, follower
from headrace.replication.controller import model, runner, store
from headrace.replication.controller.handover import Handover
from headrace.replication.controller.model import ClusterModel
from headrace.replication.controller.runner import Controller
from headrace.replication.controller.transactions import ElectedEpoch
from headrace.replication.leader import Leader
from headrace.storage.log import Appended
from headrace.storage.producers.producers import Producers
from headrace.storage.producers.state import ProducerState
from simulation.log import SimLog

Mutation = Callable[[], AbstractContextManager[object]]
MUTATIONS: dict[str, Mutation] = {}
OF_TRANSACTIONS: set[str] = set()
"""Mutations that only stories with transactions can notice."""


def _mutation(function: Callable[[], Iterator[None]]) -> Mutation:
    mutation = contextmanager(function)
    MUTATIONS[function.__name__] = mutation
    return mutation


def _transaction_mutation(function: Callable[[], Iterator[None]]) -> Mutation:
    OF_TRANSACTIONS.add(function.__name__)
    return _mutation(function)


# -- what is committed -------------------------------------------------------------------------


@_mutation
def the_high_watermark_ignores_what_is_proposed() -> Iterator[None]:
    """A replica that the controller has just taken into the set may lack what counts as committed."""
    with patch.object(Leader, "counted", property(lambda self: self.isr)):
        yield


@_mutation
def a_proposal_without_an_answer_is_withdrawn() -> Iterator[None]:
    """The same: the controller may have done what was proposed."""
    propose = IsrChanges._propose

    async def propose_once(self: IsrChanges, proposals: dict[Partition, frozenset[int]]) -> None:
        await propose(self, proposals)
        for partition in proposals:
            if partition.leadership is not None:
                partition.leadership.withdraw()

    with patch.object(IsrChanges, "_propose", propose_once):
        yield


@_mutation
def a_leader_commits_however_few_are_in_sync() -> Iterator[None]:
    """Then who left the set while too few were in sync lacks what is committed, and still may lead."""
    commit = Leader.high_watermark

    def high_watermark(self: Leader, log_end_offset: int, before: int) -> int:
        eligible, wanted = self.eligible, self.min_insync_replicas
        self.eligible, self.min_insync_replicas = frozenset(), 1
        try:
            return commit(self, log_end_offset, before)
        finally:
            self.eligible, self.min_insync_replicas = eligible, wanted

    with patch.object(Leader, "high_watermark", high_watermark):
        yield


@_mutation
def a_write_is_acknowledged_before_it_is_committed() -> Iterator[None]:
    with patch.object(Partition, "commit_of_log_end", lambda _self: None):
        yield


# -- who is in sync ----------------------------------------------------------------------------


@_mutation
def a_follower_comes_into_sync_without_what_is_older_than_its_leader() -> Iterator[None]:
    """It has all that this leader knows to be committed, and not all that an earlier one has committed."""
    begin = Leader.begin

    def begin_at_nothing(*args: Any, **options: Any) -> Leader:
        leader = begin(*args, **options)
        leader.epoch_start_offset = 0
        return leader

    with patch.object(Leader, "begin", begin_at_nothing):
        yield


@_mutation
def a_silent_follower_stays_in_sync_by_what_it_had() -> Iterator[None]:
    """It is taken back as soon as it has fallen out: nothing new is committed."""
    wants = Leader.desired_isr

    def wants_anybody(self: Leader, **options: Any) -> frozenset[int] | None:
        return wants(self, **options | {"now_ms": 0, "max_lag_ms": 0})

    with patch.object(Leader, "desired_isr", wants_anybody):
        yield


@_mutation
def a_proposal_that_is_refused_as_stale_is_forgotten() -> Iterator[None]:
    """If it was a controller of the past, nobody proposes again."""

    async def propose_all(self: IsrChanges) -> None:
        while self._candidates:
            partitions, self._candidates = self._candidates, set()
            proposals: dict[Partition, frozenset[int]] = {}
            for partition in partitions:
                wanted = None if partition.leadership is None else self._wanted(partition)
                if wanted is not None and partition.leadership is not None:
                    proposals[partition] = wanted
                    partition.leadership.propose(wanted)
            if proposals:
                await self._propose_safely(proposals)

    with patch.object(IsrChanges, "_propose_all", propose_all):
        yield


# -- who leads ---------------------------------------------------------------------------------


@_mutation
def anybody_may_lead() -> Iterator[None]:
    elect = election.elect

    def elect_anybody(partition: election.Partition, *args: Any, **options: Any) -> election.Partition:
        elected = elect(replace(partition, unclean_allowed=True), *args, **options)
        return replace(elected, unclean_allowed=partition.unclean_allowed)

    with patch.object(model, "elect", elect_anybody):
        yield


@_mutation
def a_broker_that_lost_power_is_believed() -> Iterator[None]:
    def believe(partition: election.Partition, _broker_id: int, _live: object) -> election.Partition:
        return partition

    with patch.object(model, "distrust", believe), patch.object(store, "distrust", believe):
        yield


@_mutation
def the_first_one_in_doubt_leads() -> Iterator[None]:
    """After a power cut of all machines nobody waits for those that may have more."""
    with patch.object(election, "_are_enough", lambda compared, _partition, **_options: bool(compared)):
        yield


@_mutation
def the_last_one_that_lost_power_leads() -> Iterator[None]:
    """Whoever is the only one left in the set is believed, whatever others still have."""

    def distrust(partition: election.Partition, broker_id: int, _live: object) -> election.Partition:
        elr = tuple(each for each in partition.elr if each != broker_id)
        isr = tuple(each for each in partition.isr if each != broker_id)
        return replace(partition, isr=isr, elr=elr) if isr or elr else partition

    with patch.object(model, "distrust", distrust), patch.object(store, "distrust", distrust):
        yield


@_mutation
def a_leader_that_restarts_keeps_its_epoch() -> Iterator[None]:
    """The controller does not look whether a broker is in another life than before."""
    changed, take = Controller.brokers_changed, Replicas.take

    async def brokers_changed(self: Controller, registrations: Any, epochs: Mapping[int, int]) -> None:
        known = {each: member.epoch for each, member in self.model.members.items()}
        await changed(self, registrations, {each: known.get(each, epoch) for each, epoch in epochs.items()})

    def take_any(self: Replicas, update: UpdateMetadataRequest) -> Any:
        forged = copy(update)
        forged.broker_epoch = self._broker_epoch()  # type: ignore[misc]
        return take(self, forged)

    with (
        patch.object(Controller, "brokers_changed", brokers_changed),
        patch.object(Replicas, "take", take_any),
    ):
        yield


@_mutation
def a_move_drops_who_was_brought_by_the_one_before() -> Iterator[None]:
    """Even if it is the only one in sync."""

    def begin_reassignment(partition: election.Partition, target: Sequence[int]) -> election.Partition:
        original = tuple(each for each in partition.replicas if each not in partition.adding)
        adding = tuple(each for each in target if each not in original)
        removing = tuple(each for each in original if each not in target)
        return replace(partition, replicas=(*target, *removing), adding=adding, removing=removing)

    with (
        patch.object(model, "begin_reassignment", begin_reassignment),
        patch.object(runner, "check_transition", lambda _before, _after: None),  # it would refuse the write
    ):
        yield


@_mutation
def a_replica_that_comes_back_passes_for_what_it_was() -> Iterator[None]:
    """It was taken away and has dropped its log; a leader that has not heard counts on that log."""
    with patch.object(
        election, "_on_fewer", lambda partition, replicas: replace(partition, replicas=replicas)
    ):
        yield


@_mutation
def a_broker_that_refuses_connections_counts_as_dead() -> Iterator[None]:
    """It is alive, holds its lease, and acknowledges writes that the next leader does not have."""
    reachable = Controller._reachable

    def settle(self: Controller, broker_id: int, is_reachable: bool) -> None:
        reachable(self, broker_id, is_reachable)
        self._settle_soon(None)

    live = property(lambda self: self.members.keys() - self.unreachable)
    with patch.object(Controller, "_reachable", settle), patch.object(ClusterModel, "live", live):
        yield


@_mutation
def a_leader_that_is_alive_is_replaced_without_being_asked() -> Iterator[None]:
    async def agree(
        _self: Handover, _leader: int, keys: list[TopicPartition], _changes: object
    ) -> set[TopicPartition]:
        return set(keys)

    with patch.object(Handover, "ask_to_step_down", agree):
        yield


@_mutation
def a_leader_serves_after_its_lease() -> Iterator[None]:
    with patch.object(Lease, "ensure", lambda _self, _partition: None):
        yield


@_mutation
def a_leader_takes_writes_after_it_has_stepped_down() -> Iterator[None]:
    with patch.object(Partition, "ensure_serving", lambda _self: None):
        yield


# -- what comes from the past ------------------------------------------------------------------


@_mutation
def a_broker_takes_on_an_older_state() -> Iterator[None]:
    become = Partition.become

    def become_anything(self: Partition, state: PartitionState, replicas: Sequence[int], now_ms: int) -> bool:
        if self._state is not None and self._state.version != state.version:
            self._state = replace(self._state, leader_epoch=-1, version=-1)
        return become(self, state, replicas, now_ms)

    with patch.object(Partition, "become", become_anything):
        yield


@_mutation
def a_leader_does_not_look_at_the_epoch_of_a_fetch() -> Iterator[None]:
    """A follower of another leader counts as one of its own."""
    ensure = Partition.ensure_leader
    with patch.object(Partition, "ensure_leader", lambda self, _epoch=ANY_EPOCH: ensure(self)):
        yield


@_mutation
def a_controller_writes_after_another_was_elected() -> Iterator[None]:
    anybody = Check(ControllerEpoch.path, ANY_VERSION)
    with patch.object(ElectedEpoch, "check", property(lambda _self: anybody)):
        yield


# -- logs that part ----------------------------------------------------------------------------


@_mutation
def a_leader_does_not_notice_that_a_log_has_parted() -> Iterator[None]:
    with patch("headrace.broker.replicas.partition.find_divergence", lambda *_args, **_options: None):
        yield


@_mutation
def a_follower_keeps_what_its_leader_does_not_have() -> Iterator[None]:
    """It cuts its log to where the leader's epoch ends, and not to where its own one does (KIP-279)."""

    def truncation_offset(_epochs: object, diverging: follower.EpochEnd, *, start: int, end: int) -> int:
        return max(min(diverging.end_offset, end), start)

    with patch.object(follower, "truncation_offset", truncation_offset):
        yield


@_mutation
def a_follower_cuts_its_log_to_what_it_knows_to_be_committed() -> Iterator[None]:
    """As Kafka did before KIP-101: what was committed since it last heard is gone."""

    def become(self: Partition, state: PartitionState, replicas: Sequence[int], now_ms: int) -> bool:
        is_new = _become(self, state, replicas, now_ms)
        if is_new and self.leadership is None:
            self.truncate_to(self.high_watermark)
        return is_new

    _become = Partition.become
    with patch.object(Partition, "become", become):
        yield


@_mutation
def a_producer_that_repeats_itself_is_not_noticed() -> Iterator[None]:
    with patch.object(ProducerState, "check", lambda _self, _batch: None):
        yield


# -- transactions ------------------------------------------------------------------------------


@_transaction_mutation
def a_batch_is_accepted_without_its_transaction_coordinator() -> Iterator[None]:
    """Nobody ever writes a marker for it."""
    with (
        patch.object(TransactionVerifier, "required", lambda *_arguments, **_named: None),
        patch.object(Partition, "_ensure_verified", lambda *_arguments: None),
    ):
        yield


@_transaction_mutation
def a_coordinator_forgets_what_was_prepared_before_it_was_loaded() -> Iterator[None]:
    applied = Transactions.applied

    def only_its_own(self: Transactions, shard: TransactionShard) -> None:
        if shard.partition.log.log_end_offset == getattr(shard, "_end_when_loaded", None):
            shard.machine.take_prepared()
        applied(self, shard)

    load = CoordinatorShard._load

    async def remember(self: CoordinatorShard[Any]) -> None:
        self._end_when_loaded = self.partition.log.log_end_offset  # type: ignore[attr-defined]
        await load(self)

    with (
        patch.object(Transactions, "applied", only_its_own),
        patch.object(CoordinatorShard, "_load", remember),
    ):
        yield


@_transaction_mutation
def readers_see_records_of_open_transactions() -> Iterator[None]:
    with patch.object(Producers, "first_unstable_offset", lambda _self, _high_watermark: None):
        yield


@_transaction_mutation
def aborted_transactions_are_left_out_of_what_is_fetched() -> Iterator[None]:
    with patch.object(SimLog, "aborted_transactions", lambda *_arguments: []):
        yield


@_transaction_mutation
def a_follower_does_not_remember_aborted_transactions() -> Iterator[None]:
    """When it leads, or is read from, its readers take aborted records for committed ones."""
    append = SimLog.append_as_follower

    def append_and_forget(self: SimLog, data: Any, *, leader_epoch: int) -> Appended:
        appended = append(self, data, leader_epoch=leader_epoch)
        self._aborted.clear()
        return appended

    with patch.object(SimLog, "append_as_follower", append_and_forget):
        yield


@_transaction_mutation
def markers_are_written_before_the_outcome_is_committed() -> Iterator[None]:
    """The next coordinator may not know of the outcome, and decides otherwise."""

    def write_at_once(self: Transactions, shard: TransactionShard, prepared: list[Transaction]) -> None:
        for transaction in prepared:
            self.markers.write(shard, transaction)

    with patch.object(Transactions, "_write_when_committed", write_at_once):
        yield


@_transaction_mutation
def a_transaction_is_complete_before_all_its_markers_are_written() -> Iterator[None]:
    """If the coordinator fails then, nobody writes the others."""

    def complete(self: TransactionMarkers, ending: Any, partitions: Iterable[TopicPartition]) -> None:
        ending.remaining.difference_update(partitions)
        self._complete(ending)

    with patch.object(TransactionMarkers, "_written", complete):
        yield


@_transaction_mutation
def a_new_instance_of_a_producer_keeps_the_epoch() -> Iterator[None]:
    """It fences nobody: both instances write into the same transactions."""

    def keep(found: Transaction, _expected: object) -> tuple[Producer, int]:
        return Producer(found.producer_id, max(found.producer_epoch, 0)), NO_PRODUCER_EPOCH

    with patch("headrace.coordinators.transaction.coordinator._next_epoch", keep):
        yield


@_transaction_mutation
def a_leader_accepts_older_epochs_of_a_producer() -> Iterator[None]:
    """A marker that arrives late ends a later transaction."""
    with patch.object(ProducerState, "check_epoch", lambda _self, _batch: None):
        yield


@_transaction_mutation
def a_coordinator_accepts_older_epochs_of_a_producer() -> Iterator[None]:
    """A fenced instance, or a request that arrives late, ends or joins a transaction that is not its own."""
    end, of_producer = TransactionCoordinator.end, TransactionCoordinator._of_producer

    def as_current(self: TransactionCoordinator, name: str, producer: Producer) -> Producer:
        found = self.transactions.get(name)
        is_known = found is not None and found.producer_id == producer.producer_id
        return found.producer if found is not None and is_known else producer

    def end_any(
        self: TransactionCoordinator, request: EndTransaction, *arguments: Any, **named: Any
    ) -> TransactionDecision:
        producer = as_current(self, request.transactional_id, request.producer)
        return end(self, request._replace(producer=producer), *arguments, **named)

    def of_any(self: TransactionCoordinator, name: str, producer: Producer) -> Transaction:
        return of_producer(self, name, as_current(self, name, producer))

    with (
        patch.object(TransactionCoordinator, "end", end_any),
        patch.object(TransactionCoordinator, "_of_producer", of_any),
    ):
        yield


@_transaction_mutation
def a_producer_keeps_its_epoch_from_one_transaction_to_the_next() -> Iterator[None]:
    """As before transaction version 2: a request that arrives late belongs to the next transaction."""
    prepared = Transaction.prepared

    def without_bump(self: Transaction, **named: Any) -> Transaction:
        return prepared(self, **named | {"client_version": 0})

    with patch.object(Transaction, "prepared", without_bump):
        yield


@_transaction_mutation
def a_verification_outlives_its_transaction() -> Iterator[None]:
    """A batch whose verification was on its way when the transaction ended has no transaction."""
    append = Partition.append_marker

    def append_and_keep(self: Partition, producer: Producer, **named: Any) -> Write:
        kept = self.verifications.get(producer.producer_id)
        write = append(self, producer, **named)
        if kept is not None:
            self.verifications[producer.producer_id] = kept
        return write

    with (
        patch.object(Partition, "append_marker", append_and_keep),
        patch.object(ProducerState, "check_epoch", lambda _self, _batch: None),  # it would refuse the batch
    ):
        yield


@_transaction_mutation
def a_transaction_never_times_out() -> Iterator[None]:
    """If its worker has crashed, it stays open."""

    def expire(self: TransactionCoordinator, now_ms: int) -> Iterator[TransactionDecision]:
        list(self.deadlines.due(now_ms))  # passed, and nothing follows
        return iter(())

    with patch.object(TransactionCoordinator, "expire", expire):
        yield


@_transaction_mutation
def groups_get_offsets_of_open_transactions() -> Iterator[None]:
    apply = GroupCoordinator.apply
    with patch.object(GroupCoordinator, "apply", lambda self, record, _producer_id=-1: apply(self, record)):
        yield


@_transaction_mutation
def offsets_are_lost_when_their_transaction_is_committed() -> Iterator[None]:
    end = GroupCoordinator.end_transaction

    def abort(self: GroupCoordinator, producer_id: int, *, committed: bool) -> None:
        del committed
        end(self, producer_id, committed=False)

    with patch.object(GroupCoordinator, "end_transaction", abort):
        yield


@_transaction_mutation
def a_group_coordinator_does_not_load_offsets_of_open_transactions() -> Iterator[None]:
    """They are lost if the transaction is committed afterwards."""
    finish = Loader.finish

    def without_open(self: Loader) -> Iterator[None]:
        self._open.clear()
        yield from finish(self)

    with patch.object(Loader, "finish", without_open):
        yield
