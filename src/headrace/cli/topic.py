"""`headrace topic`: create, list, describe, alter, delete, offsets, delete-records."""

from collections.abc import Sequence
from typing import Final

import click

from headrace.cli import completion
from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import count, table
from headrace.cli.support.session import (
    Session,
    check_internal,
    confirm,
    if_exists_option,
    internal_option,
    options,
    pairs,
    partition_option,
    time_ms,
    yes_option,
)
from headrace.client.admin.topics import Topic
from headrace.client.errors import NoSuchTopic, TopicExists
from headrace.client.wire.requests import EARLIEST, LATEST

_TIMESTAMPS: Final = {"latest": LATEST, "earliest": EARLIEST, "max-timestamp": -3}  # of ListOffsets

_existing = click.argument("name", shell_complete=completion.topics)


@click.group(cls=LazyGroup)
def topic() -> None:
    """Create, list, describe, alter and delete topics."""


@topic.command()
@click.argument("name")
@click.option("--partitions", "-p", type=click.IntRange(1), help="Default: num.partitions of the brokers.")
@click.option(
    "--replicas",
    "--replication-factor",
    "-R",
    "replicas",
    type=click.IntRange(1),
    help="Default: default.replication.factor of the brokers.",
)
@click.option(
    "--config",
    "configs",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=completion.settings,
    help="A setting of the topic; repeatable.",
)
@click.option("--if-not-exists", is_flag=True, help="Do nothing if the topic exists.")
@options
def create(
    session: Session,
    name: str,
    partitions: int | None,
    replicas: int | None,
    configs: Sequence[str],
    *,
    if_not_exists: bool,
) -> None:
    """Create a topic:  headrace topic create orders --partitions 6 --config retention.ms=86400000"""
    settings = pairs(configs, "--config")
    try:
        made = session.admin.create_topic(name, partitions=partitions, replicas=replicas, configs=settings)
    except TopicExists:
        if not if_not_exists:
            raise
        session.show(session.admin.describe_topic(name), f"{name} exists already")
        return
    session.show(made, f"created {_in_short(made)}")


@topic.command("list")
@options
def list_(session: Session) -> None:
    """List the topics:  headrace topic list"""
    topics = session.admin.list_topics()
    rows = [(each.name, each.partitions, each.replicas) for each in topics]
    columns = ["topic", "partitions", "replicas"]
    session.show(topics, (lambda: table(columns, rows)) if topics else "there are no topics")


@topic.command()
@_existing
@options
def describe(session: Session, name: str) -> None:
    """Show the partitions and settings of a topic:  headrace topic describe orders"""
    described = session.admin.describe_topic(name)
    columns = ["partition", "leader", "replicas", "in sync", "start offset", "end offset"]
    rows = [
        (part.index, part.leader, part.replicas, part.in_sync, part.start_offset, part.next_offset)
        for part in described.partitions
    ]
    title = f"{_in_short(described)}  (id {described.topic_id})"
    session.show(described, lambda: table(columns, rows, title=title))


@topic.command()
@_existing
@click.option(
    "--partitions",
    type=click.IntRange(1),
    required=True,
    help="The new number of partitions: it can only grow.",
)
@options
def alter(session: Session, name: str, partitions: int) -> None:
    """Add partitions to a topic:  headrace topic alter orders --partitions 12

    `headrace config set topic orders retention.ms=3600000` changes its settings.
    """
    session.admin.add_partitions(name, partitions)
    altered = session.admin.describe_topic(name)
    session.show(altered, f"altered {_in_short(altered)}")


@topic.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion.topics)
@yes_option
@if_exists_option
@internal_option
@options
def delete(session: Session, names: Sequence[str], *, yes: bool, if_exists: bool, internal: bool) -> None:
    """Delete topics and all their records:  headrace topic delete orders"""
    deleted = []
    for name in dict.fromkeys(names):
        try:
            is_internal = session.admin.describe_topic(name).internal
        except NoSuchTopic:
            if not if_exists:
                raise
        else:
            check_internal(name, is_internal=is_internal, allowed=internal)
            deleted.append(name)
    if deleted:
        what = deleted[0] if len(deleted) == 1 else f"{count(len(deleted), 'topic')} ({', '.join(deleted)})"
        confirm(f"Delete {what} with all records?", action=f"to delete {what}", yes=yes)
    for name in deleted:
        session.admin.delete_topic(name)
    session.show({"deleted": deleted}, f"deleted {', '.join(deleted) or 'nothing'}")


@topic.command()
@_existing
@click.option(
    "--at",
    metavar="WHERE",
    default="latest",
    help="earliest; latest; max-timestamp: the newest record; a time, as 2026-01-31T12:00 or @MS: "
    "the first record since.",
)
@partition_option
@options
def offsets(session: Session, name: str, at: str, indexes: Sequence[int]) -> None:
    """Show the first or last offsets of partitions:  headrace topic offsets orders --at earliest

    Or the offset of the first record since a time:  headrace topic offsets orders --at 2026-01-31T12:00
    """
    timestamp = _TIMESTAMPS[at] if at in _TIMESTAMPS else time_ms(at, "--at")
    partitions = session.topics.partitions_of(name, indexes)
    at_time = session.topics.offsets(partitions, timestamp)
    rows = sorted((partition.partition, offset) for partition, offset in at_time.items())
    result = [{"topic": name, "partition": index, "offset": offset} for index, offset in rows]
    session.show(result, lambda: table(["partition", "offset"], rows))


@topic.command("delete-records")
@_existing
@click.option("--before", type=click.IntRange(0), metavar="OFFSET", help="Delete the records before it.")
@click.option("--all", "everything", is_flag=True, help="Delete all records that exist now.")
@partition_option
@yes_option
@internal_option
@options
def delete_records(
    session: Session,
    *,
    name: str,
    before: int | None,
    everything: bool,
    indexes: Sequence[int],
    yes: bool,
    internal: bool,
) -> None:
    """Delete old records:  headrace topic delete-records orders --partition 0 --before 1200

    The partitions start at these offsets from then on. Deleted records cannot be restored.
    """
    if (before is None) != everything:
        raise click.UsageError("Give --before or --all.")
    check_internal(name, is_internal=session.topics.topic(name).internal, allowed=internal)
    end = LATEST if before is None else before
    ends = {each.partition: end for each in session.topics.partitions_of(name, indexes)}
    what = f"records of {name}, in {count(len(ends), 'partition')}"
    confirm(f"Delete {what}? They cannot be restored", action=f"to delete {what}", yes=yes)
    starts = session.topics.delete_records(name, ends)
    result = [{"topic": name, "partition": index, "start_offset": starts[index]} for index in sorted(starts)]
    session.show(result, lambda: table(["partition", "start offset"], sorted(starts.items())))


def _in_short(topic: Topic) -> str:
    settings = "".join(f", {name}={value}" for name, value in topic.configs.items())
    partitions, replicas = count(len(topic.partitions), "partition"), count(topic.replicas, "replica")
    return f"{topic.name}: {partitions}, {replicas} each{settings}"
