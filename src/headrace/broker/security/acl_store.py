"""The ACLs of the cluster in ZooKeeper: read at the start, read again when they change, and changed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from headrace.broker.membership.change_notifications import ChangeNotifications
from headrace.coordination.session import Conflict, ZooKeeperSession
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.security import acl_storage
from headrace.security.acl_index import AclIndex
from headrace.security.acl_storage import UnreadableAcls
from headrace.security.acls import AclEntry, PatternType, ResourcePattern
from headrace.security.authorization import ResourceType

MAX_ENTRIES_BYTES: Final = 512 * 1024
"""Of one pattern: all its entries share a znode, which has 1 MiB at most."""
READ_TOGETHER: Final = 64  # patterns
_ATTEMPTS: Final = 10  # to change a pattern that other brokers change at the same time

logger = logging.getLogger(__name__)

Changed = Callable[[frozenset[AclEntry]], frozenset[AclEntry]]
"""Returns the new entries of a pattern, given the old ones."""


class AclStore:
    """Keeps an index equal to what ZooKeeper has. Every broker has one; each may change ACLs."""

    def __init__(
        self,
        session: ZooKeeperSession,
        index: AclIndex,
        *,
        now_ms: Callable[[], int],
        changed: Callable[[str], None],
    ) -> None:
        """Call `changed` with a key of `loaders` when that function has to be called."""
        self.index = index
        self._session = session
        self._now_ms = now_ms
        self._lock = asyncio.Lock()
        self._notifications = {
            pattern_type: ChangeNotifications(
                session, f"{directory}/{acl_storage.CHANGE_PREFIX}", partial(changed, directory)
            )
            for pattern_type, directory in acl_storage.ACL_CHANGES.items()
        }

    @property
    def loaders(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the functions that read what has changed, by the paths of the notifications."""
        return {
            directory: partial(self._load_changes, pattern_type)
            for pattern_type, directory in acl_storage.ACL_CHANGES.items()
        }

    async def load(self) -> None:
        """Read all ACLs for the first time, and watch for changes from then on.

        UnreadableAcls if there is one that cannot be read: without it too much might be allowed.
        """
        for path in acl_storage.PERSISTENT_PATHS:
            await self._session.ensure(path)
        for pattern_type, notifications in self._notifications.items():
            await notifications.skip()
            await self._load_all(pattern_type)

    async def change(self, pattern: ResourcePattern, changed: Changed) -> frozenset[AclEntry]:
        """Change the entries of a pattern, and return the old ones. The change is in force here at once."""
        path = acl_storage.path(pattern)
        async with self._lock:
            for attempt in range(1, _ATTEMPTS + 1):
                found = await self._session.get(path)
                old = acl_storage.decode(None if found is None else found.data)
                new = changed(old)
                try:
                    await self._write(path, new, None if found is None else found.version)
                except Conflict:  # another broker has changed the pattern since it was read
                    if attempt == _ATTEMPTS:
                        raise
                else:
                    break
            # Also if nothing has changed: an earlier attempt may have failed before it could notify others.
            data = acl_storage.encode_change(pattern)
            await self._notifications[pattern.pattern_type].notify(data, self._now_ms())
            self.index.replace(pattern, new)
            return old

    async def _write(self, path: str, entries: frozenset[AclEntry], version: int | None) -> None:
        if not entries:
            if version is not None:
                await self._session.delete(path, version)
            return
        data = acl_storage.encode(entries)
        if len(data) > MAX_ENTRIES_BYTES:
            raise InvalidRequest(
                f"the ACLs of a resource pattern have {len(data)} bytes, expected at most {MAX_ENTRIES_BYTES}"
            )
        if version is None:
            await self._session.create(path, data)
        else:
            await self._session.set(path, data, version)

    async def _load_changes(self, pattern_type: PatternType) -> None:
        """Read the patterns that have changed. If one cannot be read, what was known of it stays in force."""
        async for notification in self._notifications[pattern_type].new():
            try:
                if notification is None:
                    await self._load_all(pattern_type)
                else:
                    await self._load(acl_storage.decode_change(notification.data, pattern_type))
            except ValueError:
                logger.exception("changed ACLs in ZooKeeper are not readable: the old ones stay in force")

    async def _load_all(self, pattern_type: PatternType) -> None:
        """Read all patterns of a type, some at a time, and forget those that are gone."""
        for resource_type in ResourceType:
            names = await self._session.children(acl_storage.directory(resource_type, pattern_type))
            known = self.index.names(resource_type, pattern_type)
            patterns = [
                ResourcePattern(resource_type, name, pattern_type) for name in sorted({*names, *known})
            ]
            for first in range(0, len(patterns), READ_TOGETHER):
                await asyncio.gather(*map(self._load, patterns[first : first + READ_TOGETHER]))

    async def _load(self, pattern: ResourcePattern) -> None:
        found = await self._session.get(acl_storage.path(pattern))
        try:
            self.index.replace(pattern, acl_storage.decode(None if found is None else found.data))
        except ValueError as error:
            raise UnreadableAcls(f"the ACLs of {pattern} in ZooKeeper: {error}") from error
