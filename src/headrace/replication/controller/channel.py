"""The controller's channel to one broker: it sends every change, and the whole state after a reconnection.

A broker that cannot be reached over its channel may be alive and serve clients. Only ZooKeeper decides
whether it is alive, and no leader is elected because a channel has failed.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from headrace.protocol.between_brokers.update_metadata import PARTS_SINCE, UPDATE_METADATA
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.peers import Link, PeerGone, UnsupportedByPeer
from headrace.replication.controller.updates import VERSIONS as UPDATE_VERSIONS
from headrace.replication.controller.updates import Batch, TopicForgotten, Updates

PARTITIONS_PER_UPDATE = 1000  # unless more of them have changed together
MAX_QUEUED = 100_000  # partitions: a broker that is so far behind is sent the whole state instead
_UPDATE_TIMEOUT_S = 30.0
UNREACHABLE_AFTER = 3  # failed attempts in a row: a restart or a broken connection causes fewer
_FIRST_RETRY_S, _LAST_RETRY_S = 0.02, 0.5
_UNSUPPORTED_RETRY_S = 5.0  # only another version of one of the two brokers can help

logger = logging.getLogger(__name__)


class Channel:
    """Updates one broker.

    The queue holds the names of partitions, in batches; their state is read when an update is sent.
    """

    def __init__(
        self,
        broker_id: int,
        *,
        connect: Callable[[int], Awaitable[Link]],
        updates: Updates,
        on_reachable: Callable[[int, bool], None],
        on_replaced: Callable[[], None],
    ) -> None:
        self._broker_id = broker_id
        self._connect = connect
        self._updates = updates
        self._on_reachable = on_reachable
        self._on_replaced = on_replaced
        self._link: Link | None = None
        self._batches: deque[Batch] = deque()  # in the order in which they changed
        self._waiting = 0  # partitions in these batches
        self._everything = True
        self._queued = 1  # the number of the newest change
        self._acknowledged = 0  # the number of the newest change that the broker has acknowledged
        self._wake = asyncio.Event()
        self._news = asyncio.Condition()
        self._closed = False
        self._is_supported = True  # whether the broker knows a version of UpdateMetadata that we can send
        self._task = asyncio.get_running_loop().create_task(self._run())

    def queue(self, batch: Batch) -> None:
        """Queue partitions that have changed together for the broker."""
        if batch:
            self._batches.append(batch)
            self._waiting += len(batch)
            self._everything = self._everything or self._waiting > MAX_QUEUED
        self._queued += 1
        self._wake.set()

    def queue_everything(self) -> None:
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
        everything, batches = self._everything, self._next_batches()
        # Only the last update completes the queue.
        number = self._acknowledged if self._batches else self._queued
        self._everything = False
        try:
            if not everything:
                try:
                    await self._send(link, await self._updates.some(self._broker_id, batches))
                except TopicForgotten:
                    everything = True
            if everything:
                in_parts = PARTS_SINCE in link.common_versions(UPDATE_METADATA, UPDATE_VERSIONS)
                async for request in self._updates.everything(self._broker_id, in_parts=in_parts):
                    await self._send(link, request)
        except PeerGone:
            self._everything = True
            raise
        async with self._news:
            self._acknowledged = number
            self._news.notify_all()

    async def _send(self, link: Link, request: Message) -> None:
        response = await link.ask(request, UPDATE_VERSIONS, timeout_s=_UPDATE_TIMEOUT_S)
        if not self._is_supported:
            self._is_supported = True
            self._on_reachable(self._broker_id, True)
        if response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH:
            self._on_replaced()
        if response.error_code:
            raise PeerGone(f"the broker refuses an update with error {response.error_code}")

    def _next_batches(self) -> list[Batch]:
        """Remove and return what the next update is about: all batches, or some with few partitions.

        A batch is never split: it may be a new topic, and clients would see too few partitions.
        """
        batches: list[Batch] = []
        room = PARTITIONS_PER_UPDATE
        while self._batches and (self._everything or not batches or len(self._batches[0]) <= room):
            batches.append(self._batches.popleft())
            room -= len(batches[-1])
            self._waiting -= len(batches[-1])
        return batches
