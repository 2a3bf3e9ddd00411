"""`headrace topic`: create, list, describe, offsets, alter, delete-records, delete."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from headrace.cli import completing
from headrace.cli.asking import ask, internal_option, refuse_internal
from headrace.cli.lazy import Lazy, LazyGroup
from headrace.cli.session import Session, options, table
from headrace.cli.texts import count, pairs
from headrace.client.admin.topics import Topic, TopicSummary
from headrace.client.errors import NoSuchTopic, TopicExists

if TYPE_CHECKING:
    from rich.console import RenderableType

_config = click.option(
    "--config",
    "configs",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=completing.settings,
    help="A setting of the topic; repeat for more.",
)
_existing = click.argument("name", shell_complete=completing.topics)


LATER: Final = {
    "delete-records": Lazy("headrace.cli.topic_offsets", "delete_records", "Delete old records."),
    "offsets": Lazy(
        "headrace.cli.topic_offsets", "offsets", "Show where partitions end, or what offset a time is."
    ),
}
"""What takes longer to import than most who name a topic want to wait."""


@click.group(cls=LazyGroup, table=LATER)
def topic() -> None:
    """Create, list, describe, alter and delete topics."""


@topic.command()
@click.argument("name")
@click.option("--partitions", type=click.IntRange(1), help="Else as the brokers are configured.")
@click.option("--replicas", type=click.IntRange(1), help="Else as the brokers are configured.")
@_config
@click.option("--if-not-exists", is_flag=True, help="Be content if it is there.")
@options
@click.pass_obj
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
@click.pass_obj
def list_(session: Session) -> None:
    """List the topics:  headrace topic list"""
    topics = session.admin.list_topics()
    session.show(topics, lambda: _list(topics))


@topic.command()
@_existing
@options
@click.pass_obj
def describe(session: Session, name: str) -> None:
    """Show a topic's partitions and settings:  headrace topic describe orders"""
    found = session.admin.describe_topic(name)
    session.show(found, lambda: _describe(found))


@topic.command()
@_existing
@click.option("--partitions", type=click.IntRange(1), help="How many it shall have; only ever more.")
@_config
@click.option(
    "--unset",
    "unsets",
    metavar="NAME",
    multiple=True,
    shell_complete=completing.settings,
    help="Back to the broker's; repeat for more.",
)
@options
@click.pass_obj
def alter(
    session: Session, name: str, partitions: int | None, configs: Sequence[str], unsets: Sequence[str]
) -> None:
    """Change a topic:  headrace topic alter orders --partitions 12 --config retention.ms=3600000"""
    sets = pairs(configs, "--config")
    if partitions is None and not sets and not unsets:
        raise click.UsageError("Nothing to change: give --partitions, --config or --unset.")
    if sets or unsets:
        session.admin.alter_topic_configs(name, sets=sets, unsets=unsets)
    if partitions is not None:
        session.admin.add_partitions(name, partitions)
    altered = session.admin.describe_topic(name)
    session.show(altered, f"altered {_in_short(altered)}")


@topic.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=completing.topics)
@click.option("--yes", is_flag=True, help="Do not ask, on a terminal either.")
@click.option("--if-exists", is_flag=True, help="Be content if it is not there.")
@internal_option
@options
@click.pass_obj
def delete(session: Session, names: Sequence[str], *, yes: bool, if_exists: bool, internal: bool) -> None:
    """Delete topics and all that is in them:  headrace topic delete orders"""
    found = list(_there(session, names, if_exists=if_exists))
    for each in found:
        refuse_internal(each.name, marked=each.internal, meant=internal)
    wanted = [each.name for each in found]
    if wanted and not yes and sys.stdin.isatty():  # scripts say what they mean, as to Kafka's own tool
        _ask(wanted)
    for name in wanted:
        session.admin.delete_topic(name)
    session.show({"deleted": wanted}, f"deleted {', '.join(wanted) or 'nothing'}")


def _there(session: Session, names: Sequence[str], *, if_exists: bool) -> Iterator[Topic]:
    for name in dict.fromkeys(names):
        try:
            found = session.admin.describe_topic(name)
        except NoSuchTopic:
            if not if_exists:
                raise
        else:
            yield found


def _ask(names: Sequence[str]) -> None:
    """Return if the deletion is wanted."""
    what = names[0] if len(names) == 1 else f"{count(len(names), 'topic')} ({', '.join(names)})"
    ask(f"Delete {what} and all records there", allowed=f"to delete {what}")


def _in_short(found: Topic) -> str:
    settings = "".join(f", {name}={value}" for name, value in found.configs.items())
    partitions, replicas = count(len(found.partitions), "partition"), count(found.replicas, "replica")
    return f"{found.name}: {partitions}, {replicas} each{settings}"


def _list(topics: Sequence[TopicSummary]) -> "RenderableType":
    if not topics:
        return "there are no topics"
    return table(["topic", "partitions", "replicas"], [(t.name, t.partitions, t.replicas) for t in topics])


def _describe(found: Topic) -> "RenderableType":
    return table(
        ["partition", "leader", "replicas", "in sync", "start offset", "end offset"],
        [
            (part.index, part.leader, part.replicas, part.in_sync, part.start_offset, part.next_offset)
            for part in found.partitions
        ],
        title=f"{_in_short(found)}  (id {found.topic_id})",
    )
