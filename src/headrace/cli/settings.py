"""Broker settings from the command line and the environment."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from headrace.broker.config import ENVIRONMENT_PREFIX, BrokerConfig
from headrace.cli import completing, log_format

RESERVED: Final = {"HEADRACE_BOOTSTRAP", "HEADRACE_REGISTRY", log_format.VARIABLE}
"""Variables that begin like settings and are the command line's own."""

set_option = click.option(
    "--set",
    "sets",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=completing.broker_settings,
    help="A broker setting; repeat for more.",
)


def environment() -> dict[str, str]:
    """The variables that name settings."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(ENVIRONMENT_PREFIX) and name not in RESERVED
    }


def load(file: Path | None, sets: Mapping[str, str]) -> BrokerConfig:
    """The settings of the file, the environment and the command line; the later wins."""
    return BrokerConfig.load(file=file, environment=environment(), sets=sets)
