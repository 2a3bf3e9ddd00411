"""The coordinator of one partition of `__consumer_offsets`: what it decides is written, and then said."""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.broker.errors import NotEnoughReplicas
from headrace.broker.group_loading import load
from headrace.broker.partition import Partition
from headrace.broker.translate import FAILURES
from headrace.group.coordinator import GroupCoordinator
from headrace.group.decision import Decision
from headrace.group.errors import CoordinatorLoading, CoordinatorNotAvailable, GroupError, NotCoordinator
from headrace.group.records import GroupRecord, encode_record
from headrace.protocol.errors import KafkaError, ProtocolError
from headrace.protocol.records import Record, encode_batch

if TYPE_CHECKING:
    from headrace.broker.groups import Groups

_PART = 500  # records to forget at a time
_CLOCK_SET_MS = 1_000  # so far from where it should be, a clock was set
_STALL_MS = 1_000  # so late, a timer says that the broker itself has stood still

logger = logging.getLogger(__name__)


class RecordsTooLarge(GroupError):
    """The group has grown so large that what is to be remembered of it does not fit in a batch."""


class GroupShard:
    """One coordinator, from when its partition is led here to when it is not."""

    def __init__(self, groups: "Groups", partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.coordinator = GroupCoordinator(groups.limits, lambda: str(uuid.uuid4()), groups.timeouts)
        self._groups = groups
        self._loop = groups.loop
        self._clock_offset_ms = self._measure_clock()
        self._gone: set[str] = set()  # topics that went while the records were being read
        self._not_before = 0.0  # when timers may next be looked at
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0  # uvloop's handle does not say when, if that is at once
        self._failed: str | None = None
        self._loading: asyncio.Task[None] | None = None
        if partition.log.log_end_offset == partition.log.log_start_offset:
            self.coordinator.start(self.now_ms)
        else:
            self._loading = self._loop.create_task(self._load())

    def _measure_clock(self) -> int:
        return time.time_ns() // 1_000_000 - int(self._loop.time() * 1000)

    @property
    def now_ms(self) -> int:
        """The time of day. If somebody sets the clock, or the machine slept, deadlines move with it."""
        moved_ms = self._measure_clock() - self._clock_offset_ms
        if abs(moved_ms) > _CLOCK_SET_MS:
            self._clock_offset_ms += moved_ms
            self.coordinator.deadlines.shift(moved_ms)
        return int(self._loop.time() * 1000) + self._clock_offset_ms

    @property
    def is_ready(self) -> bool:
        return self._loading is None and self._failed is None

    @property
    def is_loading(self) -> bool:
        return self._loading is not None

    def ensure_ready(self) -> None:
        """Raise unless this coordinator may answer: its records are read, and nobody else has taken over."""
        if self._failed is not None:
            raise CoordinatorNotAvailable(self._failed)
        if self._loading is not None:
            raise CoordinatorLoading(f"{self.partition.id} is being read")
        self._groups.ensure_lease(self.partition)

    # -- loading -------------------------------------------------------------------------------

    async def _load(self) -> None:
        """Read the partition. Nothing is appended meanwhile: only we would do that."""
        try:
            async with self._groups.loading:
                began = self._loop.time()
                count = await load(self.partition.log, self.coordinator)
        except (*FAILURES, ProtocolError) as error:
            self._failed = f"{self.partition.id} cannot be read: {error}"
            logger.error("groups: %s", self._failed)  # noqa: TRY400  the sentence says it all
            return
        except Exception as error:  # half a coordinator would say that nothing was ever committed
            self._failed = f"{self.partition.id} could not be read: {error!r}"
            logger.exception("groups: %s", self._failed)
            return
        finally:
            self._loading = None
        self.coordinator.start(self.now_ms)
        self._set_timer()
        for name in self._gone:
            self.forget_topic(name)
        took = self._loop.time() - began
        logger.info("groups: read %d records of %s in %.2f s", count, self.partition.id, took)

    # -- decisions -----------------------------------------------------------------------------

    def decide(self, decide: Callable[[GroupCoordinator, int], Decision]) -> Any:
        """Carry out what the coordinator decides; the answer to whoever asked."""
        self.ensure_ready()
        self._ensure_writable()
        self._groups.show_topics(self.coordinator)
        decision = decide(self.coordinator, self.now_ms)
        self.carry_out(decision)
        return decision.answer

    def _ensure_writable(self) -> None:
        """Refuse before anything is decided: what could not be written would have to be undone."""
        self._groups.ensure_lease(self.partition)
        try:
            self.partition.ensure_enough_replicas()
        except NotEnoughReplicas as error:
            raise CoordinatorNotAvailable(str(error)) from error

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> None:
        """Heartbeat, which writes nothing; it may set a deadline."""
        try:
            self.coordinator.heartbeat(group_id, member_id, instance_id, generation, self.now_ms)
        finally:
            self._set_timer()

    def forget_topic(self, name: str) -> None:
        """The topic is gone, and its offsets with it, now or as soon as they have been read."""
        if self._loading is not None:
            self._gone.add(name)
            return
        try:
            self.decide_in_parts(lambda coordinator, now_ms: coordinator.forget_topic(name, now_ms))
        except GroupError as error:
            logger.warning("groups: offsets of topic %s could not be forgotten: %s", name, error)

    def decide_in_parts(self, decide: Callable[[GroupCoordinator, int], Decision]) -> None:
        """The same for any number of records that need not be written together, but in this order."""
        self.ensure_ready()
        self._ensure_writable()
        decision = decide(self.coordinator, self.now_ms)
        for start in range(0, len(decision.records), _PART):
            self._carry_out_part(decision.records[start : start + _PART], decision.now_ms)

    def _carry_out_part(self, records: list[GroupRecord], now_ms: int) -> None:
        try:
            self.carry_out(Decision(now_ms, records=records))
        except RecordsTooLarge:
            if len(records) == 1:
                raise
            half = len(records) // 2
            self._carry_out_part(records[:half], now_ms)
            self._carry_out_part(records[half:], now_ms)

    def ask(
        self, decide: Callable[[GroupCoordinator, "asyncio.Future[Any]", int], Decision]
    ) -> "asyncio.Future[Any]":
        """The same for a decision that lets whoever asked wait for others; the answer may be an error."""
        waiter: asyncio.Future[Any] = self._loop.create_future()
        self.decide(lambda coordinator, now_ms: decide(coordinator, waiter, now_ms))
        return waiter

    def carry_out(self, decision: Decision) -> None:
        """Write, apply, answer. What cannot be written is not applied, and everybody is told so."""
        if decision.records:
            try:
                self._append(decision.records)
            except Exception as error:
                refused = _refusal(error)
                _answer_all(decision, refused)
                if not isinstance(refused, RecordsTooLarge):
                    self._groups.reload(self, refused)
                raise refused from error
            for record in decision.records:
                self.coordinator.apply(record)
        # Also without records of its own an answer may be made from some that are not committed yet.
        committed = self.partition.committed() if decision.records or decision.replies else None
        if committed is None:
            _answer(decision)
        else:
            committed.add_done_callback(lambda done: _answer_when_committed(decision, done))
        self._set_timer()

    def _append(self, records: list[GroupRecord]) -> None:
        now_ms = time.time_ns() // 1_000_000
        batch = encode_batch([Record(*encode_record(record), timestamp=now_ms) for record in records])
        limit = self.partition.log.config.max_message_bytes
        if len(batch) > limit:
            raise RecordsTooLarge(f"{len(batch)} bytes to remember, max.message.bytes is {limit}")
        self.partition.append_internal(batch)

    # -- time ----------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        due_ms = self.coordinator.deadlines.next_ms()
        if due_ms is None:
            return
        at = max((due_ms - self._clock_offset_ms) / 1000, self._not_before)
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._call_at(at)

    def _call_at(self, at: float) -> None:
        self._timer = self._loop.call_at(at, self._time_is_up)
        self._timer_at = max(at, self._loop.time())  # what is due already is late only from now on

    def _time_is_up(self) -> None:
        late_ms = (self._loop.time() - self._timer_at) * 1000
        self._timer = None
        if late_ms > _STALL_MS:
            logger.warning("groups: the broker stood still for %d ms; members get a second more", late_ms)
            self._wait(_STALL_MS / 1000)
            return
        try:
            self._ensure_writable()
            self._groups.show_topics(self.coordinator)
            for decision in self.coordinator.expire(self.now_ms):
                self._carry_out_due(decision)
                if not self.is_ready:
                    return  # the next coordinator reads what is in the log
        except GroupError as error:
            logger.warning("groups: what is due in %s has to wait: %s", self.partition.id, error)
            self._wait(_STALL_MS / 1000)
        except Exception:  # else nothing would be due in this coordinator any more
            logger.exception("groups: what was due in %s failed", self.partition.id)
        self._set_timer()

    def _carry_out_due(self, decision: Decision) -> None:
        try:
            self.carry_out(decision)
        except GroupError as error:
            logger.warning("groups: what was due in %s could not be done: %s", self.partition.id, error)

    def _wait(self, seconds: float) -> None:
        """Look at what is due again after a while, whatever comes meanwhile."""
        self._not_before = self._loop.time() + seconds
        self._call_at(self._not_before)

    # -- the end -------------------------------------------------------------------------------

    def stop(self, why: GroupError | None = None) -> None:
        """Forget everything: whoever waits is told to look for the coordinator again."""
        if self._loading is not None:
            self._loading.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._failed = "the coordinator has stopped"
        decision = self.coordinator.stop(self.now_ms)
        _answer_all(decision, why or NotCoordinator("the coordinator has moved"))


def _answer(decision: Decision) -> None:
    for waiter, answer in decision.replies:
        if not waiter.done():  # else the client has gone
            waiter.set_result(answer)


def _answer_when_committed(decision: Decision, done: "asyncio.Future[KafkaError | None]") -> None:
    if done.cancelled() or done.result() is not None:
        _answer_all(decision, NotCoordinator("the coordinator has moved before it could write this"))
    else:
        _answer(decision)


def _answer_all(decision: Decision, answer: GroupError) -> None:
    for waiter, _ in decision.replies:
        if not waiter.done():
            waiter.set_result(answer)


def _refusal(error: Exception) -> GroupError:
    """What clients are told when a group's records cannot be written."""
    if isinstance(error, GroupError):
        return error
    if isinstance(error, NotEnoughReplicas):
        return CoordinatorNotAvailable(str(error))
    if isinstance(error, FAILURES):
        return NotCoordinator(str(error))
    logger.error("groups: a record cannot be written", exc_info=error)
    return GroupError(f"what is to be remembered cannot be written: {error}")
