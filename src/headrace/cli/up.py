"""`headrace up`: a broker and its coordinator in one process, or a cluster of processes on one machine."""

import asyncio
import os
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import click

from headrace.broker.settings.config import BrokerConfig
from headrace.cli.broker import load_settings, set_option
from headrace.cli.machine.directory import DataDirectory
from headrace.cli.machine.gateway import on_demand
from headrace.cli.machine.layout import EMBEDDED, ENSEMBLE, Layout
from headrace.cli.machine.secure import SecureCluster, check_not_secured, client_address
from headrace.cli.support import process
from headrace.cli.support.session import Session, data_option, host_option, json_option, pairs, port_option
from headrace.coordination.credentials import ensure_file
from headrace.system.extras import HTTP, SECURITY, MissingExtra, is_installed, require
from headrace.system.ports import reserved


@click.command()
@data_option("The directory of all data; it is created if it does not exist.")
@click.option(
    "--brokers",
    type=click.IntRange(1, 100),
    default=1,
    help="With more than one, each broker is a process of its own that is restarted if it dies, and topics "
    "get three replicas (two with two brokers) unless default.replication.factor is set.",
)
@host_option
@port_option(9092, "The port of the first broker, the others use the next ones; 0 for any free ports.")
@click.option(
    "--http-port",
    type=click.IntRange(0, 65535),
    help="The port of console, schema registry and gateway. Default: 8080, or a free port if it is in use.",
)
@click.option("--no-http", is_flag=True, help="Run no console, no registry and no gateway.")
@click.option(
    "--zookeeper",
    metavar="embedded|ensemble|HOST:PORT,...",
    default=EMBEDDED,
    help="What coordinates the brokers: the embedded coordinator, three ZooKeeper servers that are started, "
    "or running servers at these addresses.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="TLS, users with passwords and ACLs that deny by default. DIR/client.properties and "
    "DIR/client.librdkafka.properties are how the administrator connects.",
)
@click.option("--racks", metavar="NAME,...", help="The racks of the brokers, one name for each broker.")
@set_option
@json_option
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
    sets: Sequence[str],
    secure: bool,
) -> None:
    """Run a broker with all that it needs:  headrace up --data DIR

    Or a cluster on this machine:  headrace up --brokers 3 --data DIR

    Prints `ready bootstrap=HOST:PORT,... http=URL` when clients can connect; URL is the address of the
    console, for a browser. TERM or Ctrl-C stops everything; the same command with the same DIR continues with
    the data. docs/config.md lists the settings.

    A cluster that only its users may enter:  headrace up --secure --data DIR
    """
    if secure:
        require(SECURITY, "headrace up --secure")
    names = [] if racks is None else [name.strip() for name in racks.split(",")]
    if racks is not None and (len(names) != brokers or not all(names)):
        raise click.UsageError(f"--racks {racks}: expected a name for each of the {brokers} brokers.")
    if zookeeper == ENSEMBLE:
        from headrace.coordination.zookeeper import find_jars  # noqa: PLC0415  not for the other ones

        find_jars()
    directory = DataDirectory(data_dir.absolute())
    layout = Layout(
        directory=directory,
        brokers=brokers,
        host=host,
        port=port,
        http=not no_http and _can_serve_http(http_port),
        http_port=0 if http_port is None and port == 0 else http_port,
        zookeeper=zookeeper,
        racks=names,
        given=load_settings(None, pairs(sets, "--set")).given,
        secure=SecureCluster(directory, brokers, host) if secure else None,
    )
    layout.check()
    ready = process.Readiness(as_json=session.as_json)
    with directory.held() as hold:
        if layout.secure is None:
            check_not_secured(directory)
        else:
            os.umask(0o077)  # all files of this process and its children are for their owner alone
            layout.secure.prepare()
        if layout.is_one_process:
            process.run(_renewing(layout, _serve_in_one_process(layout, hold, ready)))
        else:
            from headrace.cli.machine import cluster  # noqa: PLC0415  not for one broker

            process.run(_renewing(layout, cluster.serve(layout, hold, ready)))


def _can_serve_http(port: int | None) -> bool:
    """Return whether the gateway is installed. If not, say so; MissingExtra if a port was given for it."""
    if is_installed(HTTP):
        return True
    if port is not None:
        raise MissingExtra("headrace up --http-port", HTTP)
    click.echo(f"console, schema registry and gateway are not installed: {HTTP.command}", err=True)
    return False


async def _renewing(layout: Layout, serving: Coroutine[object, object, None]) -> None:
    """Run the cluster, and renew its certificates meanwhile."""
    renewing = None if layout.secure is None else asyncio.ensure_future(layout.secure.keep_renewing())
    try:
        await serving
    finally:
        if renewing is not None:
            renewing.cancel()


async def _serve_in_one_process(layout: Layout, hold: int, ready: process.Readiness) -> None:
    from headrace.broker.server import Broker  # noqa: PLC0415  not in the parent of several

    async with AsyncExitStack() as stack:
        failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The broker's port is reserved first, so that HTTP does not take it.
        ports = stack.enter_context(reserved(layout.host, layout.port, 1)) if layout.port else ()
        http = stack.enter_context(layout.http_socket(ports))
        zookeeper = layout.zookeeper
        if zookeeper == EMBEDDED:
            from headrace.coordination.embedded.authentication import Authentication  # noqa: PLC0415
            from headrace.coordination.embedded.server import Coordinator  # noqa: PLC0415  not with --zookeeper

            users = Authentication.of_file(ensure_file(layout.directory.credentials))
            coordinator = await stack.enter_async_context(
                Coordinator(layout.directory.coordinator, port=0, authentication=users)
            )
            coordinator.end_sessions()  # of brokers that ended with an earlier process
            zookeeper = coordinator.address
            failure = asyncio.ensure_future(coordinator.wait_failed())
            stack.callback(failure.cancel)
        config = layout.advertising(BrokerConfig.of(layout.broker(1, layout.port, zookeeper)), http)
        await layout.prepare_zookeeper(zookeeper)
        broker = Broker(config)
        await broker.start()
        process.exempt_from_collections()
        stack.push_async_callback(broker.stop)
        log = None if http is None else layout.directory.log("gateway")
        bootstrap = broker.bootstrap if layout.secure is None else client_address(broker.endpoints)
        layout.prepare_clients(bootstrap)
        gateway = on_demand(http, bootstrap, log=log, holds=[hold], options=layout.gateway)
        layout.report_ready(ready, await stack.enter_async_context(gateway))
        await failure
