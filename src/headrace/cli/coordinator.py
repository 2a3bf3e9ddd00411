"""`headrace coordinator`: the embedded coordinator, in the foreground."""

from pathlib import Path

import click

from headrace.broker.settings.setting import parse_properties
from headrace.cli.support import process
from headrace.cli.support.session import (
    Session,
    data_option,
    existing_file,
    host_option,
    json_option,
    port_option,
)
from headrace.coordination.credentials import FILE_NAME, ensure_file
from headrace.coordination.embedded.authentication import Authentication
from headrace.coordination.embedded.server import PORT, TICK_MS, Coordinator
from headrace.security.pem import InvalidTlsSetting
from headrace.security.tls import TlsSettings
from headrace.system.addresses import is_loopback


@click.command()
@data_option("The coordinator's directory; it is created if it does not exist.")
@host_option
@port_option(PORT, "The port to listen on; 0 for any free port.")
@click.option(
    "--tick-ms",
    type=click.IntRange(10),
    default=TICK_MS,
    help="Session timeouts are limited to 2 to 20 ticks.",
)
@click.option("--no-sync", is_flag=True, help="Do not sync writes to disk: for tests.")
@click.option(
    "--credentials",
    "jaas_file",
    type=existing_file,
    help='A JAAS file with users: user_NAME="PASSWORD" in the section Server. Every client then has to '
    f"authenticate. Default: none on loopback, else DIR/{FILE_NAME}, which is created.",
)
@click.option(
    "--config",
    "file",
    type=existing_file,
    help="A properties file with ssl.keystore.*, ssl.truststore.* and ssl.client.auth as for a broker, which "
    "make the port speak TLS.",
)
@json_option
def coordinator(
    session: Session,
    data_dir: Path,
    host: str,
    port: int,
    *,
    tick_ms: int,
    no_sync: bool,
    jaas_file: Path | None,
    file: Path | None,
) -> None:
    """Run the embedded coordinator:  headrace coordinator --data DIR

    It speaks ZooKeeper's protocol, so that brokers and ZooKeeper clients can use it, and keeps every
    acknowledged write. It is a single node: use it on one machine, and a real ZooKeeper ensemble for a
    cluster on several machines. Prints `ready ...` when it serves; TERM or Ctrl-C stops it.
    """
    if jaas_file is None and not is_loopback(host):
        jaas_file = ensure_file(data_dir / FILE_NAME)
    settings = {} if file is None else parse_properties(file.read_text(), str(file))
    try:
        tls = TlsSettings.of(settings)
    except InvalidTlsSetting as error:
        raise process.CommandFailed(str(error)) from error
    served = Coordinator(
        data_dir,
        host,
        port,
        tick_ms=tick_ms,
        sync=not no_sync,
        authentication=None if jaas_file is None else Authentication.of_file(jaas_file),
        tls=None if tls.keystore is None else tls,
    )
    process.run(_serve(process.Readiness(as_json=session.as_json), served))


async def _serve(ready: process.Readiness, coordinator: Coordinator) -> None:
    async with coordinator:
        ready.say(zookeeper=coordinator.address)
        await coordinator.wait_failed()
