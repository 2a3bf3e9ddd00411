"""One partition on this broker: its log, who leads it, and how far its records are committed."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import IntEnum
from typing import NamedTuple

from headrace.broker.errors import (
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeader,
    UnknownLeaderEpoch,
)
from headrace.broker.meters import TopicMeter
from headrace.broker.purgatory import Commit, WaitingAcks, WaitingFetch
from headrace.controller.errors import FencedLeaderEpoch, PolicyViolation
from headrace.coordination.znodes import PartitionState
from headrace.protocol.compression import Buffer
from headrace.protocol.ids import TopicPartition
from headrace.replication.follower import UNKNOWN, EpochEnd, find_divergence
from headrace.replication.leader import Leader
from headrace.storage.errors import CorruptLog, OffsetOutOfRange, StorageError
from headrace.storage.inspection import PreparedBatch
from headrace.storage.log import Appended, Log
from headrace.storage.time_lookup import FoundOffset
from headrace.storage.txn_index import AbortedTxn

ANY_EPOCH = -1
Run = Callable[[Callable[[], None]], Awaitable[None]]

logger = logging.getLogger(__name__)


def monotonic_ms() -> int:
    """The clock by which followers lag: nobody can set it."""
    return time.monotonic_ns() // 1_000_000


class Isolation(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class Fetched(NamedTuple):
    """What a Fetch gets of one partition."""

    data: Buffer
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[AbortedTxn] | None  # None: the reader did not ask to be spared


class Write(NamedTuple):
    """A batch that is in the leader's log."""

    appended: Appended
    commit: Commit | None  # None: it is committed, or the producer asked for acks=1


class SteppedDown(NamedTuple):
    """A leader's promise to take no more writes: who asked for it, and in which state of the partition."""

    controller_epoch: int
    partition_epoch: int

    def is_answered_by(self, state: PartitionState) -> bool:
        """Whether `state` was decided after that: by a later controller, or in a later write of this one."""
        return state.controller_epoch > self.controller_epoch or state.version > self.partition_epoch


