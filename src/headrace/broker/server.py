"""The broker: starts in order, answers, keeps house, and stops in the reverse order."""

import asyncio
import errno
import logging
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from headrace.broker.broker_settings import BROKER_SETTINGS
from headrace.broker.cluster import (
    FIRST_RETRY_S,
    LAST_RETRY_S,
    ClusterView,
    become_controller,
    prepare,
)
from headrace.broker.config import BrokerConfig, Endpoint
from headrace.broker.config_admin import ALL_BROKERS, ConfigAdmin
from headrace.broker.connection import Connection
from headrace.broker.descriptors import raise_limit, room_for_connections
from headrace.broker.dispatch import load_handlers
from headrace.broker.errors import NotLeader, StartRefused, UnknownTopicId, UnknownTopicOrPartition
from headrace.broker.fetch_sessions import FetchSessions
from headrace.broker.finishing import Finishing
from headrace.broker.groups import OFFSETS_TOPIC, Groups
from headrace.broker.housekeeping import Housekeeping
from headrace.broker.image import ClusterImage, TopicImage
from headrace.broker.partition import Partition
from headrace.broker.producer_ids import ProducerIds
from headrace.broker.settings import InvalidSetting, Scope
from headrace.broker.topic_admin import TopicAdmin
from headrace.coordination.errors import CoordinationError
from headrace.coordination.session import Conflict, SessionState, ZooKeeperSession
from headrace.coordination.znodes import BrokerRegistration, Controller
from headrace.protocol.buffer_pool import BufferPool
from headrace.protocol.fields import Buffer
from headrace.protocol.frame import CHUNK_BYTES
from headrace.storage.directory import LogDirectory
from headrace.storage.errors import LogOffline, StorageError
from headrace.storage.identity import Identity
from headrace.storage.topics import TopicPartition

_FINISHING_S = 2.0  # for changes to the cluster that are under way when a broker is told to stop

REPLIES_BYTES = 256 * 1024 * 1024  # made and not sent, over all connections, before Fetches get less

