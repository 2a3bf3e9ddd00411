"""This broker as a member of its cluster: registered, known to the controller, or the controller itself."""

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from headrace.broker.cluster import FIRST_RETRY_S, LAST_RETRY_S, ClusterView
from headrace.broker.errors import NotController, NotLeader, StartRefused
from headrace.broker.exited_brokers import ExitedBrokers, remove_registration
from headrace.broker.lease import Lease
from headrace.broker.partition import Partition
from headrace.broker.peer import Peer
from headrace.broker.translate import FAILURES
from headrace.controller.channel import Link, PeerGone
from headrace.controller.runner import Controller
from headrace.controller.runner import NotController as Replaced
from headrace.controller.store import TopicRules, take_office
from headrace.coordination import znodes
from headrace.coordination.errors import CoordinationError
from headrace.coordination.processes import has_exited, own_process
from headrace.coordination.session import Conflict, Create, SessionState, Set
from headrace.coordination.znodes import BrokerRegistration
from headrace.protocol.message import Message
from headrace.protocol.schema.broker_heartbeat import BrokerHeartbeatRequest
from headrace.security.listeners import Endpoint
from headrace.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.broker.server import Broker

_CONTROLLER_PATIENCE_S = 10.0  # how long a request waits for there to be a controller
_LEAVING_S = 10.0
_RECONNECT_S = 0.02  # between attempts to reach the controller
_JOINING_S = 60.0

logger = logging.getLogger(__name__)


