"""Following a topic live: a thread reads, the event loop hands on, a slow client costs its buffer at most.

What a client is behind with when it comes is read no faster than it takes it. What comes while it is too slow
pushes the oldest out of the buffer, and the client is told how many.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from headrace.background import BackgroundThread
from headrace.client.errors import ClientError
from headrace.client.records.following import Follower
from headrace.client.records.one_by_one import Record, Start

MOST: Final = 32  # tails at a time: each has a thread and a consumer
BUFFERED: Final = 1000  # records of a tail that its client has not taken yet
BUFFERED_BYTES: Final = 16 * 1024 * 1024
_STEP_S: Final = 0.2  # how soon a thread notices that its client has gone
_CHECKED: Final = 10  # steps without a record, after which one asks whether the topic is still there
_OPTIONS: Final = {"fetch.wait.max.ms": 500, "queued.min.messages": 1000, "queued.max.messages.kbytes": 4096}


class TooMany(Exception):
    """There are as many tails as there may be."""


class Taken(NamedTuple):
    """What has come since the last time, and how many records were passed over before it."""

    records: list[Record]
    skipped: int
    begun: Mapping[int, int]  # where the tail began
    positions: Mapping[int, int]  # where the tail is after these records


class Tails:
    """The tails of a gateway, at most `MOST` at a time."""

    def __init__(self, bootstrap: Callable[[], str]) -> None:
        self._bootstrap = bootstrap
        self._lock = threading.Lock()
        self._open: set[Tail] = set()

    def __len__(self) -> int:
        """How many there are: one counts until its consumer is closed."""
        return len(self._open)

    async def open(
        self,
        topic: str,
        start: Start,
        *,
        partitions: Sequence[int] = (),
        positions: Mapping[int, int] | None = None,
        fits: Callable[[Record], bool] = lambda _: True,
    ) -> "Tail":
        """Begin to follow; ClientError if the topic is not there, TooMany if there is no room."""
        tail = Tail(fits, self._ended)
        with self._lock:
            if len(self._open) >= MOST:
                raise TooMany
            self._open.add(tail)
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def connect() -> Follower:
            return Follower(
                self._bootstrap(), topic, start, partitions=partitions, positions=positions, options=_OPTIONS
            )

        BackgroundThread(
            tail.run, args=(connect, ready), name=f"gateway-tail-{topic}", stop=tail.stop
        ).start()
        try:
            await ready
        except BaseException:
            tail.stop()
            raise
        return tail

    def end(self) -> list["Tail"]:
        """Have all of them end soon; those that were open."""
        with self._lock:
            tails = list(self._open)
        for tail in tails:
            tail.stop()
        return tails

    def close(self) -> None:
        for tail in self.end():
            tail.ended.wait(5 * _STEP_S)

    def _ended(self, tail: "Tail") -> None:
        with self._lock:
            self._open.discard(tail)


class Tail:
    """One client's. `take` is for its event loop, `run` for its thread."""

    def __init__(self, fits: Callable[[Record], bool], at_end: "Callable[[Tail], None]") -> None:
        self.failure: ClientError | None = None
        self.ended = threading.Event()
        self._fits = fits
        self._at_end = at_end
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._room = threading.Condition()
        self._records: deque[Record] = deque()
        self._bytes = 0
        self._skipped = 0
        self._begun: dict[int, int] = {}
        self._positions: dict[int, int] = {}
        self._stopped = False

    # -- on the loop ---------------------------------------------------------------------------

    async def take(self, timeout_s: float) -> Taken | None:
        """What has come, waiting no longer than that for it; None once there will be nothing more."""
        try:
            await asyncio.wait_for(self._news.wait(), timeout_s)
        except TimeoutError:
            return Taken([], 0, self._begun, {})
        with self._room:
            self._news.clear()
            taken = Taken(list(self._records), self._skipped, self._begun, dict(self._positions))
            self._records.clear()
            self._bytes = self._skipped = 0
            self._room.notify()
            over = self._stopped and not taken.records
        return None if over else taken

    def stop(self) -> None:
        """The client has gone, or the gateway goes; the consumer is closed in a moment."""
        with self._room:
            self._stopped = True
            self._room.notify()

    # -- in the thread -------------------------------------------------------------------------

    def run(self, connect: Callable[[], Follower], ready: "asyncio.Future[None]") -> None:
        try:
            with connect() as follower:
                self._skipped = follower.lost
                self._begun, self._positions = dict(follower.positions), dict(follower.positions)
                self._tell(partial(_settle, ready, None))
                self._tell(self._news.set)
                idle = 0
                while not self._stopped:
                    records = follower.step(_STEP_S)
                    self._add(records, follower.ends)
                    idle = 0 if records else idle + 1
                    if idle % _CHECKED == _CHECKED - 1:
                        follower.check()
        except ClientError as error:
            self.failure = error
            self._tell(partial(_settle, ready, error))
        finally:
            self.stop()
            self.ended.set()
            self._at_end(self)
            self._tell(self._news.set)

    def _add(self, records: Sequence[Record], ends: Mapping[int, int]) -> None:
        if not records:
            return
        for record in records:
            if self._stopped:
                return
            assert record.partition is not None, record
            fits = self._fits(record)  # may ask the registry, and the event loop waits for no lock that long
            with self._room:
                self._add_one(record, fits=fits, is_behind=record.offset < ends[record.partition])
        self._tell(self._news.set)

    def _add_one(self, record: Record, *, fits: bool, is_behind: bool) -> None:
        while is_behind and self._is_full() and not self._stopped:
            self._tell(self._news.set)
            self._room.wait(_STEP_S)
        assert record.partition is not None, record
        self._positions[record.partition] = record.offset + 1
        if fits:
            self._records.append(record)
            self._bytes += _size(record)
        while self._is_over_full():
            self._bytes -= _size(self._records.popleft())
            self._skipped += 1

    def _is_full(self) -> bool:
        return len(self._records) >= BUFFERED or self._bytes >= BUFFERED_BYTES

    def _is_over_full(self) -> bool:
        return len(self._records) > BUFFERED or (self._bytes > BUFFERED_BYTES and len(self._records) > 1)

    def _tell(self, what: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:  # the loop is gone, and the client with it
            self._stopped = True


def _settle(ready: "asyncio.Future[None]", error: ClientError | None) -> None:
    if ready.done():  # or the client has gone meanwhile
        return
    if error is None:
        ready.set_result(None)
    else:
        ready.set_exception(error)


def _size(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"")
