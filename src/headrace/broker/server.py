"""The broker: creates its components, starts them in order, and stops them in the reverse order."""

import asyncio
import errno
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from headrace.broker.coordinators.producer_ids import ProducerIds
from headrace.broker.coordinators.runtime import CoordinatorHost
from headrace.broker.errors import StartRefused
from headrace.broker.image import ClusterImage, TopicImage, put_config
from headrace.broker.membership.cluster import ClusterView, cluster_secret, prepare
from headrace.broker.membership.controller_client import ControllerClient
from headrace.broker.membership.controller_election import ControllerElection
from headrace.broker.membership.exited_brokers import ExitedBrokers
from headrace.broker.membership.lease import Lease
from headrace.broker.membership.registration import Registration
from headrace.broker.meters import Meters
from headrace.broker.network.connections import Connections
from headrace.broker.network.descriptors import raise_limit, room_for_logs
from headrace.broker.network.fair_queue import FairQueue
from headrace.broker.peers.authentication import PeerCredentials
from headrace.broker.peers.peer import LocalLink, Peer, PeerPool, Peers
from headrace.broker.quotas.client_quotas import ClientQuotas, has_quotas
from headrace.broker.records.appends import Appends
from headrace.broker.records.fetch_sessions import FetchSessions
from headrace.broker.records.inspections import Inspections, InspectionThreads
from headrace.broker.records.reads import Reads
from headrace.broker.replicas.housekeeping import Housekeeping, Job
from headrace.broker.replicas.replicas import Replicas
from headrace.broker.replicas.scrub import Scrub
from headrace.broker.requests.connection import KafkaConnection
from headrace.broker.requests.dispatch import HANDLERS, Context, enabled, load_handlers
from headrace.broker.schemas.validation import Schemas
from headrace.broker.schemas.view import SchemaView
from headrace.broker.security.acl_store import AclStore
from headrace.broker.security.audit import AuditLog
from headrace.broker.security.authentication import Authentication
from headrace.broker.security.tls import BrokerTls
from headrace.broker.security.token_store import TokenStore
from headrace.broker.security.zookeeper_security import zookeeper_security
from headrace.broker.services import BrokerServices, Coordinators
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.config_rules import SettingRules
from headrace.broker.settings.setting import InvalidSetting
from headrace.broker.slices import in_slices
from headrace.coordination.loop_progress import happens_within
from headrace.coordination.session import NotConnected, ZooKeeperSession
from headrace.coordination.znodes import BrokerRegistration
from headrace.protocol.buffer_pool import BufferPool
from headrace.protocol.message import Message
from headrace.protocol.peers import Link, PeerGone
from headrace.replication.controller.config_admin import ALL_BROKERS, ConfigAdmin
from headrace.replication.controller.model import TopicRules
from headrace.replication.controller.runner import Controller
from headrace.replication.controller.topic_admin import TopicAdmin, TopicDefaults
from headrace.security.acl_authorizer import AclAuthorizer
from headrace.security.acl_index import AclIndex
from headrace.security.acl_storage import UnreadableAcls
from headrace.security.authorization import ALLOW_ALL
from headrace.security.principals import ANONYMOUS
from headrace.security.quota.table import live_brokers_of_node
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity
from headrace.system.acceptor import Acceptor, PlainServer, bind_all
from headrace.system.addresses import reachable
from headrace.system.tls_server import TlsServer

_JOIN_TIMEOUT_S = 60.0
_MAX_RETRIES = 4  # of a step of the start, each after at most RECONNECTED_MS without a connection
_RETRY_S = 0.1
_PROGRESS_INTERVAL_S = 2.0
_FINISHING_S = 2.0  # for changes to topics that are in progress when the broker stops

