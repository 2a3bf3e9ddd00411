"""Change notifications in ZooKeeper: sequential znodes with which a broker tells the others what to read."""

import logging
from collections.abc import AsyncIterator
from typing import NamedTuple

from headrace.coordination.errors import CoordinationError
from headrace.coordination.session import Watcher, ZooKeeperSession
from headrace.replication.controller.transactions import remove_old_changes

logger = logging.getLogger(__name__)


class Notification(NamedTuple):
    path: str
    data: bytes


class ChangeNotifications:
    """The notifications below one directory, of which each is read once.

    Old notifications are removed. A broker that was away for so long that it has missed some has to read
    everything again.
    """

    def __init__(self, session: ZooKeeperSession, prefix: str, watch: Watcher) -> None:
        """Read the znodes `prefix` with a sequence number; call `watch` when there may be new ones."""
        self._session = session
        self._directory, _, self._name = prefix.rpartition("/")
        self._watch = watch
        self._last = -1  # the sequence number of the last one that was read

    async def skip(self) -> None:
        """Skip the existing notifications, before everything is read for the first time."""
        self._last = max(await self._numbers(), default=-1)

    async def notify(self, data: bytes, now_ms: int) -> None:
        """Tell the other brokers what has changed."""
        await self._session.create(f"{self._directory}/{self._name}", data, sequence=True)
        try:
            await remove_old_changes(self._session, self._directory, now_ms)
        except CoordinationError as error:  # the change itself is made; the next one removes them
            logger.debug("could not remove old change notifications: %s", error)

    async def new(self) -> AsyncIterator[Notification | None]:
        """Yield the notifications since the last call. None comes first if some were missed.

        A notification counts as read when the next one is requested, so that a failure repeats it.
        """
        numbers = await self._numbers()
        if numbers and min(numbers) > self._last + 1:
            yield None
            self._last = max(numbers)
        for number in sorted(numbers):
            if number <= self._last:
                continue
            path = f"{self._directory}/{numbers[number]}"
            found = await self._session.get(path)
            if found is not None:
                yield Notification(path, found.data)
            self._last = number

    async def _numbers(self) -> dict[int, str]:
        """Return the names of the notifications by their sequence numbers, and watch for new ones."""
        names = await self._session.children(self._directory, self._watch)
        return {
            int(name.removeprefix(self._name)): name
            for name in names
            if name.startswith(self._name) and name.removeprefix(self._name).isdigit()
        }
