"""`headrace`: the one command, and where its errors become one line on stderr."""

import click

from headrace import __version__


@click.group()
@click.version_option(__version__, prog_name="headrace")
def main() -> None:
    """A distributed, replicated commit log that any Kafka client can use."""
