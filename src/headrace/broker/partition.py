"""One replica of a partition: its log, its leader, and its high watermark."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import IntEnum
from functools import partial
from typing import NamedTuple

from headrace.broker.errors import (
    LeadershipInterrupted,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeader,
    UnknownLeaderEpoch,
)
from headrace.broker.meters import TopicMeter
from headrace.broker.purgatory import Commit, WaitingAcks, WaitingFetch
from headrace.controller.errors import FencedLeaderEpoch, PolicyViolation
from headrace.coordination.znodes import PartitionState
from headrace.coordinator.decision import Producer
from headrace.protocol.batch import BatchHeader, read_header, read_offset_and_size
from headrace.protocol.compression import Buffer
from headrace.protocol.control_records import encode_end_txn_batch
from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.replication.follower import UNKNOWN, EpochEnd, find_divergence
from headrace.replication.leader import Leader
from headrace.storage.errors import CorruptLog, InvalidTxnState, OffsetOutOfRange, StorageError
from headrace.storage.inspection import PreparedBatch
from headrace.storage.log import Appended, Log
from headrace.storage.producer_state import EPOCH_BUMP_VERSION
from headrace.storage.time_lookup import FoundOffset
from headrace.storage.txn_index import AbortedTxn

ANY_EPOCH = -1
Run = Callable[[Callable[[], None]], Awaitable[None]]

logger = logging.getLogger(__name__)


def monotonic_ms() -> int:
    """Return the time by which follower lag is measured; it does not change when the clock is set."""
    return time.monotonic_ns() // 1_000_000


class Isolation(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class Fetched(NamedTuple):
    """What a Fetch returns of one partition."""

    data: Buffer
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[AbortedTxn] | None  # None: the reader asked for read_uncommitted


class Write(NamedTuple):
    """A batch that is in the leader's log."""

    appended: Appended
    commit: Commit | None  # None: it is committed, or the producer asked for acks=1


class Verification:
    """The question to a transaction coordinator whether a producer's transaction includes a partition.

    Batches that arrive before the answer are appended in their order when it is there: `finish` calls what
    was passed to `when_done`, with the error or None. A future would let a later batch overtake them.
    """

    __slots__ = ("_error", "_is_done", "_waiting", "epoch", "holds", "leader_epoch")

    def __init__(self, epoch: int, leader_epoch: int) -> None:
        self.epoch = epoch  # of the producer
        self.leader_epoch = leader_epoch  # of the partition when the question was asked
        self.holds = 0  # batches that are neither appended nor refused yet
        self._waiting: list[Callable[[KafkaError | None], None]] = []
        self._is_done = False
        self._error: KafkaError | None = None

    def when_done(self, action: Callable[[KafkaError | None], None]) -> None:
        if self._is_done:
            action(self._error)
        else:
            self._waiting.append(action)

    def finish(self, error: KafkaError | None) -> None:
        """Call the actions that wait."""
        self._is_done, self._error = True, error
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            try:
                action(error)
            except Exception:  # the batches after it have nothing to do with it
                logger.exception("a batch could not be appended after its verification")


class SteppedDown(NamedTuple):
    """A leader's promise to accept no more writes: the controller and partition epoch of the request."""

    controller_epoch: int
    partition_epoch: int

    def is_answered_by(self, state: PartitionState) -> bool:
        """Return whether `state` has a later controller epoch or partition epoch than the promise."""
        return state.controller_epoch > self.controller_epoch or state.version > self.partition_epoch


def _next_offset(data: Buffer) -> int:
    """Return the offset after the last batch in `data`."""
    position = size = 0
    while position < len(data):
        _, size = read_offset_and_size(data, position)
        position += size
    return read_header(data, position - size).next_offset


