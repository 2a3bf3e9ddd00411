"""`headrace gateway`: the HTTP gateway of a cluster, in the foreground."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from headrace.cli import process
from headrace.cli.machine.gateway import USUAL_PORT, listening
from headrace.cli.session import Session, existing_file, host_option, options, pairs, port_option


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
) -> None:
    """Serve a cluster over HTTP:  headrace gateway --bootstrap 127.0.0.1:9092

    REST proxy, schema registry, administration, metrics for Prometheus, and the console for a browser, all at
    one address. Prints `ready http=URL`; TERM or Ctrl-C stops it.

    If --command-config has SASL credentials, every request needs a user name and a password or a token, which
    the brokers verify, and may do what its user may do. Otherwise everyone who reaches the port has the
    gateway's own rights; on other addresses than the loopback that needs --allow-unauthenticated.
    """
    from headrace.http.configuration import load  # noqa: PLC0415  not for --help

    given = {} if file is None else load(file)
    given |= pairs(sets, "--set")
    if names:
        given["http.hosts"] = ",".join([*filter(None, [given.get("http.hosts")]), *names])
    if allow_unauthenticated:
        given["http.allow.unauthenticated"] = "true"
    process.run(_serve(session, host, port, given))


async def _serve(session: Session, host: str, port: int, given: Mapping[str, str]) -> None:
    from headrace.http.configuration import Configuration  # noqa: PLC0415
    from headrace.http.serving import STOP_S, serve  # noqa: PLC0415  not for --help
    from headrace.http.sockets import url_of  # noqa: PLC0415

    settings = Configuration(given=given).settings(session.connection, host)
    with listening(host, port) as held:
        process.Readiness(as_json=session.as_json).say(http=url_of(held, tls=settings.tls is not None))
        await process.exit_within(STOP_S, serve(settings, held))
