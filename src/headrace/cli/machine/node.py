"""A node: brokers of one machine, each a process, under one supervisor with one gateway and one log."""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from headrace.broker.settings.config import BrokerConfig
from headrace.cli.machine.gateway import GatewayOptions, advertised, http_socket, on_demand
from headrace.cli.machine.node_settings import broker_settings, node_configs
from headrace.cli.machine.process import Service
from headrace.cli.machine.supervisor import Supervisor
from headrace.cli.support.process import CommandFailed, Readiness
from headrace.storage.directory import BROKERS
from headrace.storage.identity import read_identity

STOP_S: Final = 100.0  # for leaders to move and logs to be flushed; service managers should allow more

logger = logging.getLogger("headrace")


class _Broker(Service):
    stop_s = STOP_S


class NodeProcesses:
    """The brokers of a node from their start to their stop; HUP reloads the settings of all."""

    def __init__(
        self, config: BrokerConfig, count: int, read_config: Callable[[], BrokerConfig], ready: Readiness
    ) -> None:
        self._config = config
        self._configs = node_configs(config, count)
        self._read_config = read_config
        self._ready = ready
        self._brokers: list[Service] = []
        self._advertised: Callable[[BrokerConfig], BrokerConfig] = lambda config: config

    async def serve(self) -> None:
        """Start everything, report when clients can connect, and supervise it until it is cancelled."""
        check_directories(self._config.items("log.dirs"), self._configs)
        with http_socket(self._config) as http:
            options = GatewayOptions.of(self._config)
            self._advertised = partial(advertised, held=http, tls=options.uses_tls)
            self._configs = [self._advertised(config) for config in self._configs]
            self._brokers = [
                _Broker(f"broker-{config.broker_id}", None, (), service="broker", settings=config.given)
                for config in self._configs
            ]
            supervisor = Supervisor([self._brokers])
            try:
                await supervisor.start_most(self._brokers)
                ready = [broker for broker in self._brokers if broker.running]
                bootstrap = ",".join(each.addresses["bootstrap"] for each in ready)
                async with on_demand(http, bootstrap, log=None, options=options) as addresses:
                    self._ready.say(**addresses)
                    await supervisor.watch()
            finally:
                await supervisor.stop()

    def reload(self) -> list[str]:
        """Send the dynamic settings of the file to all brokers, and return those that need a restart.

        A broker that is restarted later gets the same settings.
        """
        configs: list[BrokerConfig] = []
        waiting: set[str] = set()
        changed = self._read_config()
        for index, config in enumerate(self._configs):
            settings = BrokerConfig.of(broker_settings(changed, index, len(self._configs)))
            reloaded, fixed = config.reloaded(self._advertised(settings))
            configs.append(reloaded)
            waiting.update(fixed)
        self._configs = configs
        for broker, config in zip(self._brokers, self._configs, strict=False):  # none before the start
            broker.change(config.given)
        return sorted(waiting)


def check_directories(log_dirs: Iterable[str], brokers: Iterable[BrokerConfig]) -> None:
    """Raise CommandFailed if a broker of the node has its logs in another directory than it would use now.

    Otherwise it would start without its records after a change of log.dirs. A directory of a broker that is
    not started is logged.
    """
    expected = {broker.broker_id: broker.log_dir for broker in brokers}
    for path, broker_id in _owners(log_dirs):
        if broker_id not in expected:
            logger.warning(
                "%s has the logs of broker %d, which this node does not run: raise headrace.brokers, or "
                "delete the directory if its partitions have other replicas (`headrace cluster status`)",
                path,
                broker_id,
            )
        elif expected[broker_id] != path:
            raise CommandFailed(
                f"broker {broker_id} has its logs in {path}, and with these log.dirs it would use "
                f"{expected[broker_id]}: move them there, or use the log.dirs of its last start"
            )


def _owners(log_dirs: Iterable[str]) -> Iterator[tuple[Path, int]]:
    """Yield every log directory in `log_dirs` that belongs to a broker, and the broker's id."""
    for each in map(Path, log_dirs):
        try:
            others = sorted((each / BROKERS).iterdir()) if (each / BROKERS).is_dir() else ()
            for path in (each, *others):
                owner = read_identity(path)
                if owner is not None:
                    yield path, owner.broker_id
        except OSError as error:  # the brokers on this disk cannot start, and say why
            logger.warning("%s cannot be read: %s", each, error)
