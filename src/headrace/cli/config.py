"""`headrace config`: settings of topics and running brokers."""

from collections.abc import Sequence

import click

from headrace.cli import completion
from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import Drawable, table
from headrace.cli.support.session import Session, options, pairs
from headrace.client.admin.topics import Config

_kind = click.argument("kind", type=click.Choice(["topic", "broker"]))
_name = click.argument("name", shell_complete=completion.named)


@click.group(cls=LazyGroup)
def config() -> None:
    """Show and change settings of topics and brokers. A broker's NAME is its id."""


@config.command()
@_kind
@_name
@click.option("--all", "everything", is_flag=True, help="Include settings that have their default.")
@options
def describe(session: Session, kind: str, name: str, *, everything: bool) -> None:
    """Show settings:  headrace config describe topic orders"""
    if kind == "topic":
        found = session.admin.topic_configs(name)
    else:
        broker_id = _broker_id(name)  # a wrong id is refused before a connection is made
        found = session.admin.broker_configs(broker_id)
    shown = [each for each in found if everything or not each.is_default]
    default = f"every setting of {kind} {name} has its default (--all shows them)"
    session.show(shown, (lambda: settings_table(shown)) if shown else default)


@config.command("set")
@_kind
@_name
@click.argument(
    "settings", metavar="NAME=VALUE...", nargs=-1, required=True, shell_complete=completion.settings
)
@options
def set_(session: Session, kind: str, name: str, settings: Sequence[str]) -> None:
    """Change settings:  headrace config set topic orders retention.ms=3600000"""
    sets = pairs(settings, "setting")
    _alter(session, kind, name, sets=sets, unsets=())
    changed = ", ".join(f"{key}={value}" for key, value in sets.items())
    session.show({"kind": kind, "name": name, "set": sets}, f"{kind} {name}: {changed}")


@config.command()
@_kind
@_name
@click.argument("settings", metavar="NAME...", nargs=-1, required=True, shell_complete=completion.settings)
@options
def unset(session: Session, kind: str, name: str, settings: Sequence[str]) -> None:
    """Go back to the default:  headrace config unset topic orders retention.ms"""
    _alter(session, kind, name, sets={}, unsets=settings)
    result = {"kind": kind, "name": name, "unset": list(settings)}
    session.show(result, f"{kind} {name}: {', '.join(settings)} back to default")


def _alter(session: Session, kind: str, name: str, *, sets: dict[str, str], unsets: Sequence[str]) -> None:
    if kind == "topic":
        session.admin.alter_topic_configs(name, sets=sets, unsets=unsets)
    else:
        broker_id = _broker_id(name)
        session.admin.alter_broker_configs(broker_id, sets=sets, unsets=unsets)


def _broker_id(name: str) -> int:
    if not name.isdigit():
        raise click.UsageError(f"broker {name}: expected the id of a broker, a number.")
    return int(name)


def settings_table(settings: Sequence[Config]) -> Drawable:
    """Return a table of settings: their values, and whether a topic, a broker or a default sets them."""
    rows = [(setting.name, setting.value or "", setting.source) for setting in settings]
    return table(["setting", "value", "from"], rows)
