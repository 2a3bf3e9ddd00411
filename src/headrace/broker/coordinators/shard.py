"""One coordinator: a state machine on the partition of an internal topic that this broker leads.

    request ──▶ decide ──▶ append ──▶ apply ──▶ committed ──▶ reply

The state machine decides and is pure; everything around it happens here. Every reply, to the request itself
and to requests that have been waiting, is sent when all records that it may depend on are committed.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from headrace.broker.coordinators.loading import load
from headrace.broker.errors import LeadershipInterrupted, NotEnoughReplicas, NotEnoughReplicasAfterAppend
from headrace.broker.replicas.partition import Partition
from headrace.broker.replicas.pending_verification import Verification
from headrace.broker.replicas.purgatory import Commit
from headrace.broker.slices import Steps
from headrace.broker.translate import FAILURES
from headrace.coordinators.decision import Decision, Producer, Waiter
from headrace.coordinators.errors import (
    CoordinatorError,
    CoordinatorLoading,
    CoordinatorNotAvailable,
    NotCoordinator,
    RecordsTooLarge,
)
from headrace.coordinators.machine import CoordinatorMachine
from headrace.protocol.errors import KafkaError, ProtocolError
from headrace.protocol.records import Record, encode_batch
from headrace.storage.errors import InvalidProducerEpoch, InvalidTxnState

if TYPE_CHECKING:
    from headrace.broker.coordinators.runtime import CoordinatorRuntime

COMMIT_TIMEOUT_S: Final = 5.0  # Kafka's offsets.commit.timeout.ms
EXPIRED_TOGETHER: Final = 16  # decisions about deadlines in one turn of the event loop
_PART: Final = 500  # records that are appended together where nothing requires more
_CLOCK_SET_MS: Final = 1_000  # a clock that differs by more than this from the event loop's was set
_STALL_MS: Final = 1_000  # a timer that is later than this shows that the broker itself has stalled

logger = logging.getLogger(__name__)

UNCHANGED: Final = (InvalidProducerEpoch, InvalidTxnState, LeadershipInterrupted)
"""Errors of an append after which the coordinator need not be loaded again."""

Machine = TypeVar("Machine", bound=CoordinatorMachine[Any])
T = TypeVar("T")
Replies = Iterable[tuple[Waiter, Any]]


class Expirations:
    """Carries out what is due in all coordinators of a runtime, a few decisions in each turn of the loop.

    Thousands of transactions may have the same timeout, and thousands of members the same session timeout.
    """

    def __init__(self, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._loop = loop
        self._waiting: deque[Steps[None]] = deque()
        self._has_had_turn = False  # in this turn of the loop

    def add(self, steps: Steps[None]) -> None:
        """Run `steps` now, as far as this turn allows, and the others later."""
        self._waiting.append(steps)
        if not self._has_had_turn:
            self._run()

    def _run(self) -> None:
        for _ in range(EXPIRED_TOGETHER):
            if not self._waiting:
                break
            try:
                next(self._waiting[0])
            except StopIteration:
                self._waiting.popleft()
        self._has_had_turn = True
        self._loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._has_had_turn = False
        if self._waiting:
            self._run()


class CoordinatorShard(Generic[Machine]):
    """A coordinator, from when this broker becomes the leader of its partition to when it no longer is."""

    def __init__(self, owner: "CoordinatorRuntime[Machine]", partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.machine = owner.new_machine()
        self._owner = owner
        self._loop = owner.loop
        self._clock_offset_ms = self._measure_clock()
        self._not_before = 0.0  # when deadlines may next be looked at
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0  # uvloop's handle does not tell the time of a timer that is due at once
        self._is_expiring = False
        self._failed: str | None = None
        self._when_loaded: list[Callable[[], None]] = []
        self._loading: asyncio.Task[None] | None = None
        if partition.log.log_end_offset == partition.log.log_start_offset:
            self.machine.start(self.now_ms)
        else:
            self._loading = self._loop.create_task(self._load())

    def _measure_clock(self) -> int:
        return time.time_ns() // 1_000_000 - int(self._loop.time() * 1000)

    @property
    def now_ms(self) -> int:
        """The time of day. Deadlines move with it if the clock is set or the machine was suspended."""
        moved_ms = self._measure_clock() - self._clock_offset_ms
        if abs(moved_ms) > _CLOCK_SET_MS:
            self._clock_offset_ms += moved_ms
            self.machine.deadlines.shift(moved_ms)
        return int(self._loop.time() * 1000) + self._clock_offset_ms

    @property
    def is_ready(self) -> bool:
        return self._loading is None and self._failed is None

    @property
    def is_current(self) -> bool:
        """Whether this coordinator has neither stopped nor failed. It may have lost its lease."""
        return self._failed is None

    @property
    def is_loading(self) -> bool:
        return self._loading is not None

    def ensure_ready(self) -> None:
        """Raise unless this coordinator may answer: it is loaded, and no other broker has taken over."""
        if self._failed is not None:
            raise CoordinatorNotAvailable(self._failed)
        if self._loading is not None:
            raise CoordinatorLoading(f"{self.partition.id} is being loaded (COORDINATOR_LOAD_IN_PROGRESS)")
        self._owner.ensure_lease(self.partition)

    async def _load(self) -> None:
        """Load the partition. Nothing else appends to it before this is done."""
        try:
            async with self._owner.loading:
                began = self._loop.time()
                count = await load(self.partition.log, self.machine)
        except (*FAILURES, ProtocolError) as error:
            self._failed = f"{self.partition.id} cannot be read: {error}"
            logger.error("coordinator: %s", self._failed)  # noqa: TRY400  the message has the reason
            return
        except Exception as error:  # a partly loaded coordinator would deny what was committed
            self._failed = f"{self.partition.id} cannot be read: {error!r}"
            logger.exception("coordinator: %s", self._failed)
            return
        finally:
            self._loading = None
        self.machine.start(self.now_ms)
        self._set_timer()
        self._owner.applied(self)
        for action in self._when_loaded:
            action()
        took = self._loop.time() - began
        logger.info("coordinator: loaded %d records of %s in %.2f s", count, self.partition.id, took)

    def when_loaded(self, action: Callable[[], None]) -> None:
        """Call `action` now, or once the partition is loaded."""
        if self._loading is None:
            action()
        else:
            self._when_loaded.append(action)

    def write(
        self, decide: Callable[[Machine, int], Decision[Any]], verification: Verification | None = None
    ) -> "asyncio.Future[Any]":
        """Carry out a decision; the future has its answer when everything appended so far is committed.

        Raise CoordinatorError if the request is refused, or its records cannot be appended. The state is then
        unchanged. The first records of a transaction need a `verification`.
        """
        decision = self._decide(decide)
        waiter: asyncio.Future[Any] = self._loop.create_future()
        decision.replies.append((waiter, decision.answer))
        self._carry_out(decision, verification)
        return waiter

    def write_and_wait(
        self, decide: Callable[[Machine, Waiter, int], Decision[Any]]
    ) -> "asyncio.Future[Any]":
        """Carry out a decision that may leave its request waiting for others, such as JoinGroup."""
        waiter: asyncio.Future[Any] = self._loop.create_future()
        self._carry_out(self._decide(lambda machine, now_ms: decide(machine, waiter, now_ms)))
        return waiter

    def write_in_parts(self, decide: Callable[[Machine, int], Decision[Any]]) -> None:
        """Carry out a decision of any size, whose records may be appended in several batches."""
        decision = self._decide(decide)
        for start in range(0, len(decision.records), _PART):
            self._carry_out_part(decision.records[start : start + _PART], decision.now_ms)

    def touch(self, action: Callable[[Machine, int], T]) -> T:
        """Return the result of an action that appends nothing, but may move deadlines, such as Heartbeat."""
        try:
            return action(self.machine, self.now_ms)
        finally:
            self._set_timer()

    def barrier(self) -> "asyncio.Future[Any] | None":
        """Return a future for when everything that can be read now is committed, or None if it is."""
        self.ensure_ready()
        commit = self.partition.commit_of_log_end()
        if commit is None:
            return None
        waiter: asyncio.Future[Any] = self._loop.create_future()
        self._reply_at(commit, [(waiter, None)])
        return waiter

    def end_transaction(
        self, producer: Producer, *, commit: bool, coordinator_epoch: int, transaction_version: int
    ) -> "asyncio.Future[Any]":
        """Append and apply the marker that ends the producer's transaction on this partition.

        Raise the error of the append, which changes nothing if the marker is fenced.
        """
        self._ensure_writable()
        _, committed = self.partition.append_marker(
            producer,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
        self.machine.end_transaction(producer.producer_id, committed=commit)
        waiter: asyncio.Future[Any] = self._loop.create_future()
        self._reply_at(committed, [(waiter, None)])
        return waiter

    def _decide(self, decide: Callable[[Machine, int], Decision[Any]]) -> Decision[Any]:
        self._ensure_writable()
        self._owner.update_topics(self.machine)
        return decide(self.machine, self.now_ms)

    def _ensure_writable(self) -> None:
        """Refuse before anything is decided what could not be appended now."""
        self.ensure_ready()
        try:
            self.partition.ensure_enough_replicas()
        except NotEnoughReplicas as error:
            raise CoordinatorNotAvailable(str(error)) from error

    def _carry_out_part(self, records: list[Any], now_ms: int) -> None:
        try:
            self._carry_out(Decision(now_ms, records=records))
        except RecordsTooLarge:
            if len(records) == 1:
                raise
            half = len(records) // 2
            self._carry_out_part(records[:half], now_ms)
            self._carry_out_part(records[half:], now_ms)

    def _carry_out(self, decision: Decision[Any], verification: Verification | None = None) -> None:
        """Append, apply, reply. If the append fails nothing is applied, and every reply is an error."""
        if decision.records:
            self._append(decision, verification)
        elif decision.replies:  # they may be made from records that are not committed yet
            self._reply_at(self.partition.commit_of_log_end(), decision.replies)
        self._set_timer()

    def _append(self, decision: Decision[Any], verification: Verification | None) -> None:
        """Append the records of a decision as one batch, apply them, and reply once they are committed."""
        producer, now_ms = decision.producer, time.time_ns() // 1_000_000
        records = [Record(*self.machine.encode(record), timestamp=now_ms) for record in decision.records]
        if producer is None:
            batch = encode_batch(records)
        else:
            batch = encode_batch(
                records, producer_id=producer.producer_id, producer_epoch=producer.epoch, transactional=True
            )
        limit = self.partition.log.config.max_message_bytes
        if len(batch) > limit:
            too_large = RecordsTooLarge(f"{len(batch)} bytes of records exceed max.message.bytes={limit}")
            _refuse(decision.replies, too_large)
            raise too_large
        try:
            _, commit = self.partition.append_internal(batch, verification)
        except UNCHANGED as error:  # of the producer of a transaction
            _refuse(decision.replies, error)
            raise
        except Exception as error:
            refused = _refusal(error)
            _refuse(decision.replies, refused)
            # Requests that wait are not in the log, and the decision may have changed them already.
            self._owner.reload(self, refused)
            raise refused from error
        for record in decision.records:
            if producer is None:
                self.machine.apply(record)
            else:
                self.machine.apply(record, producer.producer_id)
        if decision.on_applied is not None:
            decision.on_applied()
        self._reply_at(commit, decision.replies)
        self._owner.applied(self)

    def _reply_at(self, commit: Commit | None, replies: Replies) -> None:
        """Send the replies when `commit` is done, which is now if it is None."""
        if commit is None:
            _reply(replies)
            return
        timer = self._loop.call_later(COMMIT_TIMEOUT_S, _time_out, commit)
        commit.add_done_callback(partial(_reply_or_refuse, replies, timer))

    def _set_timer(self) -> None:
        due_ms = self.machine.deadlines.next_ms()
        if due_ms is None or self._is_expiring:
            return
        at = max(timer_at(due_ms - self._clock_offset_ms, self._loop.time()), self._not_before)
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._call_at(at)

    def _call_at(self, at: float) -> None:
        self._timer = self._loop.call_at(at, self._expire)
        self._timer_at = max(at, self._loop.time())  # a deadline that has passed is late only from now on

    def _expire(self) -> None:
        late_ms = (self._loop.time() - self._timer_at) * 1000
        self._timer = None
        if late_ms > _STALL_MS:
            logger.warning("coordinator: the broker stalled for %d ms, deadlines get a second more", late_ms)
            self._retry_after(_STALL_MS / 1000)
            return
        self._is_expiring = True
        self._owner.expirations.add(self._expire_in_steps())

    def _expire_in_steps(self) -> Steps[None]:
        """Carry out what is due, one decision in each step; others are served in between."""
        try:
            decisions = self.machine.expire(self.now_ms)
            while self.is_current:  # it may have been stopped since the last step
                self._ensure_writable()
                self._owner.update_topics(self.machine)
                decision = next(decisions, None)
                if decision is None:
                    break
                try:
                    self._carry_out(decision)
                except CoordinatorError as error:
                    logger.warning("coordinator: a deadline of %s failed: %s", self.partition.id, error)
                yield
            else:
                return  # the next coordinator loads what is in the log
        except CoordinatorError as error:
            logger.warning("coordinator: deadlines of %s are retried: %s", self.partition.id, error)
            self._retry_after(_STALL_MS / 1000)
        except Exception:  # otherwise no deadline of this coordinator would ever expire again
            logger.exception("coordinator: a deadline of %s failed", self.partition.id)
        finally:
            self._is_expiring = False
        self._set_timer()

    def _retry_after(self, seconds: float) -> None:
        """Look at the deadlines after `seconds`, and not earlier."""
        self._not_before = self._loop.time() + seconds
        self._call_at(self._not_before)

    def stop(self, why: CoordinatorError | None = None) -> None:
        """Answer every waiting request with `why`, or NOT_COORDINATOR, and accept no more."""
        if self._loading is not None:
            self._loading.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._failed = "the coordinator has stopped"
        decision = self.machine.stop(self.now_ms)
        _refuse(decision.replies, why or NotCoordinator("the coordinator has moved (NOT_COORDINATOR)"))


def timer_at(due_ms: int, now: float) -> float:
    """Return the time of the event loop for a deadline: the middle of its millisecond, or `now` if it is due.

    A float may be a little less than the deadline. The timer would find nothing due, and be set again and
    again until the next millisecond. What is due now, such as the rebalance after a downgrade, must not wait.
    """
    return now if due_ms <= int(now * 1000) else (due_ms + 0.5) / 1000


def _time_out(commit: Commit) -> None:
    if not commit.done():
        commit.set_result(CoordinatorNotAvailable(f"not committed within {COMMIT_TIMEOUT_S} s"))


def _reply_or_refuse(replies: Replies, timer: asyncio.TimerHandle, commit: Commit) -> None:
    timer.cancel()
    error = NotCoordinator("the coordinator has moved") if commit.cancelled() else commit.result()
    if error is None:
        _reply(replies)
    else:
        _refuse(replies, _refusal(error))


def _reply(replies: Replies) -> None:
    for waiter, answer in replies:
        if isinstance(answer, CoordinatorError):
            _refuse([(waiter, None)], answer)
        elif not waiter.done():  # the client may have disconnected
            waiter.set_result(answer)


def _refuse(replies: Replies, error: KafkaError) -> None:
    for waiter, _ in replies:
        if not waiter.done():
            waiter.set_exception(error)
            waiter.exception()  # nobody has to retrieve it: the client may have disconnected


def _refusal(error: Exception) -> CoordinatorError:
    """Return the error that clients get when records cannot be appended or committed."""
    if isinstance(error, CoordinatorError):
        return error
    if isinstance(error, NotEnoughReplicas | NotEnoughReplicasAfterAppend):
        return CoordinatorNotAvailable(str(error))
    if isinstance(error, FAILURES):
        return NotCoordinator(str(error))
    logger.error("coordinator: a record cannot be appended", exc_info=error)
    return CoordinatorError(f"a record of the coordinator cannot be appended: {error}")


def outcome(reply: "asyncio.Future[Any]") -> KafkaError | None:
    """Return the error of a reply that is done, or None."""
    error = reply.exception()
    assert error is None or isinstance(error, KafkaError), error
    return error
