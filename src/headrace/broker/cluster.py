"""Keeping the image of the cluster true: what ZooKeeper says, watched and read again when it changes."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping

from headrace.broker.image import ClusterImage, TopicImage
from headrace.coordination.errors import CoordinationError
from headrace.coordination.session import Conflict, ZooKeeperSession
from headrace.coordination.znodes import (
    BROKER_IDS,
    CONFIG_CHANGES,
    PERSISTENT_PATHS,
    TOPICS,
    BrokerRegistration,
    ClusterId,
    Config,
    ConfigChange,
    Controller,
    ControllerEpoch,
    PartitionState,
    TopicAssignment,
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
    """Reads brokers, topics and the controller into an image, and again whenever a watch fires."""

    def __init__(
        self,
        session: ZooKeeperSession,
        image: ClusterImage,
        *,
        on_topic: Callable[[TopicImage], None],
        on_topic_gone: Callable[[str], None],
        on_broker_config: Callable[[str, Mapping[str, str]], None],
        on_no_controller: Callable[[], Awaitable[None]],
    ) -> None:
        self.image = image
        self._session = session
        self._on_topic = on_topic
        self._on_topic_gone = on_topic_gone
        self._on_broker_config = on_broker_config
        self._on_no_controller = on_no_controller
        self._changes_seen: set[str] = set()
        self._dirty: set[str] = set()
        self._every_topic = False  # also those in the image are to be read again
        self._refreshing: asyncio.Task[None] | None = None
        self._closed = False
        self._loaders: Mapping[str, Callable[[], Awaitable[None]]] = {
            TOPICS: self._load_topics,
            BROKER_IDS: self._load_brokers,
            Controller.path: self._load_controller,
            CONFIG_CHANGES: self._load_config_changes,
        }

    async def load(self) -> None:
        """Read everything, what is known already as well, and watch it from then on."""
        self._every_topic = True
        self._changes_seen = set(await self._session.children(CONFIG_CHANGES, self._config_changed))
        for name in await self._session.children("/config/brokers"):
            await self.load_config("brokers", name)
        await self._load_controller()
        await self._load_brokers()
        await self._load_topics()

    def refresh(self) -> None:
        """Read everything again, in the background: there was no connection, and no watch, for a while."""
        self._every_topic = True
        for what in self._loaders:
            self._changed(what)

    def close(self) -> None:
        self._closed = True
        if self._refreshing is not None:
            self._refreshing.cancel()

    async def load_topic(self, name: str) -> None:
        """Read one topic anew; forget it if it is gone."""
        found = await self._session.get(f"{TOPICS}/{name}")
        if found is None:
            self._forget_topic(name)
            return
        assignment = TopicAssignment.decode(name, found.data)
        states = await asyncio.gather(
            *(self._load_state(name, partition) for partition in assignment.replicas)
        )
        self.image.topic_configs[name] = await self._config("topics", name)
        topic = TopicImage.of(assignment, {state.partition: state for state in states if state is not None})
        self.image.put_topic(topic)
        self._on_topic(topic)

    async def load_config(self, kind: str, name: str) -> None:
        """Read the settings of a topic or a broker anew, and put them in force."""
        values = await self._config(kind, name)
        if kind == "brokers":
            self._on_broker_config(name, values)
        elif name in self.image.topics:
            self.image.topic_configs[name] = values
            self._on_topic(self.image.topics[name])

    async def _config(self, kind: str, name: str) -> Mapping[str, str]:
        found = await self._session.get(Config.path_of(kind, name))
        return {} if found is None else Config.decode(kind, name, found.data).values

    async def _load_config_changes(self) -> None:
        """Put in force what others have announced since the last look."""
        names = set(await self._session.children(CONFIG_CHANGES, self._config_changed))
        for name in sorted(names - self._changes_seen):
            path = f"{CONFIG_CHANGES}/{name}"
            found = await self._session.get(path)
            if found is not None:
                kind, _, entity = ConfigChange.decode(path, found.data).entity.partition("/")
                await self.load_config(kind, entity)
        self._changes_seen = names

    def _config_changed(self) -> None:
        self._changed(CONFIG_CHANGES)

    async def _load_state(self, topic: str, partition: int) -> PartitionState | None:
        found = await self._session.get(PartitionState.path_of(topic, partition))
        return None if found is None else PartitionState.decode(topic, partition, found.data)

    async def _load_topics(self) -> None:
        names = await self._session.children(TOPICS, lambda: self._changed(TOPICS))
        for gone in set(self.image.topics) - set(names):
            self._forget_topic(gone)
        every, self._every_topic = self._every_topic, False
        try:
            await _each(self.load_topic, names if every else set(names) - set(self.image.topics))
        except BaseException:
            self._every_topic |= every
            raise

    def _forget_topic(self, name: str) -> None:
        if name in self.image.topics:
            self.image.remove_topic(name)
            self._on_topic_gone(name)

    async def _load_brokers(self) -> None:
        names = await self._session.children(BROKER_IDS, lambda: self._changed(BROKER_IDS))
        live = {int(name) for name in names}
        for gone in set(self.image.brokers) - live:
            del self.image.brokers[gone]
        await _each(self._load_broker, live)
        self.image.version += 1

    async def _load_broker(self, broker_id: int) -> None:
        found = await self._session.get(f"{BROKER_IDS}/{broker_id}")
        if found is not None:
            self.image.brokers[broker_id] = BrokerRegistration.decode(broker_id, found.data)
            self.image.broker_epochs[broker_id] = found.created_zxid

    async def _load_controller(self) -> None:
        found = await self._session.get(Controller.path, lambda: self._changed(Controller.path))
        self.image.controller_id = -1 if found is None else Controller.decode(found.data).broker_id
        self.image.version += 1
        if found is None:
            await self._on_no_controller()  # whoever is quickest; the watch tells who that was

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
            else:
                delay = FIRST_RETRY_S


async def become_controller(session: ZooKeeperSession, controller: Controller) -> int | None:
    """Try to be the controller; return the new epoch, or None if there is one already."""
    try:
        await session.create(Controller.path, controller.encode(), ephemeral=True)
    except Conflict:
        holder = await session.get(Controller.path)
        if holder is None or holder.ephemeral_owner != session.session_id:
            return None  # else it is ours: the answer to an earlier attempt got lost
    found = await session.get(ControllerEpoch.path)
    if found is None:
        await session.create(ControllerEpoch.path, ControllerEpoch(epoch=1).encode())
        return 1
    epoch = ControllerEpoch.decode(found.data).epoch + 1
    await session.set(ControllerEpoch.path, ControllerEpoch(epoch=epoch).encode(), found.version)
    return epoch


async def _each(function: Callable[..., Awaitable[None]], arguments: Iterable[object]) -> None:
    await asyncio.gather(*(function(argument) for argument in arguments))
