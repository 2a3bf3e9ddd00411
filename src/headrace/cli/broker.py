"""`headrace broker`: run one broker; list, describe, ready and unregister are in broker_show."""

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from headrace.broker.settings.config import ENVIRONMENT_PREFIX, BrokerConfig
from headrace.broker.settings.setting import InvalidSetting
from headrace.cli import completion
from headrace.cli.machine.gateway import GatewayOptions, advertised, http_socket, on_demand
from headrace.cli.machine.node import NodeProcesses
from headrace.cli.machine.node_settings import broker_count
from headrace.cli.support import process
from headrace.cli.support.lazy import Lazy, LazyGroup
from headrace.cli.support.profiles import PROFILE
from headrace.cli.support.session import (
    BOOTSTRAP_VARIABLE,
    COMMAND_CONFIG,
    REGISTRY_VARIABLE,
    Session,
    existing_file,
    json_option,
    pairs,
)
from headrace.system.system_calls import usable_cpus

if TYPE_CHECKING:
    from headrace.broker.server import Broker

RESERVED: Final = {BOOTSTRAP_VARIABLE, COMMAND_CONFIG, PROFILE, REGISTRY_VARIABLE, process.LOG_FORMAT}
"""Environment variables with the prefix of settings that are none."""

_SECTION: Final = "Or, for the brokers of a running cluster"
COMMANDS: Final = {
    "list": Lazy("headrace.cli.broker_show", "list_", "List the brokers of a cluster.", _SECTION),
    "describe": Lazy("headrace.cli.broker_show", "describe", "Show a broker and its settings.", _SECTION),
    "ready": Lazy("headrace.cli.broker_show", "ready", "Succeed if a broker is up and in sync.", _SECTION),
    "unregister": Lazy("headrace.cli.broker_show", "unregister", "Remove a broker for good.", _SECTION),
}

logger = logging.getLogger("headrace")

set_option = click.option(
    "--set",
    "sets",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=completion.settings,
    help="A broker setting; repeatable.",
)


def load_settings(file: Path | None, sets: Mapping[str, str]) -> BrokerConfig:
    """Return the settings of the file, the environment and the command line; the later one wins."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(ENVIRONMENT_PREFIX) and name not in RESERVED
    }
    return BrokerConfig.load(file=file, environment=environment, sets=sets)


@click.group(cls=LazyGroup, table=COMMANDS, invoke_without_command=True, subcommand_metavar="[COMMAND]")
@click.option("--config", "file", type=existing_file, help="A properties file, as Kafka's server.properties.")
@set_option
@click.option("--daemon", is_flag=True, help="Run in the background; return once the broker is ready.")
@click.option(
    "--pid-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file for the process id; it is deleted when the broker stops.",
)
@click.option("--log-file", type=click.Path(dir_okay=False, path_type=Path), help="The log of a daemon.")
@json_option
@click.pass_context
def broker(
    context: click.Context,
    session: Session,
    *,
    file: Path | None,
    sets: Sequence[str],
    pid_file: Path | None,
    log_file: Path | None,
    daemon: bool,
) -> None:
    """Run one broker:  headrace broker --config server.properties

    Settings come from the file, from variables such as HEADRACE_LOG_DIRS and from --set; the later one wins.
    Prints `ready bootstrap=HOST:PORT` when clients can connect, and `http=URL` beside it if http.listener is
    set. TERM or Ctrl-C stops it; HUP makes it read its file again and apply the dynamic settings.

    With headrace.brokers=auto, or a number, it runs several brokers: one for each core of the machine.
    """
    if context.invoked_subcommand is not None:
        if file or sets or pid_file or log_file or daemon:
            raise click.UsageError(
                f"`{context.invoked_subcommand}` does not take the options that run a broker."
            )
        return
    if daemon != (log_file is not None):
        raise click.UsageError("--daemon and --log-file go together.")
    given = pairs(sets, "--set")
    read_config = partial(load_settings, file, given)
    config = read_config()
    count = broker_count(config, cpus=usable_cpus())

    def serve(ready: process.Readiness) -> None:
        with process.pid_file(pid_file):
            runner: _Runner | NodeProcesses = _Runner(config, read_config, ready)
            if count > 1:
                runner = NodeProcesses(config, count, read_config, ready)
            process.run(runner.serve(), on_hup=partial(_reload, runner.reload))

    if log_file is not None:
        process.daemonize(log_file, serve, as_json=session.as_json)
    else:
        serve(process.Readiness(as_json=session.as_json))


def _reload(reload: Callable[[], Collection[str]]) -> None:
    """Reload the settings, and log which need a restart; a file with an error changes nothing."""
    try:
        waiting = reload()
    except (InvalidSetting, OSError, UnicodeDecodeError) as error:
        logger.error("settings are unchanged: %s", error)  # noqa: TRY400  the message says it all
        return
    logger.info("settings read again")
    if waiting:
        logger.warning("these settings need a restart: %s", ", ".join(waiting))


class _Runner:
    """A broker from its start to its stop; HUP reloads its settings."""

    def __init__(
        self, config: BrokerConfig, read_config: Callable[[], BrokerConfig], ready: process.Readiness
    ) -> None:
        self._config = config
        self._read_config = read_config
        self._ready = ready
        self._serving: Broker | None = None
        self._advertised: Callable[[BrokerConfig], BrokerConfig] = lambda config: config

    async def serve(self) -> None:
        from headrace.broker.server import Broker  # noqa: PLC0415  slow to import

        with http_socket(self._config) as http:
            options = GatewayOptions.of(self._config)
            self._advertised = partial(advertised, held=http, tls=options.uses_tls)
            broker = Broker(self._advertised(self._config))
            await broker.start()
            process.exempt_from_collections()
            try:
                self._serving = broker
                async with on_demand(http, broker.bootstrap, log=None, options=options) as addresses:
                    self._ready.say(**addresses)
                    await asyncio.get_running_loop().create_future()  # until it is cancelled
            finally:
                self._serving = None
                await broker.stop()

    def reload(self) -> Collection[str]:
        """Apply the dynamic settings of the file, and return those that need a restart."""
        config = self._advertised(self._read_config())
        return () if self._serving is None else self._serving.reload(config)
