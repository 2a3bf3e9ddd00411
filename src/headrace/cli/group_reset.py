"""`headrace group reset-offsets`: a group reads again, or skips."""

import csv
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from headrace.cli import completing
from headrace.cli.formats import BadInput
from headrace.cli.session import UNKNOWN, Session, grouped, options, table, together
from headrace.cli.texts import count, duration_ms, time_ms
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

if TYPE_CHECKING:
    from rich.console import RenderableType

Scope = Mapping[str, Sequence[int]]


@click.command("reset-offsets")
@click.argument("name", shell_complete=completing.groups)
@click.option(
    "--topic",
    "topics",
    metavar="T[:0,1]",
    multiple=True,
    shell_complete=completing.topics,
    help="All of it, or some partitions.",
)
@click.option("--all-topics", is_flag=True, help="Every partition for which the group has committed.")
@click.option("--to-earliest", is_flag=True, help="Read all that is there again.")
@click.option("--to-latest", is_flag=True, help="Skip all that is there.")
@click.option("--to-offset", type=click.IntRange(0), metavar="N", help="This offset in every partition.")
@click.option("--shift-by", type=int, metavar="N", help="So many records on, or back if negative.")
@click.option("--to-datetime", metavar="TIME", help="The first record since 2026-01-31T12:00, or @MS.")
@click.option("--by-duration", metavar="PT1H", help="The first record of the last hour (P7D: week).")
@click.option("--to-current", is_flag=True, help="What is committed; the end where nothing is.")
@click.option(
    "--from-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Lines of topic,partition,offset.",
)
@click.option("--execute", is_flag=True, help="Do it. Without this nothing is changed.")
@click.option("--create", is_flag=True, help="If there is no such group, let it begin there.")
@options
@click.pass_obj
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
    """Move a group:  headrace group reset-offsets billing --all-topics --to-latest

    Shows where each partition would begin; with --execute it is done. The consumers of the group have to be
    stopped before. An offset outside the log becomes the nearest one inside.
    """
    target = _target(where)
    plan = session.groups.plan_reset(
        name, target, _scope(topics, target, all_topics=all_topics), may_be_new=create
    )
    if not plan:
        raise click.ClickException(f"group {name} has committed nothing: say which --topic")
    if execute:
        session.groups.reset(name, plan)
    result = {"group": name, "executed": execute, "partitions": plan}
    session.show(result, lambda: _draw(name, plan, execute=execute))


_TARGETS: Final[Mapping[str, Callable[[Any], Target]]] = {
    "to_earliest": lambda _: ToEarliest(),
    "to_latest": lambda _: ToLatest(),
    "to_offset": ToOffset,
    "shift_by": ShiftBy,
    "to_datetime": lambda text: ToTime(time_ms(text, "--to-datetime")),
    "by_duration": lambda text: ToTime(max(0, _now_ms() - duration_ms(text, "--by-duration"))),
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


def _now_ms() -> int:
    return int(time.time() * 1000)


def _scope(topics: Sequence[str], target: Target, *, all_topics: bool) -> Scope | None:
    """Partitions by topic, () for all; None for all that is committed."""
    if isinstance(target, ToEach):
        if topics or all_topics:
            raise click.UsageError("The file says which partitions: leave --topic and --all-topics out.")
        return _by_topic(target.offsets)
    if bool(topics) == all_topics:
        raise click.UsageError("Give --topic or --all-topics.")
    return None if all_topics else parse_topics(topics)


def parse_topics(texts: Iterable[str]) -> Scope:
    """`orders` and `orders:0,1` by topic; () is all of it."""
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
    """What lines of `topic,partition,offset` say, as kafka-consumer-groups exports them."""
    offsets = {}
    for number, row in enumerate(csv.reader(lines), start=1):
        if not row:
            continue
        try:
            topic, partition, offset = row
            place, wanted = TopicPartition(topic.strip(), int(partition)), int(offset)
        except ValueError:
            raise BadInput(f"line {number}: expected topic,partition,offset such as orders,0,1200") from None
        if place in offsets:
            raise BadInput(f"line {number}: {place} is there twice")
        offsets[place] = wanted
    if not offsets:
        raise BadInput("the file is empty: expected lines of topic,partition,offset")
    return offsets


def _by_topic(places: Iterable[TopicPartition]) -> Scope:
    scope: dict[str, list[int]] = {}
    for place in places:
        scope.setdefault(place.topic, []).append(place.partition)
    return scope


def _draw(name: str, plan: Sequence[Reset], *, execute: bool) -> "RenderableType":
    noted = any(each.note for each in plan)
    rows = [
        (
            each.topic,
            each.partition,
            UNKNOWN if each.old is None else each.old,
            each.new,
            *((each.note,) if noted else ()),
        )
        for each in plan
    ]
    partitions = f"{count(len(plan), 'partition')} of {name}"
    dry = f"a dry run, nothing was changed: --execute resets {partitions}"
    done = f"reset {partitions}" if execute else dry
    columns = ["topic", "partition", "old", "new", *(["note"] if noted else [])]
    return together([table(columns, grouped(rows)), done])