logger = logging.getLogger(__name__)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Broker:
    """One broker. Everything in it runs on the event loop that called `start`, except where it blocks."""

    session: ZooKeeperSession
    image: ClusterImage
    view: ClusterView
    logs: LogDirectory

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self.broker_id = config.broker_id
        self.partitions: dict[TopicPartition, Partition] = {}
        self.fetch_sessions = FetchSessions(config.integer("max.incremental.fetch.session.cache.slots"))
        self.finishing = Finishing()
        self.topic_admin = TopicAdmin(self)
        self.config_admin = ConfigAdmin(self)
        self.buffers = BufferPool()
        # Encoded replies about all topics, and the image's version they are of; one for each version of
        # the API, listener and pair of flags.
        self.metadata_cache: dict[tuple[int, str, bool, bool], tuple[int, list[Buffer]]] = {}
        self.controller_epoch = 0
        self.endpoints: list[Endpoint] = []  # what clients are told, ports as they really are
        self._servers: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._per_address: Counter[str] = Counter()
        self._buffered = 0  # bytes, over all connections' receive buffers
        self._unsent = 0  # bytes, over all connections' replies
        self._lost = False
        self._announced = False  # once, at the start
        self._rejoining: asyncio.Task[None] | None = None
        self._housekeeping = Housekeeping(self)
        self.groups = Groups(self)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    @property
    def bootstrap(self) -> str:
        """What clients connect to first: HOST:PORT, one for each listener."""
        return ",".join(str(endpoint).partition("://")[2] for endpoint in self.endpoints)

    # -- life ----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the logs, join the cluster and take connections; what fails leaves nothing behind."""
        self._loop = asyncio.get_running_loop()
        load_handlers()
        raise_limit()
        self.session = await ZooKeeperSession.connect(
            self.config.text("zookeeper.connect"),
            session_timeout_ms=self.config.integer("zookeeper.session.timeout.ms"),
            connect_timeout_ms=self.config.integer("zookeeper.connection.timeout.ms"),
        )
        self.session.on_state(self._session_changed)
        try:
            self.image = ClusterImage(await prepare(self.session))
            self.logs = await asyncio.to_thread(self._open_logs)
            try:
                await self._join()
            except BaseException:
                await asyncio.to_thread(self.logs.close)
                raise
        except BaseException:
            await self._stop_listening()
            await self.session.close()
            raise

    async def _join(self) -> None:
        self.view = ClusterView(
            self.session,
            self.image,
            on_topic=self._topic_changed,
            on_topic_gone=self.drop_topic,
            on_broker_config=self._broker_config_changed,
            on_no_controller=self._replace_controller,
        )
        self.producer_ids = ProducerIds(self.session, self.broker_id)
        await self._listen()
        await self.topic_admin.finish_deletions()
        await self._announce()
        self._housekeeping.start()
        for server in self._servers:
            await server.start_serving()

    async def _announce(self) -> None:
        """Be seen by the others, and see them."""
        await self._register()
        await self._become_controller()
        await self.view.load()
        if self.controller_epoch:
            await self.topic_admin.finish_creations()
        self._announced = True
        if self._lost:  # meanwhile, and with it the registration
            self._start_rejoining()

    async def _become_controller(self) -> None:
        controller = Controller(broker_id=self.broker_id, timestamp_ms=now_ms())
        self.controller_epoch = await become_controller(self.session, controller) or 0

    async def _replace_controller(self) -> None:
        """There is no controller: be it, unless another broker is quicker."""
        await self._become_controller()
        if self.controller_epoch:
            await self.topic_admin.finish_creations()

    def _session_changed(self, state: SessionState) -> None:
        """After a session was lost everything ephemeral is gone: with the next one, announce it again."""
        logger.warning("the session with ZooKeeper is %s", state.value)
        if state is SessionState.LOST:
            self._lost = True
        elif state is SessionState.CONNECTED and self._announced:
            if not self._lost:
                self.view.refresh()
            else:
                self._start_rejoining()

    def _start_rejoining(self) -> None:
        if self._rejoining is None or self._rejoining.done():
            self._rejoining = self._loop.create_task(self._rejoin())

    async def _rejoin(self) -> None:
        """Announce the broker again, however often it takes: out of the cluster it is of no use."""
        delay = FIRST_RETRY_S
        while self._lost:
            self._lost = False
            try:
                await self._announce()
            except (CoordinationError, StorageError, StartRefused, OSError) as error:
                self._lost = True
                logger.warning("could not join the cluster again, trying on: %s", error)
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_RETRY_S)
            else:
                logger.info("joined the cluster again")

    async def stop(self) -> None:
        """Stop cleanly: no new requests, all logs flushed and marked, the registration gone."""
        self.session.on_state(lambda _state: None)
        if self._rejoining is not None:
            self._rejoining.cancel()
        self._housekeeping.stop()
        await self._stop_listening()
        await self.finishing.finished(_FINISHING_S)
        self.groups.stop()
        self.view.close()
        await self._housekeeping.stopped()
        await asyncio.to_thread(self.logs.close)
        await self.session.close()

    def _open_logs(self) -> LogDirectory:
        # The topics' own settings are not known yet: they come with the image, before any append.
        return LogDirectory.open(
            Path(self.config.text("log.dirs")),
            Identity(self.broker_id, self.image.cluster_id),
            config_of=lambda _topic: self.config.log_config({}),
            now_ms=now_ms,
        )

    async def _listen(self) -> None:
        advertised = {endpoint.name: endpoint for endpoint in self.config.advertised}
        for listener in self.config.listeners:
            try:
                server = await self._loop.create_server(
                    lambda name=listener.name: Connection(self, name),
                    listener.host or ("0.0.0.0" if listener.port == 0 else None),  # noqa: S104  asked for
                    listener.port,
                    start_serving=False,
                    reuse_address=True,
                )
            except OSError as error:
                raise StartRefused(f"cannot listen on {listener}: {_why(error)}") from error
            self._servers.append(server)
            port = server.sockets[0].getsockname()[1]
            told = advertised.get(listener.name) or Endpoint(listener.name, _reachable(listener.host), port)
            self.endpoints.append(told)

    async def _register(self) -> None:
        first = self.endpoints[0]
        registration = BrokerRegistration(
            broker_id=self.broker_id,
            endpoints=[str(endpoint) for endpoint in self.endpoints],
            security_protocols={endpoint.name: "PLAINTEXT" for endpoint in self.endpoints},
            host=first.host,
            port=first.port,
            timestamp_ms=now_ms(),
            rack=self.config.rack,
        )
        deadline = self._loop.time() + self.config.integer("zookeeper.session.timeout.ms") / 1000 + 2
        while True:
            try:
                await self.session.create(registration.path, registration.encode(), ephemeral=True)
            except Conflict:
                if await self._yield_to_other(registration.path, deadline):
                    return
            else:
                return

    async def _yield_to_other(self, path: str, deadline: float) -> bool:
        """Wait for a dead broker's registration to expire; refuse to start beside a living one.

        True if the registration is our own: the answer to an earlier attempt got lost.
        """
        found = await self.session.get(path)
        if found is None:
            return False
        if found.ephemeral_owner == self.session.session_id:
            return True
        other = BrokerRegistration.decode(self.broker_id, found.data)
        if self._loop.time() > deadline or await _answers(other.host, other.port):
            raise StartRefused(
                f"broker {self.broker_id} is running already, at {other.host}:{other.port}: "
                "stop it first, or give this one another broker.id"
            )
        await asyncio.sleep(0.1)
        return False

    async def _stop_listening(self) -> None:
        for server in self._servers:
            server.close()
        for connection in tuple(self._connections):
            connection.close()
        self._servers.clear()

    # -- connections ---------------------------------------------------------------------------

    def admit(self, connection: Connection) -> bool:
        """Take a connection in, unless there are too many."""
        if len(self._connections) >= self.config.integer("max.connections"):
            logger.warning("refusing a connection from %s: max.connections is reached", connection.address)
            return False
        if len(self._connections) >= room_for_connections(len(self.logs.logs)):
            logger.warning(
                "refusing a connection from %s: the limit of open files is too low for more of them",
                connection.address,
            )
            return False
        if self._per_address[connection.address] >= self.config.integer("max.connections.per.ip"):
            logger.warning(
                "refusing a connection from %s: max.connections.per.ip is reached", connection.address
            )
            return False
        self._connections.add(connection)
        self._per_address[connection.address] += 1
        return True

    def forget(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._per_address[connection.address] -= 1
            if not self._per_address[connection.address]:
                del self._per_address[connection.address]
        self._buffered -= connection.buffered
        connection.buffered = 0
        self._unsent -= connection.unsent
        connection.unsent = 0

    def account(self, connection: Connection, buffered: int) -> None:
        """Note what a connection's receive buffer takes; one that asks for more than is left has to go.

        It would otherwise be a way to fill the memory: many connections with half a large request each.
        """
        grows = buffered > connection.buffered
        self._buffered += buffered - connection.buffered
        connection.buffered = buffered
        if (
            grows
            and buffered > CHUNK_BYTES
            and self._buffered > self.config.integer("queued.max.request.bytes")
        ):
            logger.warning(
                "closing the connection of %s: queued.max.request.bytes is reached", connection.address
            )
            # Not at once: uvloop is about to read into that buffer, and crashes if its transport is gone.
            self._loop.call_soon(connection.abort)

    def account_replies(self, connection: Connection) -> None:
        """Note what a connection holds of replies that its client has not taken yet."""
        unsent = connection.unsent_now
        self._unsent += unsent - connection.unsent
        connection.unsent = unsent

    @property
    def holds_too_many_replies(self) -> bool:
        """Whether clients that do not read fill so much memory that others have to get less at a time."""
        if self._unsent <= REPLIES_BYTES:
            return False
        for connection in self._connections:  # nobody has told us of what the kernel took meanwhile
            self.account_replies(connection)
        return self._unsent > REPLIES_BYTES

    def close_idle_connections(self) -> None:
        limit = self._loop.time() - self.config.integer("connections.max.idle.ms") / 1000
        for connection in tuple(self._connections):
            if connection.last_active < limit:
                connection.close()

    # -- partitions ----------------------------------------------------------------------------

    def partition(self, topic: str, index: int) -> Partition:
        """The partition, if it is on this broker; the error that tells a client to look elsewhere if not."""
        id_ = TopicPartition(topic, index)
        found = self.partitions.get(id_)
        if found is not None:
            return found
        known = self.image.topics.get(topic)
        if known is not None and id_ in self.logs.failed:
            raise LogOffline(self.logs.failed[id_])
        if known is None or index not in known.replicas:
            raise UnknownTopicOrPartition(f"there is no partition {topic}-{index}")
        raise NotLeader(f"{topic}-{index} is not on broker {self.broker_id}")

    def topic_name(self, topic_id: bytes) -> str:
        """The name of the topic with this id."""
        try:
            return self.image.topic_names[topic_id]
        except KeyError:
            raise UnknownTopicId("no topic has this id") from None

    def reload(self, config: BrokerConfig) -> list[str]:
        """Take over what a re-read file says and can change now; return what needs a restart."""
        changed = {
            name for name in BROKER_SETTINGS.by_name if config.given.get(name) != self.config.given.get(name)
        }
        fixed = {name for name in changed if BROKER_SETTINGS.find(name).scope is Scope.READ_ONLY}
        given = {name: text for name, text in self.config.given.items() if name not in changed - fixed}
        given |= {name: config.given[name] for name in changed - fixed if name in config.given}
        self._use(BrokerConfig.of(given, for_all=self.config.for_all, for_this=self.config.for_this))
        return sorted(fixed)

    def _broker_config_changed(self, name: str, values: Mapping[str, str]) -> None:
        for_all, for_this = self.config.for_all, self.config.for_this
        if name == ALL_BROKERS:
            for_all = values
        elif name == str(self.broker_id):
            for_this = values
        else:
            return
        try:
            self._use(self.config.with_dynamic(for_all, for_this))
        except InvalidSetting as error:
            logger.warning("the settings of %s in ZooKeeper are not used: %s", name, error)

    def _use(self, config: BrokerConfig) -> None:
        self.config = config
        self.groups.use(config.group_limits())
        for topic in self.image.topics.values():
            self._topic_changed(topic)

    def _topic_changed(self, topic: TopicImage) -> None:
        own = self.image.topic_configs.get(topic.name, {})
        try:
            config = self.config.log_config(own)
        except InvalidSetting as error:
            logger.warning("the settings of topic %s in ZooKeeper are not used: %s", topic.name, error)
            own = {}
            config = self.config.log_config(own)
        min_insync_replicas = self.config.min_insync_replicas(own)
        had = len(self.logs.logs)
        for index, replicas in topic.replicas.items():
            id_ = TopicPartition(topic.name, index)
            if self.broker_id not in replicas or id_ in self.logs.failed:
                continue
            partition = self._ensure_partition(id_, topic.topic_id)
            partition.log.config = config
            partition.min_insync_replicas = min_insync_replicas
            state = topic.states.get(index)
            if state is not None:
                partition.become(state)
        if len(self.logs.logs) != had:
            self.logs.sync()
        if topic.name == OFFSETS_TOPIC:
            self.groups.follow(topic)

    def _ensure_partition(self, id_: TopicPartition, topic_id: bytes) -> Partition:
        partition = self.partitions.get(id_)
        if partition is not None and partition.topic_id == topic_id:
            return partition
        if id_ in self.logs.logs and self.logs.topic_ids.get(id_) not in {None, topic_id}:
            self.logs.delete(id_)  # of an earlier topic with this name
        log = self.logs.logs.get(id_)
        if log is None:
            log = self.logs.create(id_, topic_id, self.config.log_config({}), sync=False)
        self.partitions[id_] = Partition(id_, topic_id, log, self.broker_id)
        return self.partitions[id_]

    def drop_topic(self, name: str) -> None:
        """Remove every log of a topic that is gone; those who wait for it are told so."""
        self.groups.topic_is_gone(name)
        gone = [id_ for id_ in (*self.logs.logs, *self.logs.failed) if id_.topic == name]
        for id_ in gone:
            partition = self.partitions.pop(id_, None)
            if partition is not None:
                partition.wake()
        if gone:
            self.logs.delete(*gone)


def _reachable(host: str) -> str:
    """What to tell clients when a broker listens everywhere: the loopback, unless they are told better."""
    return "127.0.0.1" if host in {"", "0.0.0.0", "::"} else host  # noqa: S104  compared, not bound


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "something listens there already; stop it, or choose another port"
    return error.strerror or str(error)


async def _answers(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), 1)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
