"""Removes the registrations of brokers on this machine whose processes have exited.

A broker's registration is ephemeral: ZooKeeper removes it when it has not heard from the broker for a session
timeout. After a kill -9 on the same machine the kernel proves the exit at once (see
`coordination/processes.py`), and any broker that notices removes the registration, and /controller if the
dead broker was the controller. No other observation is a reason to remove either of them.
"""

import asyncio
import logging
from typing import NamedTuple

from headrace.broker.membership.cluster import RegisteredBrokers
from headrace.coordination.errors import CoordinationError
from headrace.coordination.processes import ExitWatch, ProcessExited, ProcessIdentity
from headrace.coordination.session import Check, Delete, Operation, ZooKeeperSession
from headrace.coordination.znodes import BrokerRegistration, Controller, ControllerEpoch, registration_count

_RETRY_S = 0.2

logger = logging.getLogger(__name__)


class BrokerIdAndEpoch(NamedTuple):
    """One registration of a broker."""

    broker_id: int
    epoch: int


class ExitedBrokers:
    """Watches the processes of registered brokers that run on this machine."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._watches: dict[BrokerIdAndEpoch, ExitWatch] = {}
        self._removals: dict[BrokerIdAndEpoch, asyncio.Task[None]] = {}

    async def watch(self, brokers: RegisteredBrokers) -> None:
        """Watch these brokers, and no others."""
        registered = {
            BrokerIdAndEpoch(each, brokers.epochs[each]): found.process
            for each, found in brokers.registrations.items()
        }
        for broker in self._watches.keys() - registered.keys():
            self._watches.pop(broker).close()
        for broker, process in registered.items():
            if process is not None and broker not in self._watches:
                self._watch(broker, process)

    def _watch(self, broker: BrokerIdAndEpoch, process: ProcessIdentity) -> None:
        try:
            watch = ExitWatch.of(process, lambda: self._exited(broker, process))
        except ProcessExited:
            self._exited(broker, process)
        else:
            if watch is not None:
                self._watches[broker] = watch

    def _exited(self, broker: BrokerIdAndEpoch, process: ProcessIdentity) -> None:
        self._watches.pop(broker, None)
        if broker not in self._removals:
            task = self._removals[broker] = self._loop.create_task(self._remove_until_done(broker, process))
            task.add_done_callback(lambda _task: self._removals.pop(broker, None))

    async def _remove_until_done(self, broker: BrokerIdAndEpoch, process: ProcessIdentity) -> None:
        while True:
            try:
                if await remove_registration(self._session, *broker):
                    logger.warning(
                        "broker %d: process %d has exited, its registration is removed",
                        broker.broker_id,
                        process.pid,
                    )
            except CoordinationError as error:  # Conflict included: another broker may have removed it
                logger.debug("the registration of broker %d is not removed yet: %s", broker.broker_id, error)
            else:
                return
            await asyncio.sleep(_RETRY_S)

    def close(self) -> None:
        for task in self._removals.values():
            task.cancel()
        for watch in self._watches.values():
            watch.close()
        self._watches.clear()


async def remove_registration(session: ZooKeeperSession, broker_id: int, epoch: int) -> bool:
    """Remove the registration of a broker that has exited; return False if it is gone or has another epoch.

    /controller is removed too if the same session created it. Conflict if either has changed meanwhile: the
    version of a znode that is created again starts at 0, so the transaction checks the counters that a
    registration and a controller election increment.
    """
    path, count_path = BrokerRegistration.path_of(broker_id), registration_count(broker_id)
    count, controller_epoch = await session.get(count_path), await session.get(ControllerEpoch.path)
    found, controller = await session.get(path), await session.get(Controller.path)
    if found is None or found.created_zxid != epoch or count is None:
        return False
    operations: list[Operation] = [Check(count_path, count.version), Delete(path)]
    if (
        controller is not None
        and controller_epoch is not None
        and controller.ephemeral_owner == found.ephemeral_owner
    ):
        operations += [Check(ControllerEpoch.path, controller_epoch.version), Delete(Controller.path)]
    await session.multi(operations)
    return True
