"""`headrace group reset-offsets` and `delete-offsets`: change what a group has committed."""

import csv
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import click

from headrace.cli import completion
from headrace.cli.formats import BadInput
from headrace.cli.output import Drawable, count, grouped, table, together
from headrace.cli.session import Session, confirm, duration_ms, existing_file, options, time_ms, yes_option
from headrace.client.errors import ClientError
from headrace.client.groups.reset import (
    Reset,
    ShiftBy,
    Target,
    ToCurrent,
    ToEach,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
)
from headrace.protocol.ids import TopicPartition

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


@click.command("reset-offsets")
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
    target = _target(where)
    scope = _scope(topics, target, all_topics=all_topics)
    plan = session.groups.plan_reset(name, target, scope, may_be_new=create)
    if not plan:
        raise click.ClickException(f"group {name} has committed nothing: give a --topic")
    if execute:
        session.groups.reset(name, plan)
    result = {"group": name, "executed": execute, "partitions": plan}
    session.show(result, lambda: _draw(name, plan, execute=execute))


@click.command("delete-offsets")
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
        TopicPartition(each.topic, each.partition)
        for each in group.partitions
        if each.committed is not None
        and each.topic in scope
        and (not scope[each.topic] or each.partition in scope[each.topic])
    ]
    if not partitions:
        raise ClientError(f"group {name} has committed nothing for {', '.join(topics)}")
    what = f"the offsets that {name} has committed for {count(len(partitions), 'partition')}"
    confirm(f"Delete {what}?", action=f"to delete {what}", declined="nothing was changed", yes=yes)
    session.groups.delete_offsets(name, partitions)
    deleted = [{"topic": each.topic, "partition": each.partition} for each in partitions]
    said = f"deleted the offsets of {name} for {', '.join(map(str, partitions))}"
    session.show({"group": name, "deleted": deleted}, said)


_TARGETS: Final[Mapping[str, Callable[[Any], Target]]] = {
    "to_earliest": lambda _: ToEarliest(),
    "to_latest": lambda _: ToLatest(),
    "to_offset": ToOffset,
    "shift_by": ShiftBy,
    "to_datetime": lambda text: ToTime(time_ms(text, "--to-datetime")),
    "by_duration": lambda text: ToTime(max(0, int(time.time() * 1000) - duration_ms(text, "--by-duration"))),
    "to_current": lambda _: ToCurrent(),
    "from_file": lambda path: ToEach(read_offsets(path.read_text("utf-8").splitlines())),
}


def _target(where: Mapping[str, Any]) -> Target:
    given = {option: value for option, value in where.items() if value is not None and value is not False}
    if len(given) != 1:
        every = ", ".join("--" + option.replace("_", "-") for option in _TARGETS)
        raise click.UsageError(f"Give one of {every}.")
    ((option, value),) = given.items()
    return _TARGETS[option](value)


def _scope(topics: Sequence[str], target: Target, *, all_topics: bool) -> Scope | None:
    """Return the partitions to reset; None stands for all that are committed."""
    if isinstance(target, ToEach):
        if topics or all_topics:
            raise click.UsageError("The file names the partitions: leave out --topic and --all-topics.")
        scope: dict[str, list[int]] = {}
        for each in target.offsets:
            scope.setdefault(each.topic, []).append(each.partition)
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


def _draw(name: str, plan: Sequence[Reset], *, execute: bool) -> Drawable:
    columns = ["topic", "partition", "old", "new"]
    rows = [[each.topic, each.partition, each.old, each.new] for each in plan]
    if any(each.note for each in plan):
        columns.append("note")
        rows = [[*row, each.note or ""] for row, each in zip(rows, plan, strict=True)]
    partitions = f"{count(len(plan), 'partition')} of {name}"
    dry = f"a dry run, nothing was changed: --execute resets {partitions}"
    return together([table(columns, grouped(rows)), f"reset {partitions}" if execute else dry])
