"""Small texts: what people write on a command line, and what they are told."""

from collections.abc import Iterable
from typing import Final

import click

INTERRUPTED: Final = 130  # the exit status by which a shell counts a death by Ctrl-C


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """`name=value` texts by name; the last of a name counts."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{option} {text}: expected NAME=VALUE.")
        found[name.strip()] = value.strip()
    return found


def count(number: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
