"""`headrace broker`: one broker, in the foreground or as a daemon; and the brokers there are."""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from pathlib import Path
from typing import Final

import click

from headrace.broker.broker_settings import BROKER_SETTINGS
from headrace.broker.config import BrokerConfig
from headrace.broker.settings import InvalidSetting, Scope, Setting, show
from headrace.cli import process, settings
from headrace.cli.lazy import Lazy, LazyGroup
from headrace.cli.machine.door import Door, endpoint, kept, listening
from headrace.cli.session import Session, as_json_option, table
from headrace.cli.texts import pairs

OTHERS: Final = "Or, of brokers that run"

logger = logging.getLogger("headrace")


COMMANDS: Final = {
    "list": Lazy("headrace.cli.broker_show", "list_", "List the brokers of a cluster.", OTHERS),
    "describe": Lazy("headrace.cli.broker_show", "describe", "Show one, its disk and its settings.", OTHERS),
    "unregister": Lazy("headrace.cli.broker_show", "unregister", "Make sure that one is gone.", OTHERS),
}


@click.group(cls=LazyGroup, table=COMMANDS, invoke_without_command=True, subcommand_metavar="[COMMAND]")
@click.option(
    "--config",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A properties file, as Kafka's server.properties.",
)
@settings.set_option
@click.option("--daemon", is_flag=True, help="Return once it is ready, and leave it running.")
@click.option("--pid-file", type=click.Path(dir_okay=False, path_type=Path), help="Gone when it has stopped.")
@click.option(
    "--log-file", type=click.Path(dir_okay=False, path_type=Path), help="Where a daemon's log goes."
)
@click.option("--settings", "list_settings", is_flag=True, help="List every setting, and start nothing.")
@as_json_option
@click.pass_context
def broker(
    context: click.Context,
    file: Path | None,
    sets: list[str],
    pid_file: Path | None,
    log_file: Path | None,
    *,
    daemon: bool,
    list_settings: bool,
) -> None:
    """Run one broker:  headrace broker --config server.properties

    Settings come from the file, from variables such as HEADRACE_LOG_DIRS and from --set; the later wins.
    Prints `ready bootstrap=HOST:PORT` when clients can connect, and `http=URL` beside it if http.listener is
    set. TERM or Ctrl-C stops it; HUP has it read its file again and use what can change while it runs.
    """
    if context.invoked_subcommand is not None:
        if file or sets or pid_file or log_file or daemon or list_settings:
            raise click.UsageError(f"`{context.invoked_subcommand}` takes none of the options to run one.")
        return
    if list_settings:
        _list_settings(context.ensure_object(Session))
        return
    if daemon != (log_file is not None):
        raise click.UsageError("--daemon and --log-file go together.")
    given = pairs(sets, "--set")
    config = settings.load(file, given)

    def serve(ready: process.Readiness) -> None:
        with process.pid_file(pid_file):
            runner = _Runner(config, lambda: settings.load(file, given), ready)
            process.run(runner.serve(), on_hup=runner.reload)

    as_json = context.ensure_object(Session).as_json
    if log_file is not None:
        process.daemonize(log_file, serve, as_json=as_json)
    else:
        serve(process.Readiness(as_json=as_json))


class _Runner:
    """A broker from its start to its stop, and what a HUP does to it."""

    def __init__(
        self, config: BrokerConfig, reread: Callable[[], BrokerConfig], ready: process.Readiness
    ) -> None:
        from headrace.broker.server import Broker  # noqa: PLC0415  --settings does without

        self._broker = Broker(config)
        self._reread = reread
        self._ready = ready
        self._serving = False

    async def serve(self) -> None:
        with self._http_socket() as http:
            await self._broker.start()
            try:
                self._serving = True
                async with AsyncExitStack() as serving:
                    where = {"bootstrap": self._broker.bootstrap}
                    if http is not None:
                        hosts = self._broker.config.items("http.hosts")
                        door = Door(http, self._broker.bootstrap, log=None, hosts=hosts)
                        await serving.enter_async_context(kept(door))
                        where["http"] = door.url
                    self._ready.say(**where)
                    await asyncio.get_running_loop().create_future()  # until it is cancelled
            finally:
                self._serving = False
                await self._broker.stop()

    def _http_socket(self) -> AbstractContextManager[socket.socket | None]:
        address = self._broker.config.text("http.listener")
        return listening(*endpoint(address, "http.listener")) if address else nullcontext()

    def reload(self) -> None:
        """Use what the file says now, and log what has to wait for a restart; a bad file changes nothing."""
        if not self._serving:
            return
        try:
            waiting = self._broker.reload(self._reread())
        except (InvalidSetting, OSError, UnicodeDecodeError) as error:
            logger.error("settings are as before: %s", error)  # noqa: TRY400  a sentence is all there is
            return
        logger.info("settings read again")
        if waiting:
            logger.warning("these need a restart: %s", ", ".join(waiting))


def describe_setting(setting: Setting) -> Mapping[str, object]:
    """A setting for a machine to read."""
    return {
        "name": setting.name,
        "type": setting.kind.name.lower(),
        "default": show(setting.default),
        "dynamic": setting.scope is not Scope.READ_ONLY,
        "low": setting.low,
        "high": setting.high,
        "choices": list(setting.choices),
        "meaning": setting.doc,
    }


def _list_settings(session: Session) -> None:
    rows = [describe_setting(BROKER_SETTINGS.by_name[name]) for name in sorted(BROKER_SETTINGS.by_name)]
    session.show(
        rows,
        lambda: table(
            ["setting", "type", "default", "dynamic", "meaning"],
            [
                (row["name"], row["type"], row["default"], "yes" if row["dynamic"] else "no", row["meaning"])
                for row in rows
            ],
        ),
    )
