"""`headrace config`: settings of topics and brokers, while they are in use."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from headrace.cli import completing
from headrace.cli.lazy import LazyGroup
from headrace.cli.session import Session, options, table
from headrace.cli.texts import pairs
from headrace.client.admin.topics import Config

if TYPE_CHECKING:
    from rich.console import RenderableType

_kind = click.argument("kind", type=click.Choice(["topic", "broker"]))
_name = click.argument("name", shell_complete=completing.named)


@click.group(cls=LazyGroup)
def config() -> None:
    """Show and change settings of topics and brokers. A broker's NAME is its number."""


@config.command()
@_kind
@_name
@click.option("--all", "everything", is_flag=True, help="Defaults as well.")
@options
@click.pass_obj
def describe(session: Session, kind: str, name: str, *, everything: bool) -> None:
    """Show settings:  headrace config describe topic orders"""
    found = _read(session, kind, name)
    shown = [each for each in found if everything or not each.is_default]
    session.show(shown, lambda: _describe(kind, name, shown))


@config.command("set")
@_kind
@_name
@click.argument(
    "settings", metavar="NAME=VALUE...", nargs=-1, required=True, shell_complete=completing.settings
)
@options
@click.pass_obj
def set_(session: Session, kind: str, name: str, settings: Sequence[str]) -> None:
    """Change settings:  headrace config set topic orders retention.ms=3600000"""
    sets = pairs(settings, "setting")
    _alter(session, kind, name, sets=sets, unsets=())
    changed = ", ".join(f"{key}={value}" for key, value in sets.items())
    session.show({"kind": kind, "name": name, "set": sets}, f"{kind} {name}: {changed}")


@config.command()
@_kind
@_name
@click.argument("settings", metavar="NAME...", nargs=-1, required=True, shell_complete=completing.settings)
@options
@click.pass_obj
def unset(session: Session, kind: str, name: str, settings: Sequence[str]) -> None:
    """Go back to the default:  headrace config unset topic orders retention.ms"""
    _alter(session, kind, name, sets={}, unsets=settings)
    session.show(
        {"kind": kind, "name": name, "unset": list(settings)},
        f"{kind} {name}: {', '.join(settings)} as by default",
    )


def _alter(session: Session, kind: str, name: str, *, sets: dict[str, str], unsets: Sequence[str]) -> None:
    if kind == "topic":
        session.admin.alter_topic_configs(name, sets=sets, unsets=unsets)
    else:
        broker_id = _broker_id(name)
        session.admin.alter_broker_configs(broker_id, sets=sets, unsets=unsets)


def _read(session: Session, kind: str, name: str) -> list[Config]:
    if kind == "topic":
        return session.admin.topic_configs(name)
    broker_id = _broker_id(name)
    return session.admin.broker_configs(broker_id)


def _broker_id(name: str) -> int:
    if not name.isdigit():
        raise click.UsageError(f"broker {name}: expected the broker's number.")
    return int(name)


def _describe(kind: str, name: str, shown: Sequence[Config]) -> "RenderableType":
    if not shown:
        return f"{kind} {name} has nothing but defaults (--all shows them)"
    return table(["setting", "value", "from"], [(each.name, each.value, each.source) for each in shown])
