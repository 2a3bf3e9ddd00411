"""`headrace up`: a broker and its coordinator in one process, or a cluster of processes on one machine."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import click

from headrace.broker.config import BrokerConfig
from headrace.cli import process, settings
from headrace.cli.machine.directory import DataDirectory
from headrace.cli.machine.door import Door, kept
from headrace.cli.machine.layout import EMBEDDED, Layout
from headrace.cli.session import Session, as_json_option
from headrace.cli.texts import pairs
from headrace.ports import reserved


@click.command()
@click.option(
    "--data",
    "data_dir",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Where everything is kept; made if it is not there.",
)
@click.option(
    "--brokers",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="More than one: each is a process of its own, started again if it dies, and topics get three "
    "replicas, or two of two brokers, unless somebody says otherwise (default.replication.factor).",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    show_default=True,
    help="The first broker's; the next have the next. 0: any free ones.",
)
@click.option(
    "--http-port",
    type=click.IntRange(0, 65535),
    help="The console's, the schema registry's and the gateway's. Else 8080, or another if that is taken.",
)
@click.option("--no-http", is_flag=True, help="No console, no registry, no gateway.")
@click.option(
    "--zookeeper",
    metavar="embedded|ensemble|HOST:PORT,...",
    default=EMBEDDED,
    show_default=True,
    help="What coordinates the brokers: a coordinator of ours, three ZooKeeper servers, or those there.",
)
@click.option("--racks", metavar="NAME,...", help="Where the brokers stand, one name for each.")
@settings.set_option
@as_json_option
@click.pass_obj
def up(
    session: Session,
    *,
    data_dir: Path,
    brokers: int,
    host: str,
    port: int,
    http_port: int | None,
    no_http: bool,
    zookeeper: str,
    racks: str | None,
    sets: list[str],
) -> None:
    """Run a broker with all it needs:  headrace up --data DIR

    Or a cluster on this machine:  headrace up --brokers 3 --data DIR

    Prints `ready bootstrap=HOST:PORT,... http=URL` when clients can connect; URL is the console's, for a
    browser. TERM or Ctrl-C stops everything; the same command with the same DIR continues with the data.
    Settings are those of `headrace broker --settings`.
    """
    directory = DataDirectory(data_dir.absolute())
    layout = Layout(
        directory=directory,
        brokers=brokers,
        host=host,
        port=port,
        http=not no_http,
        http_port=0 if http_port is None and port == 0 else http_port,
        zookeeper=zookeeper,
        racks=_names(racks, brokers),
        given=settings.load(None, pairs(sets, "--set")).given,
    )
    layout.check()
    ready = process.Readiness(as_json=session.as_json)
    with directory.held() as hold:
        if layout.is_one_process:
            process.run(_serve_in_one_process(layout, hold, ready))
        else:
            from headrace.cli.machine.cluster import Cluster  # noqa: PLC0415  not for one broker

            process.run(Cluster(layout, hold, ready).serve())


def _names(racks: str | None, brokers: int) -> list[str]:
    names = [] if racks is None else [name.strip() for name in racks.split(",")]
    if racks is not None and (len(names) != brokers or not all(names)):
        raise click.UsageError(f"--racks {racks}: expected a name for each of the {brokers} brokers.")
    return names


async def _serve_in_one_process(layout: Layout, hold: int, ready: process.Readiness) -> None:
    from headrace.broker.server import Broker  # noqa: PLC0415  not in the parent of several
    from headrace.cli.machine.left_out import refuse_loss  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The broker's port is kept first: HTTP is not to take it.
        ports = stack.enter_context(reserved(layout.host, layout.port, 1)) if layout.port else ()
        http = stack.enter_context(layout.http_socket(ports))
        zookeeper = layout.zookeeper
        if zookeeper == EMBEDDED:
            from headrace.coordination.embedded.server import Coordinator  # noqa: PLC0415  not with --zookeeper

            coordinator = await stack.enter_async_context(Coordinator(layout.directory.coordinator, port=0))
            coordinator.end_sessions()  # of brokers that ended with an earlier process
            zookeeper = coordinator.address
            failure = asyncio.ensure_future(coordinator.wait_failed())
            stack.callback(failure.cancel)
        await refuse_loss(layout.directory, layout.brokers, zookeeper)
        broker = Broker(BrokerConfig.of(layout.broker(1, layout.port, zookeeper)))
        await broker.start()
        stack.push_async_callback(broker.stop)
        where = {"bootstrap": broker.bootstrap}
        if http is not None:
            log, hosts = layout.directory.log("gateway"), layout.http_hosts
            door = Door(http, broker.bootstrap, log=log, holds=hold, hosts=hosts)
            await stack.enter_async_context(kept(door))
            where["http"] = door.url
        ready.say(**where)
        await failure
