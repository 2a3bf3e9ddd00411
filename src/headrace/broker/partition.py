"""One partition on this broker: its log, who leads it, and how far its records are committed."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from headrace.broker.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeader,
    PolicyViolation,
    UnknownLeaderEpoch,
)
from headrace.broker.purgatory import WaitingFetch
from headrace.coordination.znodes import PartitionState
from headrace.protocol.compression import Buffer
from headrace.storage.errors import OffsetOutOfRange
from headrace.storage.log import Appended, Log
from headrace.storage.time_lookup import FoundOffset
from headrace.storage.topics import TopicPartition
from headrace.storage.txn_index import AbortedTxn

ANY_EPOCH = -1


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


class Partition:
    """A replica that this broker has. Every method is called on the event loop."""

    def __init__(self, id_: TopicPartition, topic_id: bytes, log: Log, broker_id: int) -> None:
        self.id = id_
        self.topic_id = topic_id
        self.log = log
        self.high_watermark = log.log_end_offset
        self.min_insync_replicas = 1
        self._broker_id = broker_id
        self._state: PartitionState | None = None
        self._waiting: set[WaitingFetch] = set()

    @property
    def leader(self) -> int:
        return -1 if self._state is None else self._state.leader

    @property
    def leader_epoch(self) -> int:
        return -1 if self._state is None else self._state.leader_epoch

    @property
    def in_sync(self) -> int:
        return 0 if self._state is None else len(self._state.isr)

    def become(self, state: PartitionState) -> None:
        """Take on the role that the controller has given; our own, or an older one, changes nothing."""
        if self._state is not None and (
            state == self._state or state.leader_epoch < self._state.leader_epoch
        ):
            return
        if state.leader == self._broker_id and state.leader_epoch > self.leader_epoch:
            self.log.epochs.assign(state.leader_epoch, self.log.log_end_offset)
        self._state = state
        self.wake()

    def ensure_leader(self, epoch: int = ANY_EPOCH) -> None:
        """Raise unless this broker leads, and in the epoch that the client believes in."""
        if self.leader != self._broker_id:
            raise NotLeader(f"broker {self.leader} leads {self.id}, not broker {self._broker_id}")
        if epoch != ANY_EPOCH:
            if epoch < self.leader_epoch:
                raise FencedLeaderEpoch(f"{self.id} is at leader epoch {self.leader_epoch}, not {epoch}")
            if epoch > self.leader_epoch:
                raise UnknownLeaderEpoch(f"{self.id} is at leader epoch {self.leader_epoch}, not yet {epoch}")

    def append(self, data: Buffer, *, all_in_sync: bool) -> Appended:
        """Append a client's batch; readers that waited for it are woken.

        With `all_in_sync`, acks=all, it is refused while fewer replicas are in sync than the topic wants.
        """
        self.ensure_leader()
        if all_in_sync:
            self._ensure_enough_replicas()
        appended = self.log.append(data, leader_epoch=self.leader_epoch)
        if not appended.duplicate:
            self._advance(len(data))
        return appended

    def append_internal(self, data: Buffer) -> Appended:
        """Append what this broker itself has to remember, as if with acks=all."""
        self.ensure_leader()
        self._ensure_enough_replicas()
        appended = self.log.append_internal(data, leader_epoch=self.leader_epoch)
        self._advance(len(data))
        return appended

    def _ensure_enough_replicas(self) -> None:
        if self.in_sync < self.min_insync_replicas:
            raise NotEnoughReplicas(
                f"{self.id} has {self.in_sync} replicas in sync, "
                f"min.insync.replicas is {self.min_insync_replicas}"
            )

    def _advance(self, size: int) -> None:
        """Commit up to the end: this broker is the only replica there is, so far."""
        self.high_watermark = self.log.log_end_offset
        for waiting in tuple(self._waiting):
            waiting.arrived(size)

    def read(
        self, offset: int, max_bytes: int, isolation: Isolation, *, epoch: int = ANY_EPOCH, at_least_one: bool
    ) -> Fetched:
        """Committed batches from `offset` on, as far as `isolation` lets a reader see."""
        self.ensure_leader(epoch)
        stable = self.log.last_stable_offset(self.high_watermark)
        end = stable if isolation is Isolation.READ_COMMITTED else self.high_watermark
        data = self.log.read(offset, max_bytes, max_offset=end, at_least_one=at_least_one)
        aborted = None
        if isolation is Isolation.READ_COMMITTED:
            aborted = self.log.aborted_transactions(offset, end) if data else ()
        return Fetched(data, self.high_watermark, stable, self.log.log_start_offset, aborted)

    def end_offset(self, isolation: Isolation | None) -> int:
        """The offset after the last that such a reader sees; without isolation, the log's end."""
        if isolation is None:
            return self.log.log_end_offset
        if isolation is Isolation.READ_COMMITTED:
            return self.log.last_stable_offset(self.high_watermark)
        return self.high_watermark

    def find(self, timestamp: int) -> FoundOffset | None:
        return self.log.offset_for_timestamp(timestamp)

    def delete_records_before(self, offset: int) -> int:
        """Move the log's start up to `offset`, at most to the high watermark; return where it is now."""
        self.ensure_leader()
        if not self.log.config.delete:
            raise PolicyViolation(f"the cleanup.policy of {self.id} does not let records be deleted")
        if offset == -1:
            offset = self.high_watermark
        if offset > self.high_watermark:
            raise OffsetOutOfRange(offset, start=self.log.log_start_offset, end=self.high_watermark)
        self.log.delete_records_before(offset)
        return self.log.log_start_offset

    # -- waiting -------------------------------------------------------------------------------

    def add_waiting(self, fetch: WaitingFetch) -> None:
        self._waiting.add(fetch)

    def discard_waiting(self, fetch: WaitingFetch) -> None:
        self._waiting.discard(fetch)

    def wake(self) -> None:
        """Something other than new records has changed: let every reader look for itself."""
        for waiting in tuple(self._waiting):
            waiting.wake()
