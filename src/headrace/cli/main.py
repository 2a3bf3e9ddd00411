"""`headrace`: the one command, and the one place where an error becomes a line on stderr."""

import logging
import sys

import click

from headrace import __version__
from headrace.cli.demo import demo
from headrace.cli.log import log
from headrace.protocol.errors import KafkaError
from headrace.storage.errors import StorageError


@click.group()
@click.version_option(__version__, prog_name="headrace")
def commands() -> None:
    """A distributed, replicated commit log that any Kafka client can use."""


commands.add_command(demo)
commands.add_command(log)


def main() -> None:
    """Run the command line; a failure the product knows ends in one sentence and exit status 1."""
    logging.basicConfig(format="headrace: %(message)s", level=logging.WARNING)
    try:
        commands()
    except (KafkaError, StorageError, OSError) as error:
        click.echo(f"headrace: {error}", err=True)
        sys.exit(1)
