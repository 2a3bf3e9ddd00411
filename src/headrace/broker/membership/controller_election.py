"""Runs for controller whenever there is none, and holds the `Controller` while this broker is elected."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from headrace.broker.membership.cluster import LAST_RETRY_S, ClusterView, RegisteredBrokers
from headrace.coordination import znodes
from headrace.coordination.errors import CoordinationError
from headrace.coordination.session import ZooKeeperSession
from headrace.coordination.znodes import BrokerRegistration
from headrace.protocol.kafka_errors import NotController
from headrace.protocol.peers import Link
from headrace.replication.controller.runner import Controller
from headrace.replication.controller.store import Rules
from headrace.replication.controller.transactions import elect_controller

logger = logging.getLogger(__name__)


class ControllerElection:
    """The first broker that creates /controller is elected; `controller` is set while that is this one."""

    def __init__(
        self,
        session: ZooKeeperSession,
        view: ClusterView,
        *,
        broker_id: int,
        is_registered: Callable[[], bool],
        rules: Rules,
        connect: Callable[[int, BrokerRegistration], Awaitable[Link]],
        now_ms: Callable[[], int],
        on_elected: Callable[[], Awaitable[None]],
        on_brokers: Callable[[Controller], Awaitable[None]],
        in_doubt_wait_s: Callable[[], float],
    ) -> None:
        """Call `on_elected` when a controller has begun, and `on_brokers` when it knows of new brokers."""
        self.controller: Controller | None = None
        self._session = session
        self._view = view
        self._broker_id = broker_id
        self._is_registered = is_registered
        self._rules = rules
        self._connect = connect
        self._now_ms = now_ms
        self._on_elected = on_elected
        self._on_brokers = on_brokers
        self._in_doubt_wait_s = in_doubt_wait_s
        self._lock = asyncio.Lock()

    async def brokers_changed(self, brokers: RegisteredBrokers) -> None:
        """Have the controller, if it is this broker, act on brokers that came or went."""
        if self.controller is not None:
            try:
                await self.controller.brokers_changed(*brokers)
                await self._on_brokers(self.controller)
            except NotController as error:
                logger.info("the next controller handles the change of brokers: %s", error)

    async def controller_changed(self, controller_id: int) -> None:
        """Resign if another broker is the controller, and run if there is none (-1)."""
        if controller_id != self._broker_id:
            self.resign()
        if controller_id in {-1, self._broker_id} and self.controller is None:
            async with self._lock:
                if self.controller is None:
                    await self._run()

    def resign(self, level: int = logging.WARNING) -> None:
        controller, self.controller = self.controller, None
        if controller is not None:
            logger.log(level, "broker %d has resigned as the controller", self._broker_id)
            controller.resign()

    async def _run(self) -> None:
        """Become the controller, unless another broker is quicker: the watch of /controller reports which."""
        if not self._is_registered():
            return  # it would consider itself dead; registering again loads the controller again
        elected = await elect_controller(
            self._session, znodes.Controller(broker_id=self._broker_id, timestamp_ms=self._now_ms())
        )
        if elected is None:
            return
        logger.info("broker %d is elected controller, controller epoch %d", self._broker_id, elected.epoch)
        controller = Controller(
            self._session,
            self._broker_id,
            elected,
            rules=self._rules,
            connect=self._connect,
            on_resigned=self._resigned,
            in_doubt_wait_s=self._in_doubt_wait_s,
        )
        session_id = self._session.session_id
        try:
            await self._view.load_brokers(again=True)  # those that the view has may be long outdated
            seen = self._view.brokers
            await controller.begin(*seen)
        except (NotController, CoordinationError) as error:
            logger.warning("the elected controller could not start: %s", error)
            controller.resign()
            asyncio.get_running_loop().call_later(LAST_RETRY_S, self._view.look_for_controller)
            return
        if self._session.session_id != session_id:  # /controller went with the session
            controller.resign()
            return
        self.controller = controller
        if self._view.brokers != seen:  # `brokers_changed` had no controller to pass this to
            await self.brokers_changed(self._view.brokers)
        await self._on_elected()

    def _resigned(self) -> None:
        """Look for the controller after ours has resigned by itself; run again if it is still this broker."""
        if self.controller is not None:
            self.controller = None
            self._view.look_for_controller()
