"""One replica of a partition: its log, its leader, and its high watermark."""

import logging
import time
from collections.abc import Collection, Sequence
from typing import NamedTuple

from headrace.broker import errors
from headrace.broker.meters import TopicMeter
from headrace.broker.replicas.committed_log import CommittedLog
from headrace.broker.replicas.pending_verification import Verification
from headrace.broker.replicas.purgatory import Commit
from headrace.coordination.znodes import PartitionState
from headrace.coordinators.decision import Producer
from headrace.protocol.batch import BatchHeader, read_header
from headrace.protocol.compression import Buffer
from headrace.protocol.control_records import encode_end_txn_batch
from headrace.protocol.ids import TopicPartition
from headrace.protocol.kafka_errors import FencedLeaderEpoch, PolicyViolation
from headrace.replication.follower import UNKNOWN, EpochEnd, find_divergence
from headrace.replication.leader import Leader
from headrace.storage.append.inspection import PreparedBatch
from headrace.storage.errors import InvalidTxnState, OffsetOutOfRange, StorageError
from headrace.storage.log import Appended, Log
from headrace.storage.producers.state import EPOCH_BUMP_VERSION

ANY_EPOCH = -1

logger = logging.getLogger(__name__)


def monotonic_ms() -> int:
    """Return the time by which follower lag is measured; it does not change when the clock is set."""
    return time.monotonic_ns() // 1_000_000


class Write(NamedTuple):
    """A batch that is in the leader's log."""

    appended: Appended
    commit: Commit | None  # None: it is committed, or the producer asked for acks=1


class SteppedDown(NamedTuple):
    """A leader's promise to accept no more writes: the controller and partition epoch of the request."""

    controller_epoch: int
    partition_epoch: int

    def is_answered_by(self, state: PartitionState) -> bool:
        """Return whether `state` has a later controller epoch or partition epoch than the promise."""
        return state.controller_epoch > self.controller_epoch or state.version > self.partition_epoch


