"""`headrace group`: list, describe, delete, reset-offsets, delete-offsets."""

import csv
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import click

from headrace.cli import completion
from headrace.cli.support.formats import BadInput
from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import UNKNOWN, Drawable, count, grouped, table, together
from headrace.cli.support.session import (
    Session,
    confirm,
    duration_ms,
    existing_file,
    if_exists_option,
    options,
    time_ms,
    yes_option,
)
from headrace.client.errors import ClientError, NoSuchGroup
from headrace.client.groups import reset
from headrace.client.groups.group import STATES, TYPES, Group, GroupSummary, Member
from headrace.protocol.ids import TopicPartition

_SHORTEST: Final = 8  # characters of a member id

_names = click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion.groups)


@click.group(cls=LazyGroup)
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
    existing = list(dict.fromkeys(names))
    for name in tuple(existing) if if_exists else ():
        try:
            session.groups.check_inactive([name])
        except NoSuchGroup:
            existing.remove(name)
    session.groups.check_inactive(existing)
    if existing:
        what = ", ".join(existing)
        what = what if len(existing) == 1 else f"{count(len(existing), 'group')} ({what})"
        question = f"Delete {what} and the offsets committed there? Its consumers would start anew"
        confirm(question, action=f"to delete {what}", yes=yes)
    session.groups.delete(existing)
    session.show({"deleted": existing}, f"deleted {', '.join(existing) or 'nothing'}")


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
    shown = short_names(found.members)
    by_id = {member.member_id: member for member in found.members}
    rows: list[Sequence[object]] = [
        [
            *(partition.topic, partition.partition, partition.committed, partition.log_end, partition.lag),
            *_who(by_id.get(partition.member_id or ""), shown),
        ]
        for partition in found.partitions
    ]
    idle = [member for member in found.members if not member.assignment]
    rows = [*grouped(rows), *([_no_partition(found), *[None] * 4, *_who(member, shown)] for member in idle)]
    columns = ["topic", "partition", "committed", "log end", "lag", "member", "client id", "host"]
    if not found.members:
        columns, rows = columns[:5], [row[:5] for row in rows]
    parts: list[Drawable] = [_head(found)]
    if rows:
        parts.append(table(columns, rows))
    new = sum(partition.committed is None for partition in found.partitions)
    beside = f", not counting {count(new, 'partition')} with nothing committed" if new else ""
    lag = f"total lag {found.total_lag:,}{beside}" if found.partitions else "nothing is committed"
    return together([*parts, "\n".join(filter(None, [lag, idle_sentence(found)]))])


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


# -- committed offsets -----------------------------------------------------------------------------

Scope = Mapping[str, Sequence[int]]
"""Partitions by topic; () stands for all partitions of a topic."""

_name = click.argument("name", shell_complete=completion.groups)
_topics = partial(
    click.option,
    "--topic",
    "topics",
    metavar="T[:0,1]",
    multiple=True,
    shell_complete=completion.topics,
    help="A topic, or some of its partitions; repeatable.",
)


@group.command("reset-offsets")
@_name
@_topics()
@click.option("--all-topics", is_flag=True, help="Every partition for which the group has committed.")
@click.option("--to-earliest", is_flag=True, help="Read all records again.")
@click.option("--to-latest", is_flag=True, help="Skip all records.")
@click.option("--to-offset", type=click.IntRange(0), metavar="N", help="This offset in every partition.")
@click.option("--shift-by", type=int, metavar="N", help="N records forward, or back if negative.")
@click.option("--to-datetime", metavar="TIME", help="The first record since 2026-01-31T12:00, or @MS.")
@click.option("--by-duration", metavar="PT1H", help="The first record of the last hour (P7D: week).")
@click.option("--to-current", is_flag=True, help="The committed offset; the log end if there is none.")
@click.option("--from-file", type=existing_file, help="Lines of topic,partition,offset.")
@click.option("--execute", is_flag=True, help="Apply the change. Without this nothing is changed.")
@click.option("--create", is_flag=True, help="Create the group if it does not exist.")
@options
def reset_offsets(
    session: Session,
    /,
    name: str,
    *,
    topics: Sequence[str],
    all_topics: bool,
    execute: bool,
    create: bool,
    **where: Any,
) -> None:
    """Change committed offsets:  headrace group reset-offsets billing --all-topics --to-latest

    Shows the new offset of each partition; --execute commits them. The consumers of the group have to be
    stopped before. An offset outside the log becomes the nearest one inside.
    """
    given = {option: value for option, value in where.items() if value is not None and value is not False}
    if len(given) != 1:
        every = ", ".join("--" + option.replace("_", "-") for option in _TARGETS)
        raise click.UsageError(f"Give one of {every}.")
    ((option, value),) = given.items()
    target = _TARGETS[option](value)
    scope = _scope(topics, target, all_topics=all_topics)
    plan = session.groups.plan_reset(name, target, scope, may_be_new=create)
    if not plan:
        raise click.ClickException(f"group {name} has committed nothing: give a --topic")
    if execute:
        session.groups.reset(name, plan)
    result = {"group": name, "executed": execute, "partitions": plan}
    session.show(result, lambda: _draw(name, plan, execute=execute))


