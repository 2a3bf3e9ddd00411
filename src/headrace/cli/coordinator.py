"""`headrace coordinator`: the embedded coordinator, in the foreground."""

from pathlib import Path

import click

from headrace.cli import process
from headrace.cli.session import Session, data_option, host_option, json_option, port_option
from headrace.coordination.embedded.server import PORT, TICK_MS, Coordinator


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
@json_option
def coordinator(
    session: Session, data_dir: Path, host: str, port: int, *, tick_ms: int, no_sync: bool
) -> None:
    """Run the embedded coordinator:  headrace coordinator --data DIR

    It speaks ZooKeeper's protocol, so that brokers and every ZooKeeper client can use it, and keeps every
    acknowledged write. It is a single node: use it on one machine, and a real ZooKeeper ensemble for a
    cluster on several machines. Prints `ready ...` when it serves; TERM or Ctrl-C stops it.
    """
    ready = process.Readiness(as_json=session.as_json)
    process.run(_serve(ready, Coordinator(data_dir, host, port, tick_ms=tick_ms, sync=not no_sync)))


async def _serve(ready: process.Readiness, coordinator: Coordinator) -> None:
    async with coordinator:
        ready.say(zookeeper=coordinator.address)
        await coordinator.wait_failed()
