"""Watches brokers, the controller and configs in ZooKeeper; topics come from the controller."""

import asyncio
import logging
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from headrace.broker.membership.change_notifications import ChangeNotifications
from headrace.coordination import znodes
from headrace.coordination.errors import CoordinationError
from headrace.coordination.session import Conflict, ZooKeeperSession
from headrace.storage.errors import StorageError

FIRST_RETRY_S, LAST_RETRY_S = 0.1, 1.0
_KINDS = ("brokers", "groups", "users", "clients", "ips")  # configs that every broker reads
_READ_TOGETHER = 64  # configs: a cluster may have many users

logger = logging.getLogger(__name__)


async def prepare(session: ZooKeeperSession) -> str:
    """Create the persistent paths, and the cluster id if this is the first broker; return the id."""
    for path in znodes.PERSISTENT_PATHS:
        await session.ensure(path)
    new = znodes.ClusterId(id=znodes.encode_id(secrets.token_bytes(16)))
    return znodes.ClusterId.decode(await _first(session, znodes.ClusterId.path, new.encode())).id


async def cluster_secret(session: ZooKeeperSession) -> bytes:
    """Return the secret of the cluster, which the first broker that needs it makes."""
    new = znodes.ClusterSecret(secret=secrets.token_bytes(32))
    return znodes.ClusterSecret.decode(await _first(session, znodes.ClusterSecret.path, new.encode())).secret


async def _first(session: ZooKeeperSession, path: str, data: bytes) -> bytes:
    """Return the content of a znode, which is `data` if it does not exist yet."""
    with suppress(Conflict):
        await session.create(path, data)
    found = await session.get(path)
    assert found is not None, f"{path} was just created"
    return found.data


class RegisteredBrokers(NamedTuple):
    """The brokers that are registered, and the epochs of their registrations."""

    registrations: Mapping[int, znodes.BrokerRegistration]
    epochs: Mapping[int, int]


