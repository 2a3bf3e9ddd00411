"""One broker, kept up to date by the controller: told of every change, and of everything when it comes back.

A broker that cannot be reached over its channel may be alive and serving clients: whether it is alive is
ZooKeeper's to say, and nothing is elected because a channel has failed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message

UPDATE_VERSION = 8
PARTITIONS_PER_UPDATE = 8  # a broker makes the files of new partitions before it does anything else
_UPDATE_TIMEOUT_S = 30.0
UNREACHABLE_AFTER = 3  # attempts in a row: a broker that restarts, or a connection that breaks, is no news
_FIRST_RETRY_S, _LAST_RETRY_S = 0.02, 0.5

logger = logging.getLogger(__name__)


class PeerGone(Exception):
    """There is no connection to the other broker, or no more; what was asked may have been done or not."""


class Link(Protocol):
    """A connection to a broker."""

    async def ask(self, request: Message, version: int, *, timeout_s: float | None = None) -> Any: ...

    async def closed(self) -> None: ...

    def close(self) -> None: ...


class Channel:
    """Tells one broker. What is to be told is a set of names; it is told as it is when a message goes out."""

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
        self._wanted = 1  # how often there was something to tell
        self._told = 0
        self._wake = asyncio.Event()
        self._news = asyncio.Condition()
        self._closed = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    def tell(self, keys: Collection[TopicPartition]) -> None:
        """Have the broker told of these partitions."""
        for key in keys:
            self._keys.setdefault(key.topic, {})[key] = None
        self._wanted += 1
        self._wake.set()

    def tell_everything(self) -> None:
        """Have the broker told of all there is."""
        self._everything = True
        self._wanted += 1
        self._wake.set()

    async def told(self) -> None:
        """Return when the broker knows all that it was to be told before now."""
        wanted = self._wanted
        async with self._news:
            await self._news.wait_for(lambda: self._told >= wanted or self._closed)

    @property
    def is_open(self) -> bool:
        return self._link is not None

    async def ask(self, request: Message, version: int) -> Any:
        """What the broker answers; PeerGone if there is no connection."""
        if self._link is None:
            raise PeerGone(f"there is no connection to broker {self._broker_id}")
        return await self._link.ask(request, version)

    def close(self) -> None:
        self._closed = True
        self._ending = asyncio.get_running_loop().create_task(self._let_go())
        self._task.cancel()
        if self._link is not None:
            self._link.close()

    async def _let_go(self) -> None:
        """Nobody waits for a broker that is not told any more."""
        async with self._news:
            self._news.notify_all()

    async def _run(self) -> None:
        failures, delay = 0, _FIRST_RETRY_S
        while True:
            try:
                self._link = await self._connect(self._broker_id)
                self._on_reachable(self._broker_id, True)
                failures, delay = 0, _FIRST_RETRY_S
                self._everything = True
                await self._serve(self._link)
            except PeerGone as error:
                logger.debug("the channel to broker %d: %s", self._broker_id, error)
                failures += 1
                if failures == UNREACHABLE_AFTER:
                    self._on_reachable(self._broker_id, False)
                await asyncio.sleep(delay)
                delay = min(2 * delay, _LAST_RETRY_S)
            except Exception:  # a channel that ended here would never be missed
                logger.exception("telling broker %d failed and is tried again", self._broker_id)
                await asyncio.sleep(_LAST_RETRY_S)
            finally:
                if self._link is not None:
                    self._link.close()
                self._link = None

    async def _serve(self, link: Link) -> None:
        closed = asyncio.ensure_future(link.closed())
        try:
            while True:
                if self._everything or self._wanted > self._told:
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
        number = self._told if self._keys else self._wanted  # the last message says all that was wanted
        self._everything = False
        try:
            response = await link.ask(
                self._compose(self._broker_id, keys), UPDATE_VERSION, timeout_s=_UPDATE_TIMEOUT_S
            )
        except PeerGone:
            self._everything = True
            raise
        if response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH:
            self._on_replaced()
        if response.error_code:
            self._everything = True
            raise PeerGone(f"it refuses an update with error {response.error_code}")
        async with self._news:
            self._told = number
            self._news.notify_all()

    def _next_keys(self) -> list[TopicPartition]:
        """Remove and return partitions for one message: whole topics, few enough to be taken in quickly.

        A topic is never split: clients would see it with fewer partitions than it has.
        """
        keys: list[TopicPartition] = []
        while self._keys and len(keys) < PARTITIONS_PER_UPDATE:
            topic = next(iter(self._keys))
            keys += self._keys.pop(topic)
        return keys
