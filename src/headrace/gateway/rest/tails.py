"""Tails: a thread reads a topic into a bounded buffer, from which the event loop sends to the client.

Records before the log end offset at the start are read no faster than the client takes them. Later ones push
the oldest out of the buffer of a client that is too slow, and the client gets the number of skipped records.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakSet

from headrace.client.errors import ClientError
from headrace.client.records.following import Follower
from headrace.client.records.one_by_one import Record, Start
from headrace.client.wire.connection_settings import Target
from headrace.system.background import BackgroundThread

if TYPE_CHECKING:
    from headrace.gateway.rest.instances import Instances

MAX_TAILS: Final = 32  # at a time: each has a thread and a consumer
BUFFERED: Final = 1000  # records in the buffer of a tail
BUFFERED_BYTES: Final = 16 * 1024 * 1024
_STEP_S: Final = 0.2  # how soon a thread notices a disconnect
_CHECKED: Final = 10  # steps without a record, after which it checks that the topic still exists
_OPTIONS: Final = {"fetch.wait.max.ms": 500, "queued.min.messages": 1000, "queued.max.messages.kbytes": 4096}


class Slots:
    """A bound that several owners share, such as the number of tails of all users of a gateway."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._owners: WeakSet[Tails | Instances] = WeakSet()

    def join(self, owner: "Tails | Instances") -> None:
        self._owners.add(owner)

    @property
    def is_full(self) -> bool:
        return sum(owner.taken for owner in list(self._owners)) >= self._limit


class TooMany(Exception):
    """MAX_TAILS tails are open."""


class TailBatch(NamedTuple):
    """The records since the last call, and how many were skipped before them."""

    records: list[Record]
    skipped: int
    begun: Mapping[int, int]  # next offsets at the start of the tail
    positions: Mapping[int, int]  # next offsets after these records


class Tails:
    """The tails of one user; those of all users share MAX_TAILS slots."""

    def __init__(self, target: Callable[[], Target], slots: Slots | None = None) -> None:
        self._target = target
        self._slots = slots or Slots(MAX_TAILS)
        self._slots.join(self)
        self._lock = threading.Lock()
        self._open: set[Tail] = set()

    def __len__(self) -> int:
        """Return the number of tails; one counts until its consumer is closed."""
        return len(self._open)

    @property
    def taken(self) -> int:
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
        """Start a tail; raise ClientError if the topic does not exist, TooMany if MAX_TAILS are open."""
        tail = Tail(fits, self._close)
        with self._lock:
            if self._slots.is_full:
                raise TooMany
            self._open.add(tail)
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def connect() -> Follower:
            return Follower(
                self._target(), topic, start, partitions=partitions, positions=positions, options=_OPTIONS
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
        with self._lock:
            tails = list(self._open)
        for tail in tails:
            tail.stop()
        return tails

    def close(self) -> None:
        for tail in self.end():
            tail.ended.wait(5 * _STEP_S)

    def _close(self, tail: "Tail") -> None:
        with self._lock:
            self._open.discard(tail)


class Tail:
    """The tail of one client. `take` is for the event loop, `run` for the thread."""

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

    async def take(self, timeout_s: float) -> TailBatch | None:
        """Return the records that have arrived, waiting up to `timeout_s` for some; None after the end."""
        try:
            await asyncio.wait_for(self._news.wait(), timeout_s)
        except TimeoutError:
            return TailBatch([], 0, self._begun, {})
        with self._room:
            self._news.clear()
            taken = TailBatch(list(self._records), self._skipped, self._begun, dict(self._positions))
            self._records.clear()
            self._bytes = self._skipped = 0
            self._room.notify()
            over = self._stopped and not taken.records
        return None if over else taken

    def stop(self) -> None:
        """End the tail soon: the client has disconnected, or the gateway stops."""
        with self._room:
            self._stopped = True
            self._room.notify()

    def run(self, connect: Callable[[], Follower], ready: "asyncio.Future[None]") -> None:
        try:
            with connect() as follower:
                self._skipped = follower.lost
                self._begun, self._positions = dict(follower.positions), dict(follower.positions)
                self._call_on_loop(partial(_settle, ready, None))
                self._call_on_loop(self._news.set)
                idle = 0
                while not self._stopped:
                    records = follower.step(_STEP_S)
                    self._add(records, follower.ends)
                    idle = 0 if records else idle + 1
                    if idle % _CHECKED == _CHECKED - 1:
                        follower.check()
        except ClientError as error:
            self.failure = error
            self._call_on_loop(partial(_settle, ready, error))
        finally:
            self.stop()
            self.ended.set()
            self._at_end(self)
            self._call_on_loop(self._news.set)

    def _add(self, records: Sequence[Record], ends: Mapping[int, int]) -> None:
        if not records:
            return
        for record in records:
            if self._stopped:
                return
            assert record.partition is not None, record
            fits = self._fits(record)  # it may wait for the registry, so not under the lock
            is_behind = record.offset < ends[record.partition]
            with self._room:
                while is_behind and not self._stopped:
                    if len(self._records) < BUFFERED and self._bytes < BUFFERED_BYTES:
                        break
                    self._call_on_loop(self._news.set)
                    self._room.wait(_STEP_S)
                self._positions[record.partition] = record.offset + 1
                if fits:
                    self._records.append(record)
                    self._bytes += _size(record)
                while len(self._records) > (BUFFERED if self._bytes <= BUFFERED_BYTES else 1):
                    self._bytes -= _size(self._records.popleft())
                    self._skipped += 1
        self._call_on_loop(self._news.set)

    def _call_on_loop(self, what: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:  # the event loop has ended, and the client with it
            self._stopped = True


def _settle(ready: "asyncio.Future[None]", error: ClientError | None) -> None:
    if ready.done():  # the client has disconnected
        return
    if error is None:
        ready.set_result(None)
    else:
        ready.set_exception(error)


def _size(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"")
