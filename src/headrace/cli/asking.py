"""What commands ask before they destroy something, and what they leave alone unless it is meant."""

import sys
from typing import Final

import click

_REGISTRYS: Final = frozenset({"_schemas"})  # which brokers do not call internal, as Kafka's do not

internal_option = click.option(
    "--internal", is_flag=True, help="Topics, too, that are the cluster's or the schema registry's own."
)


def ask(question: str, *, allowed: str, declined: str = "nothing was deleted") -> None:
    """Return if somebody at a terminal says yes; `allowed` is what --yes is for where nobody is."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"Nobody is there to be asked: give --yes {allowed}.")
    if not click.confirm(question, err=True):
        raise click.ClickException(declined)


def refuse_internal(topic: str, *, marked: bool, meant: bool) -> None:
    """ClickException for a topic that is the cluster's own, `marked` so by brokers, unless it is `meant`."""
    if (marked or topic in _REGISTRYS) and not meant:
        whose = "the schema registry's" if topic in _REGISTRYS else "the cluster's"
        raise click.ClickException(f"{topic} is {whose} own: give --internal if you mean it")
