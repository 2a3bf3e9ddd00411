"""`headrace gateway`: the HTTP gateway of a cluster, in the foreground."""

from collections.abc import Sequence

import click

from headrace.cli import process
from headrace.cli.machine.gateway import USUAL_PORT, listening
from headrace.cli.session import Session, host_option, options, port_option


@click.command()
@host_option
@port_option(USUAL_PORT, "The port to listen on; 0 for any free port.")
@click.option(
    "--allowed-host",
    "--served-as",
    "names",
    metavar="NAME",
    multiple=True,
    help="A Host header to accept on the loopback, such as the name of a proxy on this machine; repeatable.",
)
@options
def gateway(session: Session, host: str, port: int, names: Sequence[str]) -> None:
    """Serve a cluster over HTTP:  headrace gateway --bootstrap 127.0.0.1:9092

    REST proxy, schema registry, administration, metrics for Prometheus, and the console for a browser, all at
    one address. Prints `ready http=URL`; TERM or Ctrl-C stops it. There is no authentication: every client
    that reaches the port may do everything.
    """
    process.run(_serve(session, host, port, names))


async def _serve(session: Session, host: str, port: int, names: Sequence[str]) -> None:
    from headrace.http.serving import STOP_S, serve  # noqa: PLC0415  not for --help
    from headrace.http.settings import GatewaySettings  # noqa: PLC0415
    from headrace.http.sockets import url_of  # noqa: PLC0415

    with listening(host, port) as held:
        process.Readiness(as_json=session.as_json).say(http=url_of(held))
        to = session.connection
        settings = GatewaySettings(bootstrap=to.bootstrap, security=to.security, hosts=names)
        await process.exit_within(STOP_S, serve(settings, held))
