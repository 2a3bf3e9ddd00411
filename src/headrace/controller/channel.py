"""The controller's channel to one broker: it sends every change, and the whole state after a reconnection.

A broker that cannot be reached over its channel may be alive and serve clients. Only ZooKeeper decides
whether it is alive, and no leader is elected because a channel has failed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message

UPDATE_VERSIONS = range(8, 9)
PARTITIONS_PER_UPDATE = 8  # a broker creates the files of new partitions before it does anything else
_UPDATE_TIMEOUT_S = 30.0
UNREACHABLE_AFTER = 3  # failed attempts in a row: a restart or a broken connection causes fewer
_FIRST_RETRY_S, _LAST_RETRY_S = 0.02, 0.5
_UNSUPPORTED_RETRY_S = 5.0  # only another version of one of the two brokers can help

logger = logging.getLogger(__name__)


class PeerGone(Exception):
    """The connection to the other broker has failed; whether it has handled the request is not known."""


class UnsupportedByPeer(PeerGone):
    """The other broker supports no version of the API that this broker can send; nothing was sent."""

    def __init__(self, message: str, key: int) -> None:
        super().__init__(message)
        self.key = key


class Link(Protocol):
    """A connection to a broker. A request is sent in the highest of `versions` that the broker supports."""

    async def ask(self, request: Message, versions: range, *, timeout_s: float | None = None) -> Any: ...

    async def closed(self) -> None: ...

    def close(self) -> None: ...


class Channel:
    """Updates one broker.

    The queue holds the names of partitions; their state is read when an update is sent.
    """

    def __init__(
        self,
        broker_id: int,
        *,
        connect: Callable[[int], Awaitable[Link]],
        compose: Callable[[int, Collection[TopicPartition] | None], Message],
        on_reachable: Callable[[int, bool], None],
        on_replaced: Callable[[], None],
    ) -> None:
        self._broker_id = broker_id
        self._connect = connect
        self._compose = compose
        self._on_reachable = on_reachable
        self._on_replaced = on_replaced
        self._link: Link | None = None
        self._keys: dict[str, dict[TopicPartition, None]] = {}  # by topic, in the order in which they changed
        self._everything = True
        self._queued = 1  # the number of the newest change
        self._acknowledged = 0  # the number of the newest change that the broker has acknowledged
        self._wake = asyncio.Event()
        self._news = asyncio.Condition()
        self._closed = False
        self._is_supported = True  # whether the broker knows a version of UpdateMetadata that we can send
        self._task = asyncio.get_running_loop().create_task(self._run())

    def queue(self, keys: Collection[TopicPartition]) -> None:
        """Queue these partitions for the broker."""
        for key in keys:
            self._keys.setdefault(key.topic, {})[key] = None
        self._queued += 1
        self._wake.set()

    def queue_everything(self) -> None:
        """Queue the whole state for the broker."""
        self._everything = True
        self._queued += 1
        self._wake.set()

    async def propagated(self) -> None:
        """Return when the broker has acknowledged everything that was queued before this call."""
        wanted = self._queued
        async with self._news:
            await self._news.wait_for(lambda: self._acknowledged >= wanted or self._closed)

    @property
    def is_open(self) -> bool:
        return self._link is not None

    async def ask(self, request: Message, versions: range) -> Any:
        """Return the broker's response; PeerGone if there is no connection."""
        if self._link is None:
            raise PeerGone(f"no connection to broker {self._broker_id}")
        return await self._link.ask(request, versions)

    def close(self) -> None:
        self._closed = True
        self._ending = asyncio.get_running_loop().create_task(self._wake_waiters())
        self._task.cancel()
        if self._link is not None:
            self._link.close()

    async def _wake_waiters(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def _run(self) -> None:
        failures, delay = 0, _FIRST_RETRY_S
        while True:
            try:
                self._link = await self._connect(self._broker_id)
                self._on_reachable(self._broker_id, self._is_supported)
                failures, delay = 0, _FIRST_RETRY_S
                self._everything = True
                await self._serve(self._link)
            except UnsupportedByPeer:  # whoever has made the connection has logged it
                self._is_supported = False
                self._on_reachable(self._broker_id, False)
                await asyncio.sleep(_UNSUPPORTED_RETRY_S)
            except PeerGone as error:
                logger.debug("the channel to broker %d: %s", self._broker_id, error)
                failures += 1
                if failures == UNREACHABLE_AFTER:
                    self._on_reachable(self._broker_id, False)
                await asyncio.sleep(delay)
                delay = min(2 * delay, _LAST_RETRY_S)
            except Exception:  # nobody would notice that this task has ended
                logger.exception("could not update broker %d, retrying", self._broker_id)
                await asyncio.sleep(_LAST_RETRY_S)
            finally:
                if self._link is not None:
                    self._link.close()
                self._link = None

    async def _serve(self, link: Link) -> None:
        closed = asyncio.ensure_future(link.closed())
        try:
            while True:
                if self._everything or self._queued > self._acknowledged:
                    await self._update(link)
                    continue
                self._wake.clear()
                waking = asyncio.ensure_future(self._wake.wait())
                try:
                    await asyncio.wait({waking, closed}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    waking.cancel()
                if closed.done():
                    raise PeerGone("the connection has ended")
        finally:
            closed.cancel()

    async def _update(self, link: Link) -> None:
        keys = None if self._everything else self._next_keys()
        if keys is None:
            self._keys.clear()
        number = (
            self._acknowledged if self._keys else self._queued
        )  # only the last update completes the queue
        self._everything = False
        try:
            response = await link.ask(
                self._compose(self._broker_id, keys), UPDATE_VERSIONS, timeout_s=_UPDATE_TIMEOUT_S
            )
        except PeerGone:
            self._everything = True
            raise
        if not self._is_supported:
            self._is_supported = True
            self._on_reachable(self._broker_id, True)
        if response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH:
            self._on_replaced()
        if response.error_code:
            self._everything = True
            raise PeerGone(f"the broker refuses an update with error {response.error_code}")
        async with self._news:
            self._acknowledged = number
            self._news.notify_all()

    def _next_keys(self) -> list[TopicPartition]:
        """Remove and return the partitions for one update: whole topics, few enough to be applied quickly.

        A topic is never split: clients would see it with fewer partitions than it has.
        """
        keys: list[TopicPartition] = []
        while self._keys and len(keys) < PARTITIONS_PER_UPDATE:
            topic = next(iter(self._keys))
            keys += self._keys.pop(topic)
        return keys
