"""A replica's log up to its high watermark: what consumers read, and the requests that wait for more."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

from headrace.broker.replicas.purgatory import Commit, WaitingAcks, WaitingFetch
from headrace.protocol.batch import read_header, read_offset_and_size
from headrace.protocol.compression import Buffer
from headrace.protocol.errors import ErrorCode
from headrace.replication.follower import EpochEnd
from headrace.replication.leader import Leader
from headrace.storage.errors import CorruptLog
from headrace.storage.files import base_offset_of
from headrace.storage.log import Log
from headrace.storage.time_lookup import FoundOffset
from headrace.storage.txn_index import AbortedTxn

Run = Callable[[Callable[[], None]], Awaitable[None]]


class Isolation(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class Fetched(NamedTuple):
    """What a Fetch returns of one partition."""

    data: Buffer = b""
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: Sequence[AbortedTxn] | None = None  # None: the reader asked for read_uncommitted
    error_code: ErrorCode = ErrorCode.NONE  # not the exception, whose traceback would keep the whole read
    diverging: EpochEnd | None = None  # to which a follower has to truncate its log
    preferred_replica: int = -1  # a replica in the consumer's rack

    @property
    def is_urgent(self) -> bool:
        """Whether the reader is told at once, without waiting for records."""
        return self.error_code != ErrorCode.NONE or self.diverging is not None or self.preferred_replica >= 0


def _next_offset(data: Buffer) -> int:
    """Return the offset after the last batch in `data`."""
    position = size = 0
    while position < len(data):
        _, size = read_offset_and_size(data, position)
        position += size
    return read_header(data, position - size).next_offset


class CommittedLog:
    """A log with its high watermark. Every method is called on the event loop."""

    def __init__(self, log: Log, high_watermark: int, moved: set[Any] | None) -> None:
        """The log adds itself to `moved` when its high watermark has moved."""
        self.log = log
        self.high_watermark = max(log.log_start_offset, min(high_watermark, log.log_end_offset))
        self.leadership: Leader | None = None  # while this broker leads
        self._moved: set[Any] = set() if moved is None else moved
        self._moved.add(self)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._readers: set[WaitingFetch] = set()  # wait for the high watermark
        self._followers: set[WaitingFetch] = set()  # wait for the log's end
        self._waiting_acks = WaitingAcks()

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

    def _follow_watermark(self, high_watermark: int) -> None:
        reached = max(self.high_watermark, min(high_watermark, self.log.log_end_offset))
        if reached != self.high_watermark:
            self.high_watermark = reached
            self._moved.add(self)
            for waiting in tuple(self._readers):
                waiting.look_again()

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: Isolation,
        *,
        at_least_one: bool,
        cached_only: bool = False,
    ) -> Fetched:
        """Return batches from `offset` to the high watermark, or to the last stable offset."""
        stable = self.log.last_stable_offset(self.high_watermark)
        end = stable if isolation is Isolation.READ_COMMITTED else self.high_watermark
        data = self.log.read(
            offset, max_bytes, max_offset=end, at_least_one=at_least_one, cached_only=cached_only
        )
        aborted = None
        if isolation is Isolation.READ_COMMITTED:
            aborted = self.log.aborted_transactions(offset, partial(_next_offset, data)) if data else ()
        return Fetched(data, self.high_watermark, stable, self.log.log_start_offset, aborted)

    def read_as_replica(
        self, offset: int, max_bytes: int, *, at_least_one: bool, cached_only: bool = False
    ) -> Fetched:
        """Return batches from `offset` to the log end offset."""
        data = self.log.read(offset, max_bytes, at_least_one=at_least_one, cached_only=cached_only)
        stable = self.log.last_stable_offset(self.high_watermark)
        return Fetched(data, self.high_watermark, stable, self.log.log_start_offset)

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
            except CorruptLog as error:
                if self.log.cuts == cuts:  # otherwise segments were deleted during the search
                    self.log.suspect_segment(base_offset_of(error.path))
                    raise
            except OSError as error:
                if self.log.cuts == cuts:
                    raise self.log.failed("search", error) from error
            else:
                if search.found is None or search.found.offset >= self.log.log_start_offset:
                    return search.found

    def add_waiting(self, fetch: WaitingFetch, *, as_replica: bool) -> None:
        (self._followers if as_replica else self._readers).add(fetch)

    def discard_waiting(self, fetch: WaitingFetch) -> None:
        self._readers.discard(fetch)
        self._followers.discard(fetch)

    def wake(self) -> None:
        """Complete every waiting fetch: something other than new records has changed."""
        for waiting in (*self._readers, *self._followers):
            waiting.wake()