class Partition:
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
        self.id = id_
        self.meter = meter or TopicMeter()
        self.topic_id = topic_id
        self.log = log
        self.high_watermark = max(log.log_start_offset, min(high_watermark, log.log_end_offset))
        self._moved: set[Partition] = set() if moved is None else moved
        self._moved.add(self)
        self.min_insync_replicas = 1
        self.throttled_for_followers = False  # that are not in the ISR
        self.throttled_as_follower = False
        self.replicas: Sequence[int] = ()
        self.leadership: Leader | None = None  # while this broker leads
        self._broker_id = broker_id
        self._stepped_down: SteppedDown | None = None
        self._state: PartitionState | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.verifications: dict[int, Verification] = {}  # by producer id, until their first append
        self._readers: set[WaitingFetch] = set()  # wait for the high watermark
        self._followers: set[WaitingFetch] = set()  # wait for the log's end
        self._waiting_acks = WaitingAcks()

    # -- roles ---------------------------------------------------------------------------------

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
        if self.leadership is None or state.leader != self._broker_id:
            self.verifications.clear()  # another leader may append markers, or has done so
        self._state, self.replicas = state, replicas
        if state.leader == self._broker_id:
            self._lead(state, now_ms, is_new=is_new)
        else:
            self.leadership = None
            self._waiting_acks.fail(
                NotLeader(f"{self.id}: broker {state.leader} leads (NOT_LEADER_OR_FOLLOWER)")
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
                NotEnoughReplicasAfterAppend(
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
            raise NotLeader(
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
            raise UnknownLeaderEpoch(
                f"{self.id}: leader epoch {epoch} is unknown, current is {self.leader_epoch} "
                "(UNKNOWN_LEADER_EPOCH)"
            )

    # -- handing leadership over ---------------------------------------------------------------

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
            raise NotLeader(f"{self.id}: broker {self._broker_id} has stepped down (NOT_LEADER_OR_FOLLOWER)")

    # -- writing -------------------------------------------------------------------------------

    def append(
        self, data: Buffer | PreparedBatch, *, acks_all: bool, verification: "Verification | None" = None
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

    def append_internal(self, data: Buffer, verification: "Verification | None" = None) -> Write:
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

    def _ensure_verified(self, header: BatchHeader, verification: "Verification | None") -> None:
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
                raise LeadershipInterrupted(
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
            raise NotEnoughReplicas(
                f"{self.id}: the ISR has {len(self.isr)} replicas, min.insync.replicas is "
                f"{self.min_insync_replicas} (NOT_ENOUGH_REPLICAS)"
            )

    @property
    def _required_isr_size(self) -> int:
        return min(self.min_insync_replicas, len(self.replicas))

    def _grown(self, size: int | None) -> None:
        """Complete the requests that wait for an append of `size` bytes.

        None stands for a marker: the last stable offset may advance by any number of bytes.
        """
        for waiting in tuple(self._followers):
            if size is None:
                waiting.wake()
            else:
                waiting.arrived(size)
        self._commit(size)

    def _commit(self, size: int | None = None) -> None:
        """Advance the high watermark as far as the ISR allows, and complete the requests that wait for it.

        `size` is what was just appended: if it is committed at once, consumers can read that many bytes more.
        """
        assert self.leadership is not None, "only a leader advances the high watermark"
        end = self.log.log_end_offset
        if self.high_watermark >= end:
            return  # everything is committed, as in every partition without writes
        committed = self.leadership.high_watermark(end, self.high_watermark)
        if committed == self.high_watermark:
            return
        self.high_watermark = committed
        self._moved.add(self)
        for waiting in tuple(self._readers):
            if size is not None and committed == end:
                waiting.arrived(size)
            else:
                waiting.look_again()
        self._waiting_acks.complete(committed)

    @property
    def knows_what_is_committed(self) -> bool:
        """Whether the high watermark has reached what was committed before this leader epoch."""
        return self.leadership is None or self.high_watermark >= self.leadership.epoch_start_offset

    def commit_of_log_end(self) -> Commit | None:
        """Return a future for when everything in the log is committed, or None if it is."""
        end = self.log.log_end_offset
        if end <= self.high_watermark:
            return None
        if self._loop is None:  # kept, because asyncio.get_running_loop() is a system call
            self._loop = asyncio.get_running_loop()
        return self._waiting_acks.add(end, self._loop)

    # -- followers -----------------------------------------------------------------------------

    def follower_fetches(self, broker_id: int, offset: int, *, broker_epoch: int, now_ms: int) -> None:
        """Record that a follower has every record before `offset`; this may advance the high watermark."""
        leadership = self.leadership
        assert leadership is not None, "a follower's fetch is refused unless this broker leads"
        if broker_id not in leadership.followers:
            raise NotLeader(f"broker {broker_id} has no replica of {self.id} (NOT_LEADER_OR_FOLLOWER)")
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

        A leader whose log is offline proposes an ISR without itself, so that another broker leads.
        """
        if self.leadership is None:
            return None
        if self.log.offline is not None:
            others = self.leadership.isr & set(live) - {self._broker_id}
            return frozenset(others) or None
        return self.leadership.desired_isr(
            high_watermark=self.high_watermark,
            log_end_offset=self.log.log_end_offset,
            now_ms=now_ms,
            max_lag_ms=max_lag_ms,
            live=live,
        )

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
            self.log.append_as_follower(data)
            self.meter.replicated_in += size
            for waiting in tuple(self._followers):
                waiting.arrived(size)
        self._follow_watermark(high_watermark)
        if log_start_offset > self.log.log_start_offset:
            self.log.delete_records_before(min(log_start_offset, self.high_watermark))

    def _follow_watermark(self, high_watermark: int) -> None:
        reached = max(self.high_watermark, min(high_watermark, self.log.log_end_offset))
        if reached != self.high_watermark:
            self.high_watermark = reached
            self._moved.add(self)
            for waiting in tuple(self._readers):
                waiting.look_again()

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

    # -- reading -------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, isolation: Isolation, *, at_least_one: bool) -> Fetched:
        """Return batches from `offset` to the high watermark, or to the last stable offset."""
        stable = self.log.last_stable_offset(self.high_watermark)
        end = stable if isolation is Isolation.READ_COMMITTED else self.high_watermark
        data = self.log.read(offset, max_bytes, max_offset=end, at_least_one=at_least_one)
        aborted = None
        if isolation is Isolation.READ_COMMITTED:
            aborted = self.log.aborted_transactions(offset, partial(_next_offset, data)) if data else ()
        return Fetched(data, self.high_watermark, stable, self.log.log_start_offset, aborted)

    def read_as_replica(self, offset: int, max_bytes: int, *, at_least_one: bool) -> Fetched:
        """Return batches from `offset` to the log end offset."""
        data = self.log.read(offset, max_bytes, at_least_one=at_least_one)
        stable = self.log.last_stable_offset(self.high_watermark)
        return Fetched(data, self.high_watermark, stable, self.log.log_start_offset, None)

    def ensure_readable(self, epoch: int) -> None:
        """Raise NotLeader unless clients may read here: from the leader, or from a follower in the ISR."""
        if self.leadership is None and (self.leader == -1 or self._broker_id not in self.isr):
            raise NotLeader(
                f"{self.id}: broker {self.leader} leads, not {self._broker_id} (NOT_LEADER_OR_FOLLOWER)"
            )
        if epoch != ANY_EPOCH:
            self._ensure_epoch(epoch)

    def end_offset(self, isolation: Isolation | None) -> int:
        """Return the offset after the last one that a reader sees; without isolation the log end offset."""
        if isolation is None:
            return self.log.log_end_offset
        if isolation is Isolation.READ_COMMITTED:
            return self.log.last_stable_offset(self.high_watermark)
        return self.high_watermark

    async def find(self, timestamp: int | None, run: Run) -> FoundOffset | None:
        """Return the first record at `timestamp` or later; None finds the maximum. `run` uses a thread."""
        while True:
            cuts = self.log.cuts
            search = self.log.timestamp_search(timestamp)
            try:
                while (step := search.next_step()) is not None:
                    await run(step)
            except CorruptLog:
                if self.log.cuts == cuts:  # otherwise segments were deleted during the search
                    raise
            except OSError as error:
                if self.log.cuts == cuts:
                    raise self.log.failed("search", error) from error
            else:
                if search.found is None or search.found.offset >= self.log.log_start_offset:
                    return search.found

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

    # -- waiting -------------------------------------------------------------------------------

    def add_waiting(self, fetch: WaitingFetch, *, as_replica: bool) -> None:
        (self._followers if as_replica else self._readers).add(fetch)

    def discard_waiting(self, fetch: WaitingFetch) -> None:
        self._readers.discard(fetch)
        self._followers.discard(fetch)

    def wake(self) -> None:
        """Complete every waiting fetch: something other than new records has changed."""
        for waiting in (*self._readers, *self._followers):
            waiting.wake()

    def close(self) -> None:
        """Answer every waiting request: this broker no longer has the replica."""
        self.leadership = None
        self._waiting_acks.fail(
            NotLeader(f"{self.id} has no replica on broker {self._broker_id} (NOT_LEADER_OR_FOLLOWER)")
        )
        self.wake()
