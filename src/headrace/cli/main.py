"""`headrace`: the one command, and the one place where an error becomes a line on stderr."""

import logging
import sys
from typing import Final

import click

from headrace import __version__
from headrace.cli.lazy import Lazy, LazyGroup
from headrace.coordination.errors import CoordinationError
from headrace.protocol.errors import KafkaError
from headrace.storage.errors import StorageError

COMMANDS: Final = {
    "coordinator": Lazy("headrace.cli.coordinator", "coordinator", "Run the embedded coordinator."),
    "demo": Lazy("headrace.cli.demo", "demo", "Write, read, compact and recover a log."),
    "log": Lazy("headrace.cli.log", "log", "Look at a partition's files on disk."),
    "zookeeper": Lazy("headrace.cli.zookeeper", "zookeeper", "Run Apache ZooKeeper itself."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
@click.version_option(__version__, prog_name="headrace")
def commands() -> None:
    """A distributed, replicated commit log that any Kafka client can use."""


def main() -> None:
    """Run the command line; a failure the product knows ends in one sentence and exit status 1."""
    logging.basicConfig(format="headrace: %(message)s", level=logging.WARNING)
    try:
        commands()
    except (KafkaError, StorageError, CoordinationError, OSError) as error:
        click.echo(f"headrace: {error}", err=True)
        sys.exit(1)