class Membership:
    """Joins, stays, serves as controller when it is its turn, and leaves."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.broker_epoch = -1
        self.controller: Controller | None = None
        self._controller_id = -1
        self._controller_known = asyncio.Event()
        self._peer: Peer | None = None  # to the controller
        self._running = asyncio.Lock()
        self._leaving = False
        self.lease = Lease()
        self._told_epoch = -1  # the broker's epoch in which it was last told what there is
        self._renewing: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._registered_in = 0  # which session
        self._lost = False
        self._announced = False  # once, at the start
        self._rejoining: asyncio.Task[None] | None = None
        self.view: ClusterView

    # -- joining -------------------------------------------------------------------------------

    async def join(self) -> None:
        """Be seen by the others; return when the controller has said what there is."""
        broker = self._broker
        self._exited_brokers = ExitedBrokers(broker.session)
        self.view = ClusterView(
            broker.session,
            on_config=broker.config_changed,
            on_brokers=self._brokers_changed,
            on_controller=self._controller_changed,
        )
        broker.session.on_state(self._session_changed)
        await self._announce()
        self._renewing = broker.loop.create_task(self._renew_lease())
        self._watching = broker.loop.create_task(self._watch_controller())
        try:
            async with asyncio.timeout(_JOINING_S):
                await broker.ready.wait()
        except TimeoutError:
            raise StartRefused("the cluster's controller has not answered; is it running?") from None

    async def _announce(self) -> None:
        await self._register()
        await self.view.load()
        self._announced = True
        if self._lost:  # meanwhile, and with it the registration
            self._start_rejoining()

    async def _register(self) -> None:
        broker = self._broker
        registration = BrokerRegistration(
            broker_id=broker.broker_id,
            endpoints=tuple(broker.endpoints),
            timestamp_ms=broker.now_ms(),
            rack=broker.config.rack,
            may_have_lost=broker.logs.may_have_lost,
            process=own_process(),
        )
        count = znodes.registration_count(broker.broker_id)
        await broker.session.ensure(count)
        deadline = broker.loop.time() + self._session_timeout_s + 2
        while True:
            try:
                await broker.session.multi(
                    [Create(registration.path, registration.encode(), ephemeral=True), Set(count, b"")]
                )
            except Conflict:
                if await self._yield_to_other(registration, deadline):
                    break
            else:
                break
        found = await broker.session.get(registration.path)
        if found is None:
            raise Conflict("the registration is gone already")
        self.broker_epoch = found.created_zxid
        self._registered_in = broker.session.session_id

    async def _yield_to_other(self, registration: BrokerRegistration, deadline: float) -> bool:
        """Wait until the registration of an earlier life is gone; refuse to start beside a live broker.

        It goes at once if that process is proven to have exited, or else when its session expires: until then
        it may be alive and hold its lease. True if the registration is our own: the answer to an earlier
        attempt got lost.
        """
        broker = self._broker
        found = await broker.session.get(registration.path)
        if found is None:
            return False
        if found.ephemeral_owner == broker.session.session_id:
            return True
        other = BrokerRegistration.decode(broker.broker_id, found.data)
        if other.process is not None and has_exited(other.process):
            with contextlib.suppress(Conflict):
                await remove_registration(broker.session, broker.broker_id, found.created_zxid)
            return False
        is_elsewhere = tuple(other.endpoints) != tuple(registration.endpoints)  # else it is us who answers
        if broker.loop.time() > deadline or (is_elsewhere and await _answers(other.endpoints[0])):
            raise StartRefused(
                f"broker {broker.broker_id} is running already, at {other.endpoints[0].address}: "
                "stop it first, or give this one another broker.id"
            )
        await asyncio.sleep(0.1)
        return False

    # -- the session ---------------------------------------------------------------------------

    @property
    def _session_timeout_s(self) -> float:
        return self._broker.session.timeout_s

    def _session_changed(self, state: SessionState) -> None:
        """After a session was lost everything ephemeral is gone: with the next one, announce it again."""
        logger.warning("the session with ZooKeeper is %s", state.value)
        if state is SessionState.LOST:
            self._lost = True
            self.lease.revoke()
            self._resign()
        elif state is SessionState.CONNECTED and self._announced:
            if not self._lost:
                self.view.refresh()
            else:
                self._start_rejoining()

    def _start_rejoining(self) -> None:
        if self._rejoining is None or self._rejoining.done():
            self._rejoining = self._broker.loop.create_task(self._rejoin())

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

    def told(self) -> None:
        """The controller has told this life of the broker what there is: it knows if others lead."""
        self._told_epoch = self.broker_epoch

    async def _renew_lease(self) -> None:
        """As long as ZooKeeper knows this broker, nobody can have taken it for dead."""
        path = f"{znodes.BROKER_IDS}/{self._broker.broker_id}"
        while True:
            asked_at_s = self.lease.now_s()
            try:
                await self._broker.session.sync()
                found = await self._broker.session.get(path)
                if found is not None and found.created_zxid == self.broker_epoch:
                    self.lease.renew(asked_at_s, self._session_timeout_s)
                elif found is None and not self._lost and self._announced:
                    logger.warning("somebody has removed this broker's registration")
                    self._lost = True
                    self._start_rejoining()
            except CoordinationError as error:
                logger.debug("the lease could not be renewed: %s", error)
            except Exception:  # a lease that is not renewed any more would be missed too late
                logger.exception("the lease could not be renewed")
            await asyncio.sleep(self._session_timeout_s / 6)

    def ensure_lease(self, partition: Partition) -> None:
        """Raise if others may lead this partition by now: what is not committed yet may be lost then."""
        partition.ensure_serving()
        if len(partition.replicas) < 2:
            return
        if self._told_epoch != self.broker_epoch or not self.lease.is_held:
            raise NotLeader(
                f"{partition.id}: broker {self._broker.broker_id} holds no lease, another may lead by now"
            )

    # -- the controller ------------------------------------------------------------------------

    async def _brokers_changed(self) -> None:
        self._exited_brokers.watch(*self._brokers)
        if self.controller is not None:
            try:
                await self.controller.brokers_changed(*self._brokers)
                await self._broker.offsets_topic.raise_replicas(self.controller)
            except Replaced as error:
                logger.info("leaving it to the next controller who is here: %s", error)

    @property
    def _brokers(self) -> "tuple[dict[int, BrokerRegistration], dict[int, int]]":
        """Who is registered, and since when."""
        registrations = dict(self.view.registrations)
        return registrations, {each: self.view.broker_epochs[each] for each in registrations}

    async def _controller_changed(self, broker_id: int) -> None:
        self._controller_id = broker_id
        self._drop_peer()
        if broker_id != self._broker.broker_id:
            self._resign()
        if broker_id == -1:
            self._controller_known.clear()
            await self._run_for_office()
        else:
            self._controller_known.set()
            if broker_id == self._broker.broker_id and self.controller is None:
                await self._run_for_office()

    async def _run_for_office(self) -> None:
        """There is no controller: be it, unless another broker is quicker. The watch tells who it is."""
        async with self._running:
            if self.controller is None:
                await self._take_office()

    async def _take_office(self) -> None:
        broker = self._broker
        if self._registered_in != broker.session.session_id:
            return  # it would take itself for dead; once it is registered again, it looks again
        office = await take_office(
            broker.session, znodes.Controller(broker_id=broker.broker_id, timestamp_ms=broker.now_ms())
        )
        if office is None:
            return
        logger.info("broker %d is the controller, in epoch %d", broker.broker_id, office.epoch)
        controller = Controller(
            broker.session,
            broker.broker_id,
            office,
            rules=self._rules,
            connect=self._connect_for_controller,
            on_resigned=self._resigned,
        )
        session_id = broker.session.session_id
        try:
            await self.view.load_brokers()  # what was seen before may be long ago
            seen = self._brokers
            await controller.begin(*seen)
        except (Replaced, CoordinationError) as error:
            logger.warning("the term as controller could not begin: %s", error)
            controller.resign()
            broker.loop.call_later(LAST_RETRY_S, self.view.look_for_controller)
            return
        if broker.session.session_id != session_id:  # and with it the office
            controller.resign()
            return
        self.controller = controller
        self._controller_id = broker.broker_id
        self._controller_known.set()
        if self._brokers != seen:  # while it began, there was no controller to be told
            await self._brokers_changed()
        await self._finish_deletions()

    async def _finish_deletions(self) -> None:
        """Go on with what an earlier controller has begun; if it cannot be now, the next one will."""
        try:
            await self._broker.topic_admin.finish_deletions()
        except FAILURES as error:
            logger.warning("a deletion that was interrupted could not be finished: %s", error)

    def _rules(self, configs: "Mapping[str, str]") -> TopicRules:
        config = self._broker.config
        return TopicRules(config.min_insync_replicas(configs), config.unclean_allowed(configs))

    def _resign(self) -> None:
        controller, self.controller = self.controller, None
        if controller is not None:
            level = logging.INFO if self._leaving else logging.WARNING
            logger.log(level, "broker %d is not the controller any more", self._broker.broker_id)
            controller.resign()

    def _resigned(self) -> None:
        """The controller has given up by itself. If the office is still ours, a new term begins."""
        if self.controller is not None:
            self.controller = None
            self._controller_known.clear()
            self.view.look_for_controller()

    async def _connect_for_controller(self, broker_id: int, registration: BrokerRegistration) -> Link:
        if broker_id == self._broker.broker_id:
            return SelfLink(self._broker)
        return await self._connect(registration)

    @property
    def _client_id(self) -> str:
        return f"broker-{self._broker.broker_id}"

    async def _watch_controller(self) -> None:
        """Keep a connection to the controller. Whether it is alive is not decided by that connection."""
        while True:
            await self._controller_known.wait()
            controller_id = self._controller_id
            registration = self.view.registrations.get(controller_id)
            if controller_id == self._broker.broker_id or registration is None:
                await asyncio.sleep(FIRST_RETRY_S)
                continue
            try:
                peer = await self._connect(registration)
            except PeerGone as error:
                logger.debug("no connection to the controller, broker %d: %s", controller_id, error)
                await asyncio.sleep(_RECONNECT_S)
                continue
            if self._controller_id != controller_id:  # while we connected
                peer.close()
                continue
            self._peer = peer
            await peer.closed()

    async def connect_to(self, broker_id: int) -> Peer:
        """A connection to another broker; PeerGone if it cannot be had."""
        registration = self._broker.image.brokers.get(broker_id)
        if registration is None:
            raise PeerGone(f"broker {broker_id} is not registered")
        return await self._connect(registration)

    async def _connect(self, registration: BrokerRegistration) -> Peer:
        """Connect to the inter-broker listener of another broker."""
        listener = self._broker.config.inter_broker_listener
        endpoint = registration.endpoint(listener)
        if endpoint is None:
            raise PeerGone(f"broker {registration.broker_id} has no listener {listener}")
        return await Peer.connect(endpoint, self._client_id, self._broker.buffers)

    async def ask_controller(self, request: Message, version: int, *, timeout_s: float) -> Any:
        """What the controller answers, wherever it is; NotController or PeerGone if there is none.

        Between two controllers it waits for the next.
        """
        deadline = self._broker.loop.time() + _CONTROLLER_PATIENCE_S
        while self._broker.loop.time() < deadline:
            if self.controller is not None:
                return await self._broker.handle_locally(request, version)
            if self._peer is not None and self._peer.is_open:
                return await self._peer.ask(request, version, timeout_s=timeout_s)
            await asyncio.sleep(_RECONNECT_S)
        raise NotController("there is no controller at the moment")

    def _drop_peer(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    # -- leaving -------------------------------------------------------------------------------

    async def leave(self) -> None:
        """Have others lead what is led here, as far as they can; then nobody has to notice that we go."""
        self._leaving = True
        if len(self._broker.image.brokers) < 2:
            return
        deadline = self._broker.loop.time() + _LEAVING_S
        request = BrokerHeartbeatRequest(
            broker_id=self._broker.broker_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=0,
            want_fence=False,
            want_shut_down=True,
        )
        while self._broker.loop.time() < deadline:
            try:
                response = await self.ask_controller(request, 0, timeout_s=_LEAVING_S)
            except (PeerGone, NotController, CoordinationError) as error:
                logger.info("leaving without a word to the controller: %s", error)
                return
            if response.error_code or response.should_shut_down:
                return
            await asyncio.sleep(0.05)
        logger.warning("leaving although some partitions are still led here")

    def stop(self) -> None:
        self._broker.session.on_state(lambda _state: None)
        for task in (self._rejoining, self._renewing, self._watching):
            if task is not None:
                task.cancel()
        self._resign()
        self._drop_peer()
        self._exited_brokers.close()
        self.view.close()


class SelfLink:
    """The controller's connection to its own broker, which needs no wire."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    async def ask(self, request: Message, version: int, *, timeout_s: float | None = None) -> Any:
        del timeout_s  # there is nothing in between that could take time
        await asyncio.sleep(0)  # one message after another must not hold up what else the broker does
        return await self._broker.handle_locally(request, version)

    async def closed(self) -> None:
        await asyncio.get_running_loop().create_future()

    def close(self) -> None:
        """Nothing is open."""


async def _answers(endpoint: Endpoint) -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(endpoint.host, endpoint.port), 1)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
