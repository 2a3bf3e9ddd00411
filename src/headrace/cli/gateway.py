"""`headrace gateway`: the HTTP gateway of a cluster, in the foreground."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.machine.gateway import USUAL_PORT, listening
from headrace.cli.support import process
from headrace.cli.support.session import Session, existing_file, host_option, options, pairs, port_option

if TYPE_CHECKING:
    from headrace.client.wire.connection_settings import ConnectionSettings


@click.command()
@host_option
@port_option(USUAL_PORT, "The port to listen on; 0 for any free port.")
@click.option(
    "--allowed-host",
    "--served-as",
    "names",
    metavar="NAME",
    multiple=True,
    help="A Host header to accept besides addresses and the machine's name, such as a proxy's; repeatable.",
)
@click.option(
    "--config",
    "file",
    type=existing_file,
    help="A properties file with settings of the gateway: ssl.keystore.location for HTTPS, and others.",
)
@click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="Such a setting; repeatable.")
@click.option(
    "--allow-unauthenticated",
    is_flag=True,
    help="Serve everyone who reaches the port, with the gateway's own rights.",
)
@click.option(
    "--cluster",
    "clusters",
    metavar="NAME=FILE|HOST:PORT,...",
    multiple=True,
    help="A cluster by name, with its properties file or its brokers, instead of --bootstrap; repeatable. "
    "The first is at the usual addresses, the others under /c/NAME.",
)
@options
def gateway(
    session: Session,
    *,
    host: str,
    port: int,
    names: Sequence[str],
    file: Path | None,
    sets: Sequence[str],
    allow_unauthenticated: bool,
    clusters: Sequence[str],
) -> None:
    """Serve a cluster over HTTP:  headrace gateway --bootstrap 127.0.0.1:9092

    REST proxy, schema registry, administration, metrics for Prometheus, and the console for a browser, all at
    one address. Prints `ready http=URL`; TERM or Ctrl-C stops it.

    One gateway can serve several clusters, and its console has a choice of them:
    headrace gateway --cluster prod=prod.properties --cluster test=10.0.0.1:9092

    If --command-config has SASL credentials, every request needs a user name and a password or a token, which
    the brokers verify, and may do what its user may do. Otherwise everyone who reaches the port has the
    gateway's own rights; on other addresses than the loopback that needs --allow-unauthenticated.
    """
    from headrace.gateway.configuration import load  # noqa: PLC0415  not for --help

    given = {} if file is None else load(file)
    given |= pairs(sets, "--set")
    if names:
        given["http.hosts"] = ",".join([*filter(None, [given.get("http.hosts")]), *names])
    if allow_unauthenticated:
        given["http.allow.unauthenticated"] = "true"
    connections = _connections(clusters) if clusters else {"": session.connection}
    process.run(_serve(session, host, port, given, connections))


def _connections(clusters: Sequence[str]) -> "dict[str, ConnectionSettings]":
    """Return how to connect to each cluster, by its name; BadSetting says which option is wrong."""
    from headrace.client.errors import BadSetting  # noqa: PLC0415
    from headrace.client.wire.connection_settings import ConnectionSettings  # noqa: PLC0415
    from headrace.gateway.clusters import check_name  # noqa: PLC0415

    found: dict[str, ConnectionSettings] = {}
    for cluster in clusters:
        name, _, where = cluster.partition("=")
        if not where:
            raise BadSetting(f"--cluster {cluster}: expected NAME=FILE or NAME=HOST:PORT,...")
        if check_name(name) in found:
            raise BadSetting(f"--cluster {name} is given twice")
        is_file = Path(where).is_file()
        found[name] = ConnectionSettings.load(where) if is_file else ConnectionSettings(where)
        if not found[name].bootstrap:
            raise BadSetting(f"--cluster {name}: {where} has no bootstrap.servers")
    return found


async def _serve(
    session: Session,
    host: str,
    port: int,
    given: Mapping[str, str],
    connections: "Mapping[str, ConnectionSettings]",
) -> None:
    from headrace.gateway.configuration import Configuration  # noqa: PLC0415
    from headrace.gateway.listening import url_of  # noqa: PLC0415
    from headrace.gateway.serving import STOP_S, serve  # noqa: PLC0415  not for --help

    configuration = Configuration(given=given)
    settings = {name: configuration.settings(each, host) for name, each in connections.items()}
    tls = next(iter(settings.values())).tls
    with listening(host, port) as held:
        process.Readiness(as_json=session.as_json).say(http=url_of(held, tls=tls is not None))
        await process.exit_within(STOP_S, serve(settings, held))