class Partition(CommittedLog):
    """A replica of this broker. Every method is called on the event loop."""

    def __init__(
        self,
        id_: TopicPartition,
        topic_id: bytes,
        log: Log,
        broker_id: int,
        *,
        high_watermark: int = 0,
        meter: TopicMeter | None = None,
        moved: "set[Partition] | None" = None,
    ) -> None:
        """The partition adds itself to `moved` when its high watermark has moved."""
        self.id = id_  # first: simulations order partitions by it
        super().__init__(log, high_watermark, moved)
        self.meter = meter or TopicMeter()
        self.topic_id = topic_id
        self.min_insync_replicas = 1
        self.throttled_for_followers = False  # that are not in the ISR
        self.throttled_as_follower = False
        self.replicas: Sequence[int] = ()
        self._broker_id = broker_id
        self._stepped_down: SteppedDown | None = None
        self._state: PartitionState | None = None
        self.repair_failed = False  # in this leader epoch
        self._handed_over: set[int] = set()  # damaged segments, because of which this broker led no longer
        self.verifications: dict[int, Verification] = {}  # by producer id, until their first append

    @property
    def leader(self) -> int:
        return -1 if self._state is None else self._state.leader

    @property
    def leader_epoch(self) -> int:
        return -1 if self._state is None else self._state.leader_epoch

    @property
    def version(self) -> int:
        """The partition epoch: how often the state in ZooKeeper was written."""
        return -1 if self._state is None else self._state.version

    @property
    def isr(self) -> Collection[int]:
        return () if self._state is None else self._state.isr

    def become(self, state: PartitionState, replicas: Sequence[int], now_ms: int) -> bool:
        """Become leader or follower as `state` says; an older state than the current one is ignored.

        Return whether there is a new leader epoch.
        """
        old = self._state
        if self._stepped_down is not None and self._stepped_down.is_answered_by(state):
            self._stepped_down = None
        if old is not None and (state.leader_epoch, state.version) <= (old.leader_epoch, old.version):
            if state.version == old.version:
                self._use_replicas(replicas, now_ms)
            return False  # an ISR change that was proposed for the same state may be pending
        is_new = old is None or state.leader_epoch > old.leader_epoch
        if is_new:
            self.repair_failed = False
        if self.leadership is not None and state.leader != self._broker_id:
            self._handed_over = set(self.log.damaged)
        if self.leadership is None or state.leader != self._broker_id:
            self.verifications.clear()  # another leader may append markers, or has done so
        self._state, self.replicas = state, replicas
        if state.leader == self._broker_id:
            self._lead(state, now_ms, is_new=is_new)
        else:
            self.leadership = None
            self._waiting_acks.fail(
                errors.NotLeader(f"{self.id}: broker {state.leader} leads (NOT_LEADER_OR_FOLLOWER)")
            )
        if is_new:
            self.wake()
        return is_new

    def _use_replicas(self, replicas: Sequence[int], now_ms: int) -> None:
        """Apply a changed assignment, which comes without a new partition epoch."""
        self.replicas = replicas
        if self.leadership is not None:
            self.leadership.use_replicas(replicas, now_ms)

    def _lead(self, state: PartitionState, now_ms: int, *, is_new: bool) -> None:
        if self.leadership is None or is_new:
            self._note_epoch(state.leader_epoch)
            self.leadership = Leader.begin(
                self._broker_id,
                replicas=self.replicas,
                isr=state.isr,
                min_insync_replicas=self.min_insync_replicas,
                log_end_offset=self.log.log_end_offset,
                now_ms=now_ms,
            )
            self.leadership.use_isr(state.isr, state.elr)
        else:
            self._count_isr(len(state.isr) - len(self.leadership.isr))
            self.leadership.use_replicas(self.replicas, now_ms)
            self.leadership.use_isr(state.isr, state.elr)
        self._commit()
        if len(self.isr) < self._required_isr_size:
            self._waiting_acks.fail(
                errors.NotEnoughReplicasAfterAppend(
                    f"{self.id}: the ISR has shrunk to {list(self.isr)} (NOT_ENOUGH_REPLICAS_AFTER_APPEND)"
                )
            )

    def _count_isr(self, more: int) -> None:
        self.meter.isr_expands += more > 0
        self.meter.isr_shrinks += more < 0

    def _note_epoch(self, epoch: int) -> None:
        try:
            self.log.begin_epoch(epoch)
        except StorageError as error:  # this leader will propose an ISR without itself
            logger.error("%s: %s", self.id, error)  # noqa: TRY400  the message has the reason

    def use_min_insync_replicas(self, count: int) -> None:
        self.min_insync_replicas = count
        if self.leadership is not None:
            self.leadership.min_insync_replicas = count
            self._commit()

    def ensure_leader(self, epoch: int = ANY_EPOCH) -> None:
        """Raise unless this broker is the leader, in the leader epoch of the request."""
        if self.leadership is None:
            raise errors.NotLeader(
                f"{self.id}: broker {self.leader} leads, not {self._broker_id} (NOT_LEADER_OR_FOLLOWER)"
            )
        if epoch != ANY_EPOCH:
            self._ensure_epoch(epoch)

    def _ensure_epoch(self, epoch: int) -> None:
        if epoch < self.leader_epoch:
            raise FencedLeaderEpoch(
                f"{self.id}: leader epoch {epoch} is fenced, current is {self.leader_epoch} "
                "(FENCED_LEADER_EPOCH)"
            )
        if epoch > self.leader_epoch:
            raise errors.UnknownLeaderEpoch(
                f"{self.id}: leader epoch {epoch} is unknown, current is {self.leader_epoch} "
                "(UNKNOWN_LEADER_EPOCH)"
            )

    def step_down(self, controller_epoch: int, partition_epoch: int) -> SteppedDown | None:
        """Accept no more writes until a later state arrives; return None if the current one is later."""
        if self.version > partition_epoch:
            return None
        self._stepped_down = SteppedDown(controller_epoch, partition_epoch)
        return self._stepped_down

    def keep_leading(self, stepped_down: SteppedDown) -> None:
        """Accept writes again, unless there was another request to step down since."""
        if self._stepped_down is stepped_down:
            self._stepped_down = None

    def has_all_records(self, broker_id: int) -> bool:
        """Return whether the replica on another broker has every record of this log."""
        if self.leadership is None or self.log.offline is not None:
            return True
        follower = self.leadership.followers.get(broker_id)
        return follower is not None and follower.log_end_offset >= self.log.log_end_offset

    def ensure_serving(self) -> None:
        """Raise NotLeader if this leader has stepped down: another broker may lead by now."""
        if self._stepped_down is not None:
            raise errors.NotLeader(
                f"{self.id}: broker {self._broker_id} has stepped down (NOT_LEADER_OR_FOLLOWER)"
            )

    def append(
        self, data: Buffer | PreparedBatch, *, acks_all: bool, verification: Verification | None = None
    ) -> Write:
        """Append a client's batch and complete the fetches that wait for it.

        With `acks_all`, NotEnoughReplicas is raised while the ISR is smaller than min.insync.replicas. The
        first batch of a transaction needs a `verification`.
        """
        self.ensure_leader()
        self.ensure_serving()
        if acks_all:
            self.ensure_enough_replicas()
        batch = data if isinstance(data, PreparedBatch) else self.log.prepare(data)
        header = batch.header
        is_first = header.is_transactional and not self._is_in_transaction(header)
        if is_first and self.log.producers.check(header) is None:  # a duplicate needs no verification
            self._ensure_verified(header, verification)
        appended = self.log.append_prepared(batch, leader_epoch=self.leader_epoch)
        if not appended.duplicate:
            self.meter.appended(appended.last_offset - appended.base_offset + 1, batch.received_bytes)
            self._grown(len(batch.data))
        # A duplicate waits for the first write of its batch, which may be uncommitted.
        return Write(appended, self.commit_of_log_end() if acks_all else None)

    def append_internal(self, data: Buffer, verification: Verification | None = None) -> Write:
        """Append a batch of a coordinator of this broker, with acks=all."""
        self.ensure_leader()
        self.ensure_serving()
        self.ensure_enough_replicas()
        header = read_header(data)
        if header.is_transactional and not self._is_in_transaction(header):
            self._ensure_verified(header, verification)
        appended = self.log.append_internal(data, leader_epoch=self.leader_epoch)
        self._grown(len(data))
        return Write(appended, self.commit_of_log_end())

    def append_marker(
        self, producer: Producer, *, commit: bool, coordinator_epoch: int, transaction_version: int
    ) -> Write:
        """Append the marker that ends the producer's transaction on this partition, with acks=all."""
        self.ensure_leader()
        self.ensure_serving()
        self.ensure_enough_replicas()
        marker = encode_end_txn_batch(
            producer.producer_id,
            producer.epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            timestamp=self.log.now_ms(),
        )
        appended = self.log.append_internal(
            marker, leader_epoch=self.leader_epoch, transaction_version=transaction_version
        )
        verification = self.verifications.get(producer.producer_id)
        if verification is not None and (
            verification.epoch < producer.epoch or transaction_version < EPOCH_BUMP_VERSION
        ):
            del self.verifications[producer.producer_id]  # it was for the transaction that has ended
        self._grown(None)
        return Write(appended, self.commit_of_log_end())

    def _is_in_transaction(self, header: BatchHeader) -> bool:
        """Return whether the transaction of the batch has records here, so that its coordinator knows it."""
        return self.log.producers.is_in_transaction(header.producer_id, header.producer_epoch)

    def _ensure_verified(self, header: BatchHeader, verification: Verification | None) -> None:
        """Raise InvalidTxnState unless the coordinator knows that this partition is in the transaction.

        `verification` says so, unless a marker has been appended since. Without it the transaction would
        never get a marker here. Raise LeadershipInterrupted, which is retriable, if another broker may have
        appended the marker: the retry is verified again.
        """
        producer_id, epoch = header.producer_id, header.producer_epoch
        self.log.producers.check_epoch(header)
        current = self.verifications.get(producer_id)
        if verification is None or current is not verification or verification.epoch != epoch:
            if verification is not None and verification.leader_epoch != self.leader_epoch:
                raise errors.LeadershipInterrupted(
                    f"{self.id}: the transaction of producer {producer_id} was verified in leader epoch "
                    f"{verification.leader_epoch}, current is {self.leader_epoch} (NOT_LEADER_OR_FOLLOWER)"
                )
            raise InvalidTxnState(
                f"{self.id}: the transaction of producer {producer_id} with epoch {epoch} is not verified "
                "(INVALID_TXN_STATE)"
            )

    def ensure_enough_replicas(self) -> None:
        """Raise NotEnoughReplicas while the ISR is smaller than min.insync.replicas."""
        if len(self.isr) < self._required_isr_size:
            raise errors.NotEnoughReplicas(
                f"{self.id}: the ISR has {len(self.isr)} replicas, min.insync.replicas is "
                f"{self.min_insync_replicas} (NOT_ENOUGH_REPLICAS)"
            )

    @property
    def _required_isr_size(self) -> int:
        return min(self.min_insync_replicas, len(self.replicas))

    def follower_fetches(self, broker_id: int, offset: int, *, broker_epoch: int, now_ms: int) -> None:
        """Record that a follower has every record before `offset`; this may advance the high watermark."""
        leadership = self.leadership
        assert leadership is not None, "a follower's fetch is refused unless this broker leads"
        if broker_id not in leadership.followers:
            raise errors.NotLeader(f"broker {broker_id} has no replica of {self.id} (NOT_LEADER_OR_FOLLOWER)")
        leadership.fetched(
            broker_id,
            offset,
            log_end_offset=self.log.log_end_offset,
            now_ms=now_ms,
            broker_epoch=broker_epoch,
        )
        self._commit()

    def wanted_isr(self, *, now_ms: int, max_lag_ms: int, live: Collection[int]) -> frozenset[int] | None:
        """Return the ISR that this leader proposes, or None if the current one is right.

        A leader whose log is offline or has a damaged segment proposes an ISR without itself, so that
        another broker leads; because of the same damage only once: the others may have it, too.
        """
        if self.leadership is None:
            return None
        others = self.leadership.isr & set(live) - {self._broker_id}
        if self.log.offline is not None:
            return frozenset(others) or None
        if others and self.log.damaged.keys() - self._handed_over:
            return frozenset(others)
        return self.leadership.desired_isr(
            high_watermark=self.high_watermark,
            log_end_offset=self.log.log_end_offset,
            now_ms=now_ms,
            max_lag_ms=max_lag_ms,
            live=live,
        )

    def serve_follower(self, broker_id: int, offset: int) -> None:
        """Note that a follower is sent records; if it repeatedly cannot use them, have them checked."""
        assert self.leadership is not None, "a follower's fetch is refused unless this broker leads"
        if self.leadership.serve(broker_id, offset):
            self.log.suspect(offset)

    @property
    def is_repaired_first(self) -> bool:
        """Whether this follower fetches nothing and stays out of the ISR until its log is repaired."""
        return bool(self.log.damaged) and not self.repair_failed and self._broker_id not in self.isr

    def diverges(self, offset: int, last_epoch: int) -> EpochEnd | None:
        """Return where a follower's log diverges from this one, to which it has to truncate, or None."""
        parted = find_divergence(
            self.log.epochs, self.log.log_end_offset, offset=offset, last_epoch=last_epoch
        )
        if parted is not None and parted.end_offset == UNKNOWN:
            raise OffsetOutOfRange(offset, start=self.log.log_start_offset, end=self.log.log_end_offset)
        return parted

    def append_as_follower(self, data: Buffer, *, high_watermark: int, log_start_offset: int) -> None:
        """Append what the leader sent, and follow its high watermark and log start offset."""
        if data:
            size = len(data)
            self.log.append_as_follower(data, leader_epoch=self.leader_epoch)
            self.meter.replicated_in += size
            for waiting in tuple(self._followers):
                waiting.arrived(size)
        self._follow_watermark(high_watermark)
        if log_start_offset > self.log.log_start_offset:
            self.log.delete_records_before(min(log_start_offset, self.high_watermark))

    def truncate_to(self, offset: int) -> None:
        """Truncate the log to where it diverges from the leader's."""
        self.log.truncate_to(offset)
        self.high_watermark = min(self.high_watermark, self.log.log_end_offset)
        self._moved.add(self)

    def start_over_at(self, offset: int) -> None:
        """Restart with an empty log at `offset`: the leader has nothing before it any more."""
        self.log.truncate_fully(offset)
        self.high_watermark = offset
        self._moved.add(self)

    def ensure_readable(self, epoch: int) -> None:
        """Raise NotLeader unless clients may read here: from the leader, or from a follower in the ISR."""
        if self.leadership is None and (self.leader == -1 or self._broker_id not in self.isr):
            raise errors.NotLeader(
                f"{self.id}: broker {self.leader} leads, not {self._broker_id} (NOT_LEADER_OR_FOLLOWER)"
            )
        if epoch != ANY_EPOCH:
            self._ensure_epoch(epoch)

    def delete_records_before(self, offset: int) -> int:
        """Advance the log start offset to `offset`, at most to the high watermark, and return it."""
        self.ensure_leader()
        if self.log.config.compact and not self.log.config.delete:
            raise PolicyViolation(f"{self.id}: cleanup.policy has no delete (POLICY_VIOLATION)")
        if offset == -1:
            offset = self.high_watermark
        if offset > self.high_watermark:
            raise OffsetOutOfRange(offset, start=self.log.log_start_offset, end=self.high_watermark)
        self.log.delete_records_before(offset)
        return self.log.log_start_offset

    def close(self) -> None:
        """Answer every waiting request: this broker no longer has the replica."""
        self.leadership = None
        self._waiting_acks.fail(
            errors.NotLeader(f"{self.id} has no replica on broker {self._broker_id} (NOT_LEADER_OR_FOLLOWER)")
        )
        self.wake()
