"""`headrace gateway`: HTTP for a cluster, as a process of its own."""

import click

from headrace.cli import process
from headrace.cli.machine.door import USUAL_PORT, listening
from headrace.cli.session import Session, options


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=USUAL_PORT, show_default=True, help="0: any free one."
)
@click.option(
    "--allowed-host",
    "--served-as",
    "names",
    metavar="NAME",
    multiple=True,
    help="A name, of a proxy on this machine, that it may be asked by on the loopback; repeat for more.",
)
@options
@click.pass_obj
def gateway(session: Session, host: str, port: int, names: tuple[str, ...]) -> None:
    """Serve a cluster over HTTP:  headrace gateway --bootstrap 127.0.0.1:9092

    REST proxy, schema registry, administration, metrics for Prometheus, and the console for a browser, all at
    one address. Prints `ready http=URL`; TERM or Ctrl-C stops it. There is no authentication: whoever reaches
    the port may do everything.
    """
    process.run(_serve(session, host, port, names))


async def _serve(session: Session, host: str, port: int, names: tuple[str, ...]) -> None:
    from headrace.http.serving import STOP_S, serve  # noqa: PLC0415  not for --help
    from headrace.http.settings import GatewaySettings  # noqa: PLC0415
    from headrace.http.sockets import url_of  # noqa: PLC0415

    with listening(host, port) as held:
        process.Readiness(as_json=session.as_json).say(http=url_of(held))
        settings = GatewaySettings(bootstrap=session.bootstrap, hosts=names)
        await process.leaving_within(STOP_S, serve(settings, held))
