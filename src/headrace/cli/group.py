"""`headrace group`: list, describe, delete; reset-offsets and delete-offsets are in group_offsets."""

from collections.abc import Iterable, Sequence
from typing import Final

import click

from headrace.cli import completion
from headrace.cli.lazy import Lazy, LazyGroup
from headrace.cli.output import UNKNOWN, Drawable, count, grouped, table, together
from headrace.cli.session import Session, confirm, if_exists_option, options, yes_option
from headrace.client.errors import NoSuchGroup
from headrace.client.groups.group import STATES, TYPES, Group, GroupSummary, Member

_SHORTEST: Final = 8  # characters of a member id
COMMANDS: Final = {
    "delete-offsets": Lazy("headrace.cli.group_offsets", "delete_offsets", "Delete committed offsets."),
    "reset-offsets": Lazy("headrace.cli.group_offsets", "reset_offsets", "Change committed offsets."),
}

_names = click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion.groups)


@click.group(cls=LazyGroup, table=COMMANDS)
def group() -> None:
    """List, describe, reset and delete consumer groups."""


@group.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="Only groups in this state; repeatable.",
)
@click.option(
    "--type",
    "types",
    type=click.Choice(TYPES, case_sensitive=False),
    multiple=True,
    help="Only groups of this protocol; repeatable.",
)
@options
def list_(session: Session, states: Sequence[str], types: Sequence[str]) -> None:
    """List the groups:  headrace group list --state stable"""
    found = session.groups.list_groups(states, types)
    session.show(found, lambda: draw_groups(found, filtered=bool(states or types)))


@group.command()
@_names
@click.option("--members", is_flag=True, help="Show the members and their partitions.")
@options
def describe(session: Session, names: Sequence[str], *, members: bool) -> None:
    """Show committed offsets and lag:  headrace group describe billing

    The lag of a partition is the number of records that the group has yet to read. A member without
    partitions is idle. Member ids are cut as short as they stay distinct; --json has them in full.
    """
    found = session.groups.describe(names)
    draw = draw_members if members else draw_group
    session.show(found, lambda: together([draw(each) for each in found]))


@group.command()
@_names
@yes_option
@if_exists_option
@options
def delete(session: Session, names: Sequence[str], *, yes: bool, if_exists: bool) -> None:
    """Delete groups and their committed offsets:  headrace group delete billing

    A group can be deleted once it has no members. The records that it has read are not affected.
    """
    existing = _existing(session, names) if if_exists else list(dict.fromkeys(names))
    session.groups.check_inactive(existing)
    if existing:
        what = (
            existing[0] if len(existing) == 1 else f"{count(len(existing), 'group')} ({', '.join(existing)})"
        )
        question = f"Delete {what} and the offsets committed there? Its consumers would start anew"
        confirm(question, action=f"to delete {what}", yes=yes)
    session.groups.delete(existing)
    session.show({"deleted": existing}, f"deleted {', '.join(existing) or 'nothing'}")


def _existing(session: Session, names: Sequence[str]) -> list[str]:
    found = []
    for name in dict.fromkeys(names):
        try:
            session.groups.check_inactive([name])
        except NoSuchGroup:
            continue
        found.append(name)
    return found


# -- tables, for a terminal of 80 columns ----------------------------------------------------------


def draw_groups(groups: Sequence[GroupSummary], *, filtered: bool) -> Drawable:
    if not groups:
        return "no group matches" if filtered else "there are no groups"
    return table(
        ["group", "state", "type", "members"],
        [(each.name, each.state, each.type, each.members) for each in groups],
    )


def draw_group(found: Group) -> Drawable:
    """Return a row for each partition and for each idle member, and the total lag."""
    columns = ["topic", "partition", "committed", "log end", "lag", "member", "client id", "host"]
    rows = _rows(found)
    if not found.members:
        columns, rows = columns[:5], [row[:5] for row in rows]
    parts: list[Drawable] = [_head(found)]
    if rows:
        parts.append(table(columns, rows))
    parts.append("\n".join(_totals(found)))
    return together(parts)


def _rows(found: Group) -> list[Sequence[object]]:
    shown = short_names(found.members)
    by_id = {member.member_id: member for member in found.members}
    partitions = [
        [
            *(each.topic, each.partition, each.committed, each.log_end, each.lag),
            *_who(by_id.get(each.member_id or ""), shown),
        ]
        for each in found.partitions
    ]
    idle = [member for member in found.members if not member.assignment]
    return [
        *grouped(partitions),
        *([_no_partition(found), *[None] * 4, *_who(member, shown)] for member in idle),
    ]


def draw_members(found: Group) -> Drawable:
    """Return a row for each member with its assignment."""
    shown = short_names(found.members)
    rows = [
        (*_who(member, shown), member.partitions, assignment(member) or _no_partition(found))
        for member in found.members
    ]
    parts: list[Drawable] = [_head(found)]
    if rows:
        parts.append(table(["member", "client id", "host", "partitions", "assignment"], rows))
    if sentence := idle_sentence(found):
        parts.append(sentence)
    return together(parts)


def short_names(members: Iterable[Member]) -> dict[str, str]:
    """Return a name for each member: its instance id, or as much of its member id as is distinct.

    The client id in front of a member id is left out: all members may share it.
    """
    tails = {member.member_id: member.member_id.removeprefix(f"{member.client_id}-") for member in members}
    length = _SHORTEST
    while len({tail[:length] for tail in tails.values()}) < len(set(tails.values())):
        length += 1
    return {member.member_id: member.instance_id or tails[member.member_id][:length] for member in members}


def assignment(member: Member) -> str:
    """Return `orders:0-2,5 payments:1`."""
    return " ".join(f"{each.topic}:{spans(each.partitions)}" for each in member.assignment)


def spans(numbers: Sequence[int]) -> str:
    """Return `0-2,5` for 0, 1, 2, 5."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def idle_sentence(found: Group) -> str | None:
    """Return how many members have no partitions and why, or None if all have some."""
    idle, members = found.idle_members, len(found.members)
    if not idle:
        return None
    if found.state != "Stable":
        return "the group is rebalancing: its members get their partitions when it is stable"
    assigned = sum(member.partitions for member in found.members)
    if assigned == 0:
        why = "the topics that they subscribe to have no partitions"
    elif assigned < members:
        why = "there are more members than partitions"
    else:
        why = "the other members have all partitions"
    return f"{idle} of {count(members, 'member')} {'is' if idle == 1 else 'are'} idle: {why}"


def _no_partition(found: Group) -> str:
    return "(idle)" if found.state == "Stable" else UNKNOWN


def _who(member: Member | None, shown: dict[str, str]) -> list[object]:
    return [None] * 3 if member is None else [shown[member.member_id], member.client_id, member.host]


def _head(found: Group) -> str:
    members = count(len(found.members), "member") if found.members else "no members"
    assignor = f", assignor {found.assignor}" if found.assignor and found.members else ""
    where = f"coordinator {found.coordinator.id} at {found.coordinator.host}:{found.coordinator.port}"
    return f"{found.name}: {found.state}, {members}\ntype {found.type}{assignor}, {where}"


def _totals(found: Group) -> list[str]:
    new = sum(each.committed is None for each in found.partitions)
    beside = f", not counting {count(new, 'partition')} with nothing committed" if new else ""
    lag = f"total lag {found.total_lag:,}{beside}" if found.partitions else "nothing is committed"
    idle = idle_sentence(found)
    return [lag] if idle is None else [lag, idle]