_IDLE_INTERVAL_S = 5.0  # between two checks for idle connections
_DAMAGE_INTERVAL_S = 1.0
_CERTIFICATES_INTERVAL_S = 5.0  # between two checks for certificates and keys of tokens that have changed
_QUIET_INTERVAL_S = 1.0  # between two checks for connections that give their receive buffers back

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Broker(BrokerServices):
    """One broker. Everything in it runs on the event loop that called `start`, except where it blocks."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self.broker_id = config.broker_id
        self.handlers = HANDLERS
        self.ready = asyncio.Event()
        self._acl_index = AclIndex()
        self.authorizer = ALLOW_ALL
        if config.text("authorizer.class.name"):
            self.authorizer = AclAuthorizer(
                self._acl_index,
                super_users=config.super_users,
                allow_everyone_if_no_acl_found=config.flag("allow.everyone.if.no.acl.found"),
            )
        self.acls = None  # until `start`
        self.tokens = None
        self.audit = AuditLog()
        self.quotas = ClientQuotas(config)
        self.fetch_sessions = FetchSessions(config.integer("max.incremental.fetch.session.cache.slots"))
        self.buffers = BufferPool()
        self.fair_queue = FairQueue(lambda step: self.loop.call_soon(step))  # noqa: PLW0108  there is no loop yet
        self.long_requests = asyncio.Lock()
        self.meters = Meters()
        self.started_s = time.time()
        self.metadata_cache = {}
        self.image = ClusterImage("")  # until ZooKeeper is asked for the id of the cluster
        self.endpoints = []
        self._servers: list[Acceptor] = []
        self.connections = Connections(config, lambda: len(self.logs.logs), self.quotas)
        self.tls = BrokerTls(config)
        self.authentication = Authentication(config, self.image, self.now_ms)
        self.lease = Lease()
        self._inter_broker_listener = config.listener(config.inter_broker_listener)
        self.peers = Peers(
            f"broker-{self.broker_id}",
            self._inter_broker_listener.name,
            self.buffers,
            PeerCredentials.of(config),
            tls=lambda: self.tls.of_peers,
        )
        self.election = None  # until `start`
        self.controller_client = ControllerClient(
            self.peers,
            broker_id=self.broker_id,
            is_controller=lambda: self.is_controller,
            handle_locally=self.handle_locally,
        )
        self.replicas = Replicas(
            self.broker_id,
            self.image,
            self.meters,
            self,
            config=self.current_config,
            logs=lambda: self.logs,
            broker_epoch=lambda: self.broker_epoch,
            connect_to=self.connect_to,
            ask_controller=self.controller_client.ask,
        )
        new_pool = partial(
            PeerPool, self.broker_id, connect_to=self.connect_to, handle_locally=self.handle_locally
        )
        threads = InspectionThreads()
        view = SchemaView(self.image, threads.run, new_pool())
        self.schemas = Schemas(view, threads.run, partitions=self.partitions, session=lambda: self.session)
        self.inspections = Inspections(self.schemas, threads)
        self.coordinators = Coordinators(
            CoordinatorHost(
                self.broker_id,
                self.image,
                self.partitions,
                self.ensure_lease,
                loop=lambda: self.loop,
                config=self.current_config,
                create_topic=self.controller_client.create_topic,
                new_producer_id=lambda: self.producer_ids.take(),  # noqa: PLW0108  made in `start`
                new_peer_pool=new_pool,
                warned_of=set(),
            )
        )
        self.appends = Appends(
            self.inspections,
            self.transactions.verifier,
            self.schemas,
            self.meters,
            ensure_lease=self.ensure_lease,
            disk_failed=self.disk_failed,
        )
        self.reads = Reads(
            self.image,
            self.replicas,
            self.meters,
            config=self.current_config,
            loop=lambda: self.loop,
            ensure_lease=self.ensure_lease,
        )
        self._scrub = Scrub(self.partitions, config=self.current_config)
        self._housekeeping = Housekeeping(
            config=self.current_config,
            partitions=self.partitions,
            moved=self.replicas.moved,
            logs=lambda: self.logs,
            jobs=self._periodic_jobs,
        )

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of each listener, as clients write bootstrap.servers."""
        return ",".join(endpoint.address for endpoint in self.endpoints)

    async def start(self) -> None:
        """Open the logs, join the cluster and accept connections; a failure releases everything."""
        self._loop = asyncio.get_running_loop()
        if self.config.without_effect:
            logger.warning("these settings have no effect: %s", ", ".join(self.config.without_effect))
        load_handlers()
        self.handlers = enabled(self.handlers, unstable=self.config.flag("unstable.api.versions.enable"))
        raise_limit()
        await self.authentication.refresh()
        self.session = await ZooKeeperSession.connect(
            self.config.text("zookeeper.connect"),
            session_timeout_ms=self.config.integer("zookeeper.session.timeout.ms"),
            connect_timeout_ms=self.config.integer("zookeeper.connection.timeout.ms"),
            security=await asyncio.to_thread(zookeeper_security, self.config),
        )
        try:
            self.image.cluster_id = await self._retried(lambda: prepare(self.session))
            if self.authentication.needs_secret:
                self.authentication.secret = await self._retried(lambda: cluster_secret(self.session))
            self.logs = await asyncio.to_thread(
                LogDirectory.open,
                self.config.log_dir,
                Identity(self.broker_id, self.image.cluster_id),
                # The topics' own configurations arrive with the metadata, before any append.
                config_of=lambda _topic: self.config.log_config({}),
                now_ms=self.now_ms,
                progress=_LoadingProgress(),
                max_open_files=room_for_logs(),
                max_producer_ids=self.config.integer("headrace.max.producer.ids"),
            )
            try:
                self.producer_ids = ProducerIds(self.session, self.broker_id)
                await self._listen()
                for server in self._servers:
                    await (
                        server.start_serving()
                    )  # for the controller: clients wait until this broker is ready
                await self._join_cluster()
                self._housekeeping.start()
            except BaseException:
                await asyncio.to_thread(self.logs.close)
                raise
        except BaseException:
            await self._stop_listening()
            await self.session.close()
            raise

    async def _join_cluster(self) -> None:
        """Register this broker and return when the controller has sent it the state of the cluster."""
        self.view = view = ClusterView(self.session, self.config_changed)
        await self._retried(lambda: self._load_acls(view))
        await self._retried(lambda: self._load_tokens(view))
        rules = SettingRules(self.current_config, self._check_security)
        self.topic_admin = TopicAdmin(
            self.session,
            controller=lambda: self.controller,
            defaults=lambda: TopicDefaults(
                partitions=self.config.integer("num.partitions"),
                replicas=self.config.integer("default.replication.factor"),
                deletion_enabled=self.config.flag("delete.topic.enable"),
            ),
            check_configs=rules.check_topic,
        )
        self.config_admin = ConfigAdmin(
            self.session,
            broker_id=self.broker_id,
            rules=rules,
            topic_exists=lambda name: name in self.image.topics,
            apply=view.load_config,
            now_ms=self.now_ms,
        )
        self._exited_brokers = ExitedBrokers(self.session)
        self.election = ControllerElection(
            self.session,
            view,
            broker_id=self.broker_id,
            is_registered=lambda: self._registration.is_current,
            rules=lambda own: TopicRules(
                self.config.min_insync_replicas(own), self.config.unclean_allowed(own)
            ),
            connect=self._connect_as_controller,
            now_ms=self.now_ms,
            on_elected=self.topic_admin.finish_deletions,
            on_brokers=self._raise_replicas,
            in_doubt_wait_s=lambda: self.config.integer("headrace.in.doubt.wait.ms") / 1000,
        )
        self._registration = Registration(
            self.session,
            self.lease,
            BrokerRegistration(
                broker_id=self.broker_id,
                endpoints=tuple(self.endpoints),
                timestamp_ms=0,
                rack=self.config.rack,
                node=self.config.node,
            ),
            losses=self.logs.losses,
            now_ms=self.now_ms,
            on_registered=view.load,
            on_reconnected=view.refresh,
            on_lost=self.election.resign,
        )
        view.on_brokers += [self._exited_brokers.watch, self.election.brokers_changed]
        view.on_controller += [self.controller_client.controller_changed, self.election.controller_changed]
        await self._retried(self._registration.join)
        self.controller_client.start(view.registrations)
        if not await happens_within(self.ready, _JOIN_TIMEOUT_S):
            raise StartRefused(
                "the controller has not sent the state of the cluster: its log says whether it runs, can "
                "connect here, and whether its version is too far from this one"
            )

    async def _retried(self, step: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a step of the start, which is repeated if it loses its connection or session.

        A process that was stopped for longer than its session lasts gets a new one.
        """
        for _ in range(_MAX_RETRIES):
            try:
                return await step()
            except NotConnected as error:
                logger.warning("connecting to ZooKeeper again: %s", error)
                await asyncio.sleep(_RETRY_S)
                await self.session.reconnected()
        return await step()

    async def _load_acls(self, view: ClusterView) -> None:
        """Read the ACLs, before this broker is registered and clients find it."""
        if self.authorizer is not ALLOW_ALL:
            self.acls = AclStore(self.session, self._acl_index, now_ms=self.now_ms, changed=view.changed)
            view.loaders |= self.acls.loaders
            try:
                await self.acls.load()
            except UnreadableAcls as error:
                raise StartRefused(str(error)) from error

    async def _load_tokens(self, view: ClusterView) -> None:
        secret_key = self.config.values["delegation.token.secret.key"]
        if secret_key is not None:
            assert isinstance(secret_key, str), "a password is text"
            self.tokens = TokenStore(
                self.session, secret_key.encode(), now_ms=self.now_ms, changed=view.changed
            )
            view.loaders |= self.tokens.loaders
            await self.tokens.load()
            self.authentication.tokens = self.tokens

    async def _delete_expired_tokens(self) -> None:
        if self.tokens is not None and self.is_controller:
            await self.tokens.delete_expired()

    def _leave_cluster(self) -> None:
        self._registration.stop()
        if self.election is not None:
            self.election.resign(logging.INFO)
        self.controller_client.stop()
        self._exited_brokers.close()
        self.view.close()

    def _periodic_jobs(self) -> list[Job]:
        config = self.config
        look_for_lagging = self.replicas.isr_changes.look_at_all
        return [
            Job(self.connections.close_idle, _IDLE_INTERVAL_S),
            Job(self.connections.rest_quiet, _QUIET_INTERVAL_S),
            Job(self.tls.refresh, _CERTIFICATES_INTERVAL_S),
            Job(self.authentication.refresh, _CERTIFICATES_INTERVAL_S),
            Job(lambda: in_slices(look_for_lagging()), config.integer("replica.lag.time.max.ms") / 2000),
            Job(
                self._delete_expired_tokens,
                config.integer("delegation.token.expiry.check.interval.ms") / 1000,
            ),
            Job(self.replicas.repairs.look, _DAMAGE_INTERVAL_S),
            Job(self.replicas.open_truncated, _DAMAGE_INTERVAL_S),
            Job(self._scrub.run, config.integer("log.scrub.interval.ms") / 1000),
            Job(self._balance_leaders, config.integer("leader.imbalance.check.interval.seconds")),
            *(job for coordinator in self.coordinators for job in coordinator.periodic_jobs(config)),
        ]

    async def _balance_leaders(self) -> None:
        if self.controller is not None and self.config.flag("auto.leader.rebalance.enable"):
            await self.controller.balance(self.config.integer("leader.imbalance.per.broker.percentage"))

    async def _raise_replicas(self, controller: Controller) -> None:
        for coordinator in self.coordinators:
            await coordinator.topic.raise_replicas(controller)

    async def _connect_as_controller(self, broker_id: int, registration: BrokerRegistration) -> Link:
        if broker_id == self.broker_id:
            return LocalLink(self.handle_locally)
        return await self.peers.connect(registration)

    async def stop(self) -> None:
        """Stop cleanly: move leaders, accept no requests, flush and mark the logs, and unregister."""
        self._registration.leave()
        if len(self.image.brokers) > 1:
            await self.controller_client.controlled_shutdown(self.broker_epoch)
        self._housekeeping.stop()
        await self._stop_listening()
        await self.topic_admin.finished(_FINISHING_S)
        await self.inspections.stop()
        self.stop_coordinators()
        self.schemas.stop()
        self.replicas.stop()
        self._leave_cluster()
        await self._housekeeping.stopped()
        await asyncio.to_thread(self.logs.close)
        await self.session.close()

    def stop_coordinators(self) -> None:
        for coordinator in self.coordinators:
            coordinator.stop()

    async def _listen(self) -> None:
        advertised = {endpoint.name: endpoint for endpoint in self.config.advertised}
        for listener in self.config.listeners:
            accepting = self.config.listener(listener.name)
            context = self.tls.of_listener(accepting)
            make_protocol = partial(KafkaConnection, self, self.handlers, accepting)
            host = listener.host or ("0.0.0.0" if listener.port == 0 else None)  # noqa: S104  asked for
            try:
                sockets = await bind_all(host, listener.port)
            except OSError as error:
                why = error.strerror or str(error)
                if error.errno == errno.EADDRINUSE:
                    why = "something listens there already; stop it, or choose another port"
                raise StartRefused(f"cannot listen on {listener}: {why}") from error
            server: Acceptor
            if context is None:
                server = PlainServer(sockets, make_protocol)
            else:
                server = TlsServer(sockets, make_protocol, context)
            self._servers.append(server)
            port = server.sockets[0].getsockname()[1]
            bound = replace(listener, host=reachable(listener.host), port=port)
            self.endpoints.append(advertised.get(listener.name) or bound)

    async def _stop_listening(self) -> None:
        for server in self._servers:
            server.close()
        self.connections.close_all()
        self._servers.clear()

    def reload(self, config: BrokerConfig) -> list[str]:
        """Apply a changed properties file; return the settings that need a restart."""
        reloaded, fixed = self.config.reloaded(config)
        self._use(reloaded)
        return fixed

    def config_changed(self, kind: str, name: str, values: Mapping[str, str]) -> None:
        """Apply a configuration that has changed in ZooKeeper."""
        if kind != "brokers":
            self._resource_config_changed(kind, name, values)
            return
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
            logger.warning("the configuration of broker %s in ZooKeeper is ignored: %s", name, error)

    def _resource_config_changed(self, kind: str, name: str, values: Mapping[str, str]) -> None:
        if has_quotas(kind):
            self.quotas.change(kind, name, values)
        if kind == "topics":
            topic = self.image.topics.get(name)
            if topic is not None:
                self.image.topic_configs[name] = values
                self.replicas.use(topic)
            if self.controller is not None:
                self.controller.configure_topic(name, values)
        elif kind == "users":
            self.authentication.user_changed(self.image.users.get(name, {}), values)
            put_config(self.image.users, name, values)
        for coordinator in self.coordinators:
            coordinator.resource_config_changed(kind, name, values)

    async def _check_security(self, config: BrokerConfig) -> None:
        """Raise InvalidSetting if the listeners cannot use `config`, as far as this broker can tell."""
        self.authentication.mechanisms(config)
        PeerCredentials.of(config)
        await asyncio.to_thread(self.tls.check, config)

    def _use(self, config: BrokerConfig) -> None:
        self.authentication.mechanisms(config)  # raises before anything is changed
        credentials = PeerCredentials.of(config)
        self.tls.use_config(config)
        self.authentication.use_config(config)
        self.peers.credentials = credentials
        self.config = config
        self.connections.use_config(config)
        for coordinator in self.coordinators:
            coordinator.use_config(config)
        self.replicas.use_config(config)
        self._housekeeping.use_config()

    async def handle_locally(self, request: Message, version: int) -> Any:
        """Return the response of a handler of this broker to a request of its own."""
        assert request.__api_key__ is not None, request
        context = Context(
            self, self._inter_broker_listener, f"broker-{self.broker_id}", version, "127.0.0.1", ANONYMOUS
        )
        return await HANDLERS[request.__api_key__].function(request, context).response()

    async def connect_to(self, broker_id: int) -> Peer:
        """Connect to another broker; PeerGone if it cannot be reached."""
        registration = self.image.brokers.get(broker_id)
        if registration is None:
            raise PeerGone(f"broker {broker_id} is not registered")
        return await self.peers.connect(registration)

    def updated(self) -> None:
        """The controller has told this broker the state of its cluster."""
        self.lease.updated()
        if self.config.node is not None:
            self.quotas.table.brokers = live_brokers_of_node(self.broker_id, self.image.locations)
        self.ready.set()

    def topic_changed(self, topic: TopicImage, own: Mapping[str, str]) -> None:
        """Apply a topic's configuration, and start or stop the coordinators of an internal topic."""
        self.schemas.use(topic, self.config.topic_values(own))
        coordinator = self.coordinators.by_topic.get(topic.name)
        if coordinator is not None:
            coordinator.follow(topic)

    def topic_removed(self, name: str) -> None:
        """Delete what coordinators and schemas keep of a deleted topic."""
        for coordinator in self.coordinators:
            coordinator.topic_removed(name)
        self.schemas.forget(name)


class _LoadingProgress:
    """Logs how many logs are loaded, every two seconds: after a crash that may take minutes."""

    def __init__(self) -> None:
        self._began = self._logged = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        is_last = done == total and self._logged > self._began
        if now - self._logged >= _PROGRESS_INTERVAL_S or is_last:
            self._logged = now
            logger.info("loading logs: %d of %d, after %.0f s", done, total, now - self._began)
