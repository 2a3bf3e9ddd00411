"""`headrace group`: list, describe, reset-offsets, delete-offsets, delete."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from headrace.cli import completing
from headrace.cli.asking import ask
from headrace.cli.group_reset import reset_offsets
from headrace.cli.group_tables import draw_group, draw_groups, draw_members
from headrace.cli.lazy import Lazy, LazyGroup
from headrace.cli.session import Session, options, together
from headrace.cli.texts import count
from headrace.client.errors import NoSuchGroup
from headrace.client.groups.group import STATES, TYPES

if TYPE_CHECKING:
    from rich.console import RenderableType


LATER: Final = {
    "delete-offsets": Lazy(
        "headrace.cli.group_offsets", "delete_offsets", "Forget what a group has committed."
    ),
}
"""What takes longer to import than most who name a group want to wait."""


@click.group(cls=LazyGroup, table=LATER)
def group() -> None:
    """List, describe, reset and delete consumer groups."""


group.add_command(reset_offsets)


@group.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="Only groups in this state; repeat for more.",
)
@click.option(
    "--type",
    "types",
    type=click.Choice(TYPES, case_sensitive=False),
    multiple=True,
    help="Only groups of this protocol; repeat for more.",
)
@options
@click.pass_obj
def list_(session: Session, states: Sequence[str], types: Sequence[str]) -> None:
    """List the groups:  headrace group list --state stable"""
    found = session.groups.list_groups(states, types)
    session.show(found, lambda: draw_groups(found, filtered=bool(states or types)))


@group.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=completing.groups)
@click.option("--members", is_flag=True, help="Show the members, and which partitions each has.")
@options
@click.pass_obj
def describe(session: Session, names: Sequence[str], *, members: bool) -> None:
    """Show how far groups are:  headrace group describe billing

    The lag of a partition is how many records the group has still to read. A member that has no partition
    is idle. Member ids are cut where they can be told apart; --json has them in full.
    """
    found = session.groups.describe(names)
    draw = draw_members if members else draw_group

    def drawn() -> "RenderableType":
        return together([draw(each) for each in found])

    session.show(found, drawn)


@group.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=completing.groups)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--if-exists", is_flag=True, help="Be content if it is not there.")
@options
@click.pass_obj
def delete(session: Session, names: Sequence[str], *, yes: bool, if_exists: bool) -> None:
    """Delete groups and what they have committed:  headrace group delete billing

    A group can be deleted once its consumers are gone. The records that it has read stay where they are.
    """
    wanted = _there(session, names) if if_exists else list(dict.fromkeys(names))
    session.groups.check_inactive(wanted)
    if wanted and not yes:
        _ask(wanted)
    session.groups.delete(wanted)
    session.show({"deleted": wanted}, f"deleted {', '.join(wanted) or 'nothing'}")


def _there(session: Session, names: Sequence[str]) -> list[str]:
    found = []
    for name in dict.fromkeys(names):
        try:
            session.groups.check_inactive([name])
        except NoSuchGroup:
            continue
        found.append(name)
    return found


def _ask(names: Sequence[str]) -> None:
    """Return if the deletion is wanted."""
    what = names[0] if len(names) == 1 else f"{count(len(names), 'group')} ({', '.join(names)})"
    question = f"Delete {what} and the offsets committed there? Its consumers would begin anew"
    ask(question, allowed=f"to delete {what}")