class Partition:
    """A replica that this broker has. Every method is called on the event loop."""

    def __init__(
        self,
        id_: TopicPartition,
        topic_id: bytes,
        log: Log,
        broker_id: int,
        *,
        high_watermark: int = 0,
        meter: TopicMeter | None = None,
    ) -> None:
        self.id = id_
        self.meter = meter or TopicMeter()
        self.topic_id = topic_id
        self.log = log
        self.high_watermark = max(log.log_start_offset, min(high_watermark, log.log_end_offset))
        self.min_insync_replicas = 1
        self.throttled_for_followers = False  # as long as they are not in sync
        self.throttled_as_follower = False
        self.replicas: Sequence[int] = ()
        self.leadership: Leader | None = None  # while this broker leads
        self._broker_id = broker_id
        self._stepped_down: SteppedDown | None = None
        self._state: PartitionState | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
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
        """How often the partition's state was written: Kafka's partition epoch."""
        return -1 if self._state is None else self._state.version

    @property
    def isr(self) -> Collection[int]:
        return () if self._state is None else self._state.isr

    def become(self, state: PartitionState, replicas: Sequence[int], now_ms: int) -> bool:
        """Take on the role that the controller has given; what is older than ours changes nothing.

        True if there is a new leader, or the old one in a new epoch.
        """
        old = self._state
        if self._stepped_down is not None and self._stepped_down.is_answered_by(state):
            self._stepped_down = None
        if old is not None and (state.leader_epoch, state.version) <= (old.leader_epoch, old.version):
            if state.version == old.version:
                self._use_replicas(replicas, now_ms)
            return False  # if it is the same, a proposal may be under way that it knows nothing of
        is_new = old is None or state.leader_epoch > old.leader_epoch
        self._state, self.replicas = state, replicas
        if state.leader == self._broker_id:
            self._lead(state, now_ms, is_new=is_new)
        else:
            self.leadership = None
            self._waiting_acks.fail(NotLeader(f"broker {state.leader} leads {self.id} now"))
        if is_new:
            self.wake()
        return is_new

    def _use_replicas(self, replicas: Sequence[int], now_ms: int) -> None:
        """Whoever answers a proposal says who is in sync, and not who has replicas: the update does."""
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
        if len(self.isr) < self._wanted_in_sync:
            self._waiting_acks.fail(
                NotEnoughReplicasAfterAppend(f"{self.id} has only {list(self.isr)} in sync any more")
            )

    def _count_isr(self, more: int) -> None:
        self.meter.isr_expands += more > 0
        self.meter.isr_shrinks += more < 0

    def _note_epoch(self, epoch: int) -> None:
        try:
            self.log.begin_epoch(epoch)
        except StorageError as error:  # it leads all the same, and has another lead as soon as it can
            logger.error("%s: %s", self.id, error)  # noqa: TRY400  the sentence says it all

    def use_min_insync_replicas(self, count: int) -> None:
        self.min_insync_replicas = count
        if self.leadership is not None:
            self.leadership.min_insync_replicas = count
            self._commit()

    def ensure_leader(self, epoch: int = ANY_EPOCH) -> None:
        """Raise unless this broker leads, and in the epoch that the client believes in."""
        if self.leadership is None:
            raise NotLeader(f"broker {self.leader} leads {self.id}, not broker {self._broker_id}")
        if epoch != ANY_EPOCH:
            self._ensure_epoch(epoch)

    def _ensure_epoch(self, epoch: int) -> None:
        if epoch < self.leader_epoch:
            raise FencedLeaderEpoch(f"{self.id} is at leader epoch {self.leader_epoch}, not {epoch}")
        if epoch > self.leader_epoch:
            raise UnknownLeaderEpoch(f"{self.id} is at leader epoch {self.leader_epoch}, not yet {epoch}")

    # -- handing leadership over ---------------------------------------------------------------

    def step_down(self, controller_epoch: int, partition_epoch: int) -> SteppedDown | None:
        """Take no more writes, until a later state says who leads; None if this one is later already."""
        if self.version > partition_epoch:
            return None
        self._stepped_down = SteppedDown(controller_epoch, partition_epoch)
        return self._stepped_down

    def keep_leading(self, stepped_down: SteppedDown) -> None:
        """Take writes again, unless another request to step down came since: nobody was told of this one."""
        if self._stepped_down is stepped_down:
            self._stepped_down = None

    def has_all_records(self, broker_id: int) -> bool:
        """Whether that replica has everything that this one acknowledged, or could."""
        if self.leadership is None or self.log.offline is not None:
            return True
        follower = self.leadership.followers.get(broker_id)
        return follower is not None and follower.log_end_offset >= self.log.log_end_offset

    def ensure_serving(self) -> None:
        """Raise if this leader has stepped down: another may lead by now."""
        if self._stepped_down is not None:
            raise NotLeader(f"{self.id}: broker {self._broker_id} is handing leadership over")

    # -- writing -------------------------------------------------------------------------------

    def append(self, data: Buffer | PreparedBatch, *, acks_all: bool) -> Write:
        """Append a client's batch and complete the fetches that wait for it.

        With `acks_all`, NotEnoughReplicas is raised while the ISR is smaller than min.insync.replicas.
        """
        self.ensure_leader()
        self.ensure_serving()
        if acks_all:
            self.ensure_enough_replicas()
        batch = data if isinstance(data, PreparedBatch) else self.log.prepare(data)
        appended = self.log.append_prepared(batch, leader_epoch=self.leader_epoch)
        if not appended.duplicate:
            self.meter.appended(appended.last_offset - appended.base_offset + 1, batch.received_bytes)
            self._grown(len(batch.data))
        # A duplicate waits for the first write of its batch, which may be uncommitted.
        return Write(appended, self.commit_of_log_end() if acks_all else None)

    def append_internal(self, data: Buffer) -> Write:
        """Append a batch of a coordinator of this broker, with acks=all."""
        self.ensure_leader()
        self.ensure_serving()
        self.ensure_enough_replicas()
        appended = self.log.append_internal(data, leader_epoch=self.leader_epoch)
        self._grown(len(data))
        return Write(appended, self.commit_of_log_end())

    def ensure_enough_replicas(self) -> None:
        """Raise while fewer replicas are in sync than the topic wants."""
        if len(self.isr) < self._wanted_in_sync:
            raise NotEnoughReplicas(
                f"{self.id} has {len(self.isr)} replicas in sync, "
                f"min.insync.replicas is {self.min_insync_replicas}"
            )

    @property
    def _wanted_in_sync(self) -> int:
        return min(self.min_insync_replicas, len(self.replicas))

    def _grown(self, size: int) -> None:
        for waiting in tuple(self._followers):
            waiting.arrived(size)
        self._commit(size)

    def _commit(self, size: int | None = None) -> None:
        """Raise the high watermark as far as the replicas in sync allow, and let go what waited for it.

        `size` is what was appended just now: if nobody has to be waited for, that is how much more there is
        to read.
        """
        assert self.leadership is not None, "only a leader knows what is committed"
        end = self.log.log_end_offset
        if self.high_watermark >= end:
            return  # there is no more to commit, as in every partition that nobody writes to
        committed = self.leadership.high_watermark(end, self.high_watermark)
        if committed == self.high_watermark:
            return
        self.high_watermark = committed
        for waiting in tuple(self._readers):
            if size is not None and committed == end:
                waiting.arrived(size)
            else:
                waiting.look_again()
        self._waiting_acks.complete(committed)

    @property
    def knows_what_is_committed(self) -> bool:
        """Whether a leader has heard from enough followers to know all that its predecessors committed."""
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
        """A follower asks for `offset`: it has everything before, which may be what was waited for."""
        leadership = self.leadership
        assert leadership is not None, "a fetch is refused unless this broker leads"
        if broker_id not in leadership.followers:
            raise NotLeader(f"broker {broker_id} has no replica of {self.id}")
        leadership.fetched(
            broker_id,
            offset,
            log_end_offset=self.log.log_end_offset,
            now_ms=now_ms,
            broker_epoch=broker_epoch,
        )
        self._commit()

    def wanted_isr(self, *, now_ms: int, max_lag_ms: int, live: Collection[int]) -> frozenset[int] | None:
        """The set that this leader would have in sync, if that is another than it is.

        One whose log has failed wants to be without itself, so that another leads.
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
        """Where a follower's log parted from this one, if it did; it has to go back to there."""
        parted = find_divergence(
            self.log.epochs, self.log.log_end_offset, offset=offset, last_epoch=last_epoch
        )
        if parted is not None and parted.end_offset == UNKNOWN:
            raise OffsetOutOfRange(offset, start=self.log.log_start_offset, end=self.log.log_end_offset)
        return parted

    def append_as_follower(self, data: Buffer, *, high_watermark: int, log_start_offset: int) -> None:
        """Take over what the leader sent."""
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
            for waiting in tuple(self._readers):
                waiting.look_again()

    def truncate_to(self, offset: int) -> None:
        """Go back to where this log and the leader's were one."""
        self.log.truncate_to(offset)
        self.high_watermark = min(self.high_watermark, self.log.log_end_offset)

    def start_over_at(self, offset: int) -> None:
        """The leader has nothing before `offset` any more: neither have we."""
        self.log.truncate_fully(offset)
        self.high_watermark = offset

    # -- reading -------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, isolation: Isolation, *, at_least_one: bool) -> Fetched:
        """Committed batches from `offset` on, as far as `isolation` lets a reader see."""
        stable = self.log.last_stable_offset(self.high_watermark)
        end = stable if isolation is Isolation.READ_COMMITTED else self.high_watermark
        data = self.log.read(offset, max_bytes, max_offset=end, at_least_one=at_least_one)
        aborted = None
        if isolation is Isolation.READ_COMMITTED:
            aborted = self.log.aborted_transactions(offset, end) if data else ()
        return Fetched(data, self.high_watermark, stable, self.log.log_start_offset, aborted)

    def read_as_replica(self, offset: int, max_bytes: int, *, at_least_one: bool) -> Fetched:
        """Batches from `offset` on, committed or not."""
        data = self.log.read(offset, max_bytes, at_least_one=at_least_one)
        stable = self.log.last_stable_offset(self.high_watermark)
        return Fetched(data, self.high_watermark, stable, self.log.log_start_offset, None)

    def ensure_readable(self, epoch: int) -> None:
        """Raise unless clients may read here: from the leader, or from a follower that keeps up."""
        if self.leadership is None and (self.leader == -1 or self._broker_id not in self.isr):
            raise NotLeader(f"broker {self.leader} leads {self.id}, not broker {self._broker_id}")
        if epoch != ANY_EPOCH:
            self._ensure_epoch(epoch)

    def end_offset(self, isolation: Isolation | None) -> int:
        """The offset after the last that such a reader sees; without isolation, the log's end."""
        if isolation is None:
            return self.log.log_end_offset
        if isolation is Isolation.READ_COMMITTED:
            return self.log.last_stable_offset(self.high_watermark)
        return self.high_watermark

    async def find(self, timestamp: int | None, run: Run) -> FoundOffset | None:
        """The first record at `timestamp` or later, the youngest if that is None; `run` has a thread read."""
        while True:
            cuts = self.log.cuts
            search = self.log.timestamp_search(timestamp)
            try:
                while (step := search.next_step()) is not None:
                    await run(step)
            except CorruptLog:
                if self.log.cuts == cuts:  # else segments went while they were searched
                    raise
            except OSError as error:
                if self.log.cuts == cuts:
                    raise self.log.search_failed(error) from error
            else:
                if search.found is None or search.found.offset >= self.log.log_start_offset:
                    return search.found

    def delete_records_before(self, offset: int) -> int:
        """Move the log's start up to `offset`, at most to the high watermark; return where it is now."""
        self.ensure_leader()
        if self.log.config.compact and not self.log.config.delete:
            raise PolicyViolation(f"the cleanup.policy of {self.id} does not let records be deleted")
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
        """Something other than new records has changed: let every reader look for itself."""
        for waiting in (*self._readers, *self._followers):
            waiting.wake()

    def close(self) -> None:
        """The partition leaves this broker: whoever waits for it is told so."""
        self.leadership = None
        self._waiting_acks.fail(NotLeader(f"{self.id} is not on broker {self._broker_id} any more"))
        self.wake()
