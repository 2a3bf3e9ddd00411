"""`headrace coordinator`: the embedded coordinator, in the foreground."""

from pathlib import Path

import click

from headrace.cli import process
from headrace.cli.session import Session, as_json_option
from headrace.coordination.embedded.server import PORT, TICK_MS, Coordinator


@click.command()
@click.option(
    "--data",
    "data_dir",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Where it keeps what it is told; made if it is not there.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any free one."
)
@click.option(
    "--tick-ms",
    type=click.IntRange(10),
    default=TICK_MS,
    show_default=True,
    help="A session may last from 2 to 20 ticks.",
)
@click.option("--no-sync", is_flag=True, help="Leave writes to the system's cache: for tests.")
@as_json_option
@click.pass_obj
def coordinator(
    session: Session, data_dir: Path, host: str, port: int, *, tick_ms: int, no_sync: bool
) -> None:
    """Run the embedded coordinator:  headrace coordinator --data DIR

    It speaks ZooKeeper's protocol, so that brokers and every ZooKeeper client can use it, and keeps every
    acknowledged write. It is one node: fine on one machine, but a cluster on several machines wants a real
    ZooKeeper ensemble. Prints `ready ...` when it serves; TERM or Ctrl-C stops it.
    """
    process.run(_serve(session, Coordinator(data_dir, host, port, tick_ms=tick_ms, sync=not no_sync)))


async def _serve(session: Session, coordinator: Coordinator) -> None:
    async with coordinator:
        session.ready(zookeeper=coordinator.address)
        await coordinator.wait_failed()