class ClusterView:
    """Reads brokers, configs and the id of the controller, and again whenever a watch fires.

    Its owner appends to `on_brokers` and `on_controller`, which are called in order, before `load`. It may
    add functions to `loaders`, which are called after `changed` has been called with their key.
    """

    def __init__(
        self, session: ZooKeeperSession, on_config: Callable[[str, str, Mapping[str, str]], None]
    ) -> None:
        self.registrations: dict[int, znodes.BrokerRegistration] = {}
        self.on_brokers: list[Callable[[RegisteredBrokers], Awaitable[None]]] = []
        self.on_controller: list[Callable[[int], Awaitable[None]]] = []  # -1: there is no controller
        self._epochs: dict[int, int] = {}
        self._watched: set[int] = set()  # brokers whose registrations have not changed since they were read
        self._reading_brokers = asyncio.Lock()
        self._session = session
        self._on_config = on_config
        self._loaded_configs: defaultdict[str, set[str]] = defaultdict(set)  # the names of each kind
        self._notifications = ChangeNotifications(
            session, znodes.ConfigChange.prefix, lambda: self.changed(znodes.CONFIG_CHANGES)
        )
        self._dirty: set[str] = set()
        self._refreshing: asyncio.Task[None] | None = None
        self._loaded = False
        self._closed = False
        self.loaders: dict[str, Callable[[], Awaitable[None]]] = {
            znodes.BROKER_IDS: self.load_brokers,
            znodes.Controller.path: self._load_controller,
            znodes.CONFIG_CHANGES: self._load_config_changes,
        }

    @property
    def brokers(self) -> RegisteredBrokers:
        registrations = dict(self.registrations)
        return RegisteredBrokers(registrations, {each: self._epochs[each] for each in registrations})

    async def load(self) -> None:
        """Read everything, and watch it from then on."""
        self._watched.clear()
        if self._loaded:
            await self._load_config_changes()  # those that were missed without a session
        else:
            await self._notifications.skip()
            # The controller sends those of topics.
            await self._load_configs(*_KINDS)
            self._loaded = True
        await self.load_brokers()
        await self._load_controller()

    def refresh(self) -> None:
        """Read everything again, in the background: without a connection no watch has fired."""
        self._watched.clear()
        for what in self.loaders:
            self.changed(what)

    def look_for_controller(self) -> None:
        """Read again who the controller is, in the background."""
        self.changed(znodes.Controller.path)

    def close(self) -> None:
        self._closed = True
        if self._refreshing is not None:
            self._refreshing.cancel()

    async def load_config(self, kind: str, name: str) -> None:
        """Read the configs of a topic, broker, group, user or another resource, and apply them."""
        await self._load_config(kind, name)

    async def _load_config(self, kind: str, name: str) -> int:
        """Read and apply a config; return the number of znodes below it."""
        found = await self._session.get(znodes.Config.path_of(kind, name))
        values = {} if found is None else znodes.Config.decode(kind, name, found.data).values
        if values:
            self._loaded_configs[kind].add(name)
        else:
            self._loaded_configs[kind].discard(name)
        self._on_config(kind, name, values)
        return 0 if found is None else found.children

    async def _load_config_changes(self) -> None:
        """Apply the configs that other brokers have announced since the last call."""
        async for notification in self._notifications.new():
            if notification is None:
                await self._load_configs("topics", *_KINDS)
            else:
                await self.load_config(
                    *znodes.Config.entity_of(znodes.ConfigChange.decode(*notification).entity)
                )

    async def _load_configs(self, *kinds: str) -> None:
        """Read the configs of these kinds, and those of users for single client ids."""
        loaded_before = [kind for kind in self._loaded_configs if znodes.user_of(kind) is not None]
        for kind in kinds:
            parents = await self._load_kind(kind)
            if kind == "users":
                for each in {*map(znodes.clients_of, parents), *loaded_before}:
                    await self._load_kind(each)

    async def _load_kind(self, kind: str) -> list[str]:
        """Read all configs of one kind; return the names of those with znodes below them."""
        encoded = await self._session.children(f"/config/{kind}")
        names = list({znodes.decode_config_name(name, kind) for name in encoded} | self._loaded_configs[kind])
        parents = []
        for first in range(0, len(names), _READ_TOGETHER):
            some = names[first : first + _READ_TOGETHER]
            children = await asyncio.gather(*(self._load_config(kind, name) for name in some))
            parents += [name for name, count in zip(some, children, strict=True) if count]
        return parents

    async def load_brokers(self, *, again: bool = False) -> None:
        """Read which brokers are registered, and the registrations that are new or have changed.

        With `again`, all registrations are read. Calls take turns: a registration that another call is
        reading is in `_watched`, but not yet in `registrations`.
        """
        async with self._reading_brokers:
            if again:
                self._watched.clear()
            names = await self._session.children(znodes.BROKER_IDS, lambda: self.changed(znodes.BROKER_IDS))
            live = {int(name) for name in names}
            for gone in self.registrations.keys() - live:
                del self.registrations[gone]
            self._watched &= live
            await asyncio.gather(*(self._load_broker(broker_id) for broker_id in live - self._watched))
        for callback in self.on_brokers:
            await callback(self.brokers)

    async def _load_broker(self, broker_id: int) -> None:
        # A watch on each: a broker that was restarted between two reads has a new epoch.
        self._watched.add(broker_id)  # before the watch can fire
        path = znodes.BrokerRegistration.path_of(broker_id)
        try:
            found = await self._session.get(path, lambda: self._broker_changed(broker_id))
        except BaseException:
            self._watched.discard(broker_id)
            raise
        if found is None:
            self._watched.discard(broker_id)
            self.registrations.pop(broker_id, None)
        else:
            self.registrations[broker_id] = znodes.BrokerRegistration.decode(broker_id, found.data)
            self._epochs[broker_id] = found.created_zxid

    def _broker_changed(self, broker_id: int) -> None:
        self._watched.discard(broker_id)
        self.changed(znodes.BROKER_IDS)

    async def _load_controller(self) -> None:
        found = await self._session.get(znodes.Controller.path, lambda: self.changed(znodes.Controller.path))
        controller_id = -1 if found is None else znodes.Controller.decode(found.data).broker_id
        for callback in self.on_controller:
            await callback(controller_id)

    def changed(self, what: str) -> None:
        """Read `what` again after its watch has fired, once for any number of watches that have fired."""
        self._dirty.add(what)
        if not self._closed and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())

    async def _refresh(self) -> None:
        """Read what is dirty until nothing is; a failed read has set no watch, so it is retried."""
        delay = FIRST_RETRY_S
        while self._dirty:
            what = self._dirty.pop()
            try:
                await self.loaders[what]()
            except (CoordinationError, StorageError, OSError) as error:
                self._dirty.add(what)
                level = logging.WARNING if delay == FIRST_RETRY_S else logging.DEBUG  # one warning is enough
                logger.log(level, "could not read %s, retrying: %s", what, error)
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_RETRY_S)
            except Exception:  # nobody would notice that this task has ended
                logger.exception("could not read %s, retrying", what)
                self._dirty.add(what)
                await asyncio.sleep(LAST_RETRY_S)
            else:
                delay = FIRST_RETRY_S