@group.command("delete-offsets")
@_name
@_topics(required=True)
@yes_option
@options
def delete_offsets(session: Session, name: str, topics: Sequence[str], *, yes: bool) -> None:
    """Delete committed offsets:  headrace group delete-offsets billing --topic orders

    Refused for topics that members of the group are subscribed to. The next consumer of these partitions
    starts as if the group was new.
    """
    scope = parse_topics(topics)
    (group,) = session.groups.describe([name])
    partitions = [
        TopicPartition(partition.topic, partition.partition)
        for partition in group.partitions
        if partition.committed is not None
        and partition.topic in scope
        and (not scope[partition.topic] or partition.partition in scope[partition.topic])
    ]
    if not partitions:
        raise ClientError(f"group {name} has committed nothing for {', '.join(topics)}")
    what = f"the offsets that {name} has committed for {count(len(partitions), 'partition')}"
    confirm(f"Delete {what}?", action=f"to delete {what}", declined="nothing was changed", yes=yes)
    session.groups.delete_offsets(name, partitions)
    deleted = [{"topic": partition.topic, "partition": partition.partition} for partition in partitions]
    said = f"deleted the offsets of {name} for {', '.join(map(str, partitions))}"
    session.show({"group": name, "deleted": deleted}, said)


_TARGETS: Final[Mapping[str, Callable[[Any], reset.Target]]] = {
    "to_earliest": lambda _: reset.ToEarliest(),
    "to_latest": lambda _: reset.ToLatest(),
    "to_offset": reset.ToOffset,
    "shift_by": reset.ShiftBy,
    "to_datetime": lambda text: reset.ToTime(time_ms(text, "--to-datetime")),
    "by_duration": lambda text: reset.ToTime(
        max(0, int(time.time() * 1000) - duration_ms(text, "--by-duration"))
    ),
    "to_current": lambda _: reset.ToCurrent(),
    "from_file": lambda path: reset.ToEach(read_offsets(path.read_text("utf-8").splitlines())),
}


def _scope(topics: Sequence[str], target: reset.Target, *, all_topics: bool) -> Scope | None:
    """Return the partitions to reset; None stands for all that are committed."""
    if isinstance(target, reset.ToEach):
        if topics or all_topics:
            raise click.UsageError("The file names the partitions: leave out --topic and --all-topics.")
        scope: dict[str, list[int]] = {}
        for offset in target.offsets:
            scope.setdefault(offset.topic, []).append(offset.partition)
        return scope
    if bool(topics) == all_topics:
        raise click.UsageError("Give --topic or --all-topics.")
    return None if all_topics else parse_topics(topics)


def parse_topics(texts: Iterable[str]) -> Scope:
    """Return the scope of `orders` and `orders:0,1`; a topic that is given whole counts as a whole."""
    scope: dict[str, list[int]] = {}
    whole = set()
    for text in texts:
        topic, colon, numbers = text.partition(":")
        partitions = numbers.split(",") if colon else []
        if not topic or not all(number.isdecimal() for number in partitions):
            raise click.UsageError(
                f"--topic {text}: expected a topic, or a topic and partitions as orders:0,1."
            )
        if not colon:
            whole.add(topic)
        scope.setdefault(topic, []).extend(map(int, partitions))
    return {topic: () if topic in whole else partitions for topic, partitions in scope.items()}


def read_offsets(lines: Iterable[str]) -> dict[TopicPartition, int]:
    """Return the offsets of `topic,partition,offset` lines, as kafka-consumer-groups exports them."""
    offsets: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(lines), start=1):
        if not row:
            continue
        try:
            topic, index, offset = row
            partition, next_offset = TopicPartition(topic.strip(), int(index)), int(offset)
        except ValueError:
            raise BadInput(f"line {number}: expected topic,partition,offset such as orders,0,1200") from None
        if partition in offsets:
            raise BadInput(f"line {number}: {partition} appears twice")
        offsets[partition] = next_offset
    if not offsets:
        raise BadInput("the file is empty: expected lines of topic,partition,offset")
    return offsets


def _draw(name: str, plan: Sequence[reset.Reset], *, execute: bool) -> Drawable:
    columns = ["topic", "partition", "old", "new"]
    rows = [[each.topic, each.partition, each.old, each.new] for each in plan]
    if any(each.note for each in plan):
        columns.append("note")
        rows = [[*row, each.note or ""] for row, each in zip(rows, plan, strict=True)]
    partitions = f"{count(len(plan), 'partition')} of {name}"
    dry = f"a dry run, nothing was changed: --execute resets {partitions}"
    return together([table(columns, grouped(rows)), f"reset {partitions}" if execute else dry])
