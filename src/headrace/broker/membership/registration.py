"""This broker's registration in ZooKeeper: made at the start, made again after the session was lost.

The registration is ephemeral, and the lease under which the broker serves depends on it (`lease.py`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from headrace.broker.errors import StartRefused
from headrace.broker.membership.cluster import FIRST_RETRY_S, LAST_RETRY_S
from headrace.broker.membership.exited_brokers import remove_registration
from headrace.broker.membership.lease import Lease
from headrace.coordination.errors import CoordinationError
from headrace.coordination.processes import has_exited, own_process
from headrace.coordination.session import Conflict, Create, SessionState, Set, ZooKeeperSession
from headrace.coordination.znodes import BrokerRegistration, registration_count
from headrace.security.listeners import Endpoint
from headrace.storage.checks.losses import Losses
from headrace.storage.errors import StorageError

_RENEWALS_PER_SESSION = 6
_CONFLICT_RETRY_S = 0.1
_CONFLICT_GRACE_S = 2.0  # beyond the session timeout, for the session of an earlier process to expire
_PROBE_TIMEOUT_S = 1.0

logger = logging.getLogger(__name__)


class Registration:
    """Registers the broker, renews its lease, and registers it again if the registration is lost."""

    def __init__(
        self,
        session: ZooKeeperSession,
        lease: Lease,
        own: BrokerRegistration,
        *,
        losses: Losses,
        now_ms: Callable[[], int],
        on_registered: Callable[[], Awaitable[None]],
        on_reconnected: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        """`own` is the registration without what changes from one registration of this broker to the next.

        `on_registered` loads the state of the cluster; the broker counts as joined when it returns.
        """
        self._session = session
        self._lease = lease
        self._own = own
        self._broker_id = own.broker_id
        self._losses = losses
        self._now_ms = now_ms
        self._on_registered = on_registered
        self._on_reconnected = on_reconnected
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._session_id = 0  # of the session that made the registration
        self._lost = False
        self._joined = False  # at least once
        self._is_leaving = False
        self._is_compared = False  # the number of registrations before this process with the directory's
        self._renewing: asyncio.Task[None] | None = None
        self._rejoining: asyncio.Task[None] | None = None

    @property
    def is_current(self) -> bool:
        """Whether the current session made the registration; if not, the broker has to register again."""
        return self._session_id == self._session.session_id

    async def join(self) -> None:
        """Register the broker, load the state of the cluster, and keep both up from then on."""
        self._session.on_state(self._session_changed)
        await self._join()
        self._renewing = self._loop.create_task(self._renew_lease())

    def leave(self) -> None:
        """Do not register again from now on, because the broker is stopping. The lease is still renewed."""
        self._is_leaving = True
        if self._rejoining is not None:
            self._rejoining.cancel()

    def stop(self) -> None:
        self.leave()
        self._session.on_state(lambda _state: None)
        if self._renewing is not None:
            self._renewing.cancel()

    async def _join(self) -> None:
        await self._register()
        await self._on_registered()
        self._joined = True
        if self._lost:  # the session was lost meanwhile, and the registration with it
            self._start_rejoining()

    async def _register(self) -> None:
        count = registration_count(self._broker_id)
        await self._session.ensure(count)
        registrations = await self._count_registrations()
        if not self._is_compared:  # later registrations of this process are with the same directory
            self._losses.compare_registrations(registrations)
            self._is_compared = True
        # Before the registration: if this broker ends meanwhile, the directory must not look like an old one.
        await asyncio.to_thread(self._losses.registered, registrations + 1)
        registration = replace(
            self._own,
            timestamp_ms=self._now_ms(),
            may_have_lost=self._losses.everywhere,
            lost=frozenset(self._losses.partitions),
            process=own_process(),
        )
        deadline = self._loop.time() + self._session.timeout_s + _CONFLICT_GRACE_S
        while True:
            try:
                await self._session.multi(
                    [Create(registration.path, registration.encode(), ephemeral=True), Set(count, b"")]
                )
            except Conflict:
                if await self._is_ours(registration, deadline):
                    break
            else:
                break
        found = await self._session.get(registration.path)
        if found is None:
            raise Conflict("the registration is gone already", registration.path)
        self._lease.broker_epoch = found.created_zxid
        self._session_id = self._session.session_id
        await asyncio.to_thread(self._losses.registered, await self._count_registrations())

    async def _count_registrations(self) -> int:
        found = await self._session.get(registration_count(self._broker_id))
        return 0 if found is None else found.version

    async def _is_ours(self, registration: BrokerRegistration, deadline: float) -> bool:
        """Return whether the existing registration is our own, because the answer to our attempt was lost.

        If it is of an earlier process of this broker, return False when it may be gone: at once if that
        process is proven to have exited, or else when its session has expired; until then it may be alive
        and hold its lease. Raise StartRefused if another live broker has this id.
        """
        found = await self._session.get(registration.path)
        if found is None:
            return False
        if found.ephemeral_owner == self._session.session_id:
            return True
        other = BrokerRegistration.decode(self._broker_id, found.data)
        if other.process is not None and has_exited(other.process):
            with contextlib.suppress(Conflict):
                await remove_registration(self._session, self._broker_id, found.created_zxid)
            return False
        # At our own endpoints it is this process that would accept the connection.
        is_elsewhere = tuple(other.endpoints) != tuple(registration.endpoints)
        if self._loop.time() > deadline or (is_elsewhere and await _accepts_connections(other.endpoints[0])):
            where, advice = "", "stop it first, or give this one another broker.id"
            if self._own.node is not None and other.node is not None and other.node != self._own.node:
                where = f" on node {other.node}"
                advice = (
                    "the ids of two nodes overlap, because a node uses one id for each broker, from "
                    "broker.id on; choose another broker.id"
                )
            address = other.endpoints[0].address
            raise StartRefused(f"broker {self._broker_id} is running already{where}, at {address}: {advice}")
        await asyncio.sleep(_CONFLICT_RETRY_S)
        return False

    def _session_changed(self, state: SessionState) -> None:
        """Register again with the next session after one was lost, which removed everything ephemeral."""
        logger.warning("the ZooKeeper session is %s", state.value)
        if state is SessionState.LOST:
            self._lost = True
            self._lease.revoke()
            self._on_lost()
        elif state is SessionState.CONNECTED and self._joined:
            if self._lost:
                self._start_rejoining()
            else:
                self._on_reconnected()

    def _start_rejoining(self) -> None:
        if not self._is_leaving and (self._rejoining is None or self._rejoining.done()):
            self._rejoining = self._loop.create_task(self._rejoin())

    async def _rejoin(self) -> None:
        """Register again, without a limit on attempts: an unregistered broker is of no use."""
        delay = FIRST_RETRY_S
        while self._lost:
            self._lost = False
            try:
                await self._join()
            except (CoordinationError, StorageError, StartRefused, OSError) as error:
                self._lost = True
                logger.warning("could not rejoin the cluster, retrying: %s", error)
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_RETRY_S)
            else:
                logger.info("rejoined the cluster")

    async def _renew_lease(self) -> None:
        """Renew the lease as long as ZooKeeper has this broker's registration."""
        path = BrokerRegistration.path_of(self._broker_id)
        while True:
            asked_at_s = self._lease.now_s()
            try:
                await self._session.sync()
                found = await self._session.get(path)
                if found is not None and found.created_zxid == self._lease.broker_epoch:
                    self._lease.renew(asked_at_s, self._session.timeout_s)
                elif found is None and not self._lost and self._joined and not self._is_leaving:
                    logger.warning("the registration of this broker was removed: registering again")
                    self._lost = True
                    self._start_rejoining()
            except CoordinationError as error:
                logger.debug("could not renew the lease: %s", error)
            except Exception:  # nobody would notice that this task has ended before the lease does
                logger.exception("could not renew the lease")
            await asyncio.sleep(self._session.timeout_s / _RENEWALS_PER_SESSION)


async def _accepts_connections(endpoint: Endpoint) -> bool:
    try:
        _, writer = await asyncio.wait_for(
            asyncio.open_connection(endpoint.host, endpoint.port), _PROBE_TIMEOUT_S
        )
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
