"""Watching what ZooKeeper says of brokers, the controller and settings; topics come from the controller."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping

from headrace.coordination.errors import CoordinationError
from headrace.coordination.session import Conflict, ZooKeeperSession
from headrace.coordination.znodes import (
    BROKER_IDS,
    CONFIG_CHANGES,
    PERSISTENT_PATHS,
    BrokerRegistration,
    ClusterId,
    Config,
    ConfigChange,
    Controller,
    decode_config_name,
    encode_id,
)
from headrace.storage.errors import StorageError

FIRST_RETRY_S, LAST_RETRY_S = 0.1, 1.0

logger = logging.getLogger(__name__)


async def prepare(session: ZooKeeperSession) -> str:
    """Make the paths that must be there, and the cluster's id if this is its first broker; return the id."""
    for path in PERSISTENT_PATHS:
        await session.ensure(path)
    try:
        await session.create(ClusterId.path, ClusterId(id=encode_id(secrets.token_bytes(16))).encode())
    except Conflict:
        logger.debug("the cluster has an id already")
    found = await session.get(ClusterId.path)
    assert found is not None, "the cluster's id has just been made"
    return ClusterId.decode(found.data).id


class ClusterView:
    """Reads brokers, settings and who is the controller, and again whenever a watch fires."""

    def __init__(
        self,
        session: ZooKeeperSession,
        *,
        on_config: Callable[[str, str, Mapping[str, str]], None],
        on_brokers: Callable[[], Awaitable[None]],
        on_controller: Callable[[int], Awaitable[None]],
    ) -> None:
        self.registrations: dict[int, BrokerRegistration] = {}
        self.broker_epochs: dict[int, int] = {}
        self._session = session
        self._on_config = on_config
        self._on_brokers = on_brokers
        self._on_controller = on_controller
        self._changes_seen: set[str] = set()
        self._dirty: set[str] = set()
        self._refreshing: asyncio.Task[None] | None = None
        self._loaded = False  # at least once
        self._closed = False
        self._loaders: Mapping[str, Callable[[], Awaitable[None]]] = {
            BROKER_IDS: self.load_brokers,
            Controller.path: self._load_controller,
            CONFIG_CHANGES: self._load_config_changes,
        }

    async def load(self) -> None:
        """Read everything, and watch it from then on."""
        if self._loaded:
            await self._load_config_changes()  # what was missed meanwhile
        else:
            self._changes_seen = set(await self._session.children(CONFIG_CHANGES, self._config_changed))
            for kind in ("brokers", "groups", "client-metrics"):
                for name in await self._session.children(f"/config/{kind}"):
                    await self.load_config(kind, decode_config_name(name))
            self._loaded = True
        await self.load_brokers()
        await self._load_controller()

    def refresh(self) -> None:
        """Read everything again, in the background: there was no connection, and no watch, for a while."""
        for what in self._loaders:
            self._changed(what)

    def look_for_controller(self) -> None:
        """Find out again who the controller is, in the background."""
        self._changed(Controller.path)

    def close(self) -> None:
        self._closed = True
        if self._refreshing is not None:
            self._refreshing.cancel()

    async def load_config(self, kind: str, name: str) -> None:
        """Read the settings of a topic, a broker or the like anew, and put them in force."""
        found = await self._session.get(Config.path_of(kind, name))
        self._on_config(kind, name, {} if found is None else Config.decode(kind, name, found.data).values)

    async def _load_config_changes(self) -> None:
        """Put in force what others have announced since the last look."""
        names = set(await self._session.children(CONFIG_CHANGES, self._config_changed))
        for name in sorted(names - self._changes_seen):
            path = f"{CONFIG_CHANGES}/{name}"
            found = await self._session.get(path)
            if found is not None:
                kind, _, entity = ConfigChange.decode(path, found.data).entity.partition("/")
                await self.load_config(kind, decode_config_name(entity))
        self._changes_seen = names

    def _config_changed(self) -> None:
        self._changed(CONFIG_CHANGES)

    async def load_brokers(self) -> None:
        """Read who is registered, and watch it from then on."""
        names = await self._session.children(BROKER_IDS, lambda: self._changed(BROKER_IDS))
        live = {int(name) for name in names}
        for gone in self.registrations.keys() - live:
            del self.registrations[gone]
        await _each(self._load_broker, live)
        await self._on_brokers()

    async def _load_broker(self, broker_id: int) -> None:
        # Watched itself: a broker that goes and comes back between two looks is not the same.
        found = await self._session.get(f"{BROKER_IDS}/{broker_id}", lambda: self._changed(BROKER_IDS))
        if found is None:
            self.registrations.pop(broker_id, None)
        else:
            self.registrations[broker_id] = BrokerRegistration.decode(broker_id, found.data)
            self.broker_epochs[broker_id] = found.created_zxid

    async def _load_controller(self) -> None:
        found = await self._session.get(Controller.path, lambda: self._changed(Controller.path))
        await self._on_controller(-1 if found is None else Controller.decode(found.data).broker_id)

    def _changed(self, what: str) -> None:
        """A watch has fired: read again, once for however many fired meanwhile."""
        self._dirty.add(what)
        if not self._closed and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())

    async def _refresh(self) -> None:
        """Read what is dirty until nothing is; a read that fails has set no watch, so it is tried again."""
        delay = FIRST_RETRY_S
        while self._dirty:
            what = self._dirty.pop()
            try:
                await self._loaders[what]()
            except (CoordinationError, StorageError, OSError) as error:
                self._dirty.add(what)
                level = logging.WARNING if delay == FIRST_RETRY_S else logging.DEBUG  # once will do
                logger.log(level, "could not read %s, trying again: %s", what, error)
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_RETRY_S)
            except Exception:  # what is not looked at any more would never be missed
                logger.exception("could not read %s, trying again", what)
                self._dirty.add(what)
                await asyncio.sleep(LAST_RETRY_S)
            else:
                delay = FIRST_RETRY_S


async def _each(function: Callable[..., Awaitable[None]], arguments: Iterable[object]) -> None:
    await asyncio.gather(*(function(argument) for argument in arguments))
