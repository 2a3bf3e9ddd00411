"""`headrace topic offsets` and `delete-records`: where partitions begin and end, and what is cut off."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from headrace.cli import completing
from headrace.cli.asking import ask, internal_option, refuse_internal
from headrace.cli.formats import BadInput
from headrace.cli.session import UNKNOWN, Session, options, table
from headrace.cli.texts import count, time_ms
from headrace.client.admin.topics import TopicAdmin
from headrace.client.wire.brokers import Brokers

END: Final = -1  # how the protocol says where a partition ends
_KNOWN: Final = {"latest": END, "earliest": -2, "max-timestamp": -3}  # instead of a time

_topic = click.argument("name", shell_complete=completing.topics)
_partitions = click.option(
    "--partition", "indexes", type=click.IntRange(0), multiple=True, help="Only this; repeat for more."
)


@click.command()
@_topic
@click.option(
    "--at",
    metavar="WHERE",
    default="latest",
    show_default=True,
    help="earliest; latest; max-timestamp: the newest record; a time, as 2026-01-31T12:00 or @MS: "
    "the first record since.",
)
@_partitions
@options
@click.pass_obj
def offsets(session: Session, name: str, at: str, indexes: Sequence[int]) -> None:
    """Show where partitions end, or what offset a time is:  headrace topic offsets orders --at earliest"""
    which = _KNOWN[at] if at in _KNOWN else time_ms(at, "--at")
    with Brokers(session.bootstrap) as brokers:
        topics = TopicAdmin(brokers)
        offsets_at = topics.offsets(topics.partitions_of(name, indexes), which)
    found = sorted((partition.partition, offset) for partition, offset in offsets_at.items())
    rows = [{"topic": name, "partition": index, "offset": offset} for index, offset in found]
    drawn = [(index, UNKNOWN if offset is None else offset) for index, offset in found]
    session.show(rows, lambda: table(["partition", "offset"], drawn))


@click.command("delete-records")
@_topic
@click.option("--before", type=click.IntRange(0), metavar="OFFSET", help="Delete what is before it.")
@click.option("--all", "everything", is_flag=True, help="Delete all that is there now.")
@click.option(
    "--from-file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Partitions and offsets, as kafka-delete-records takes them.",
)
@_partitions
@click.option("--yes", is_flag=True, help="Do not ask.")
@internal_option
@options
@click.pass_obj
def delete_records(
    session: Session,
    *,
    name: str,
    before: int | None,
    everything: bool,
    file: Path | None,
    indexes: Sequence[int],
    yes: bool,
    internal: bool,
) -> None:
    """Delete old records:  headrace topic delete-records orders --partition 0 --before 1200

    The partitions begin there from now on. What was deleted is gone.
    """
    if sum((before is not None, everything, file is not None)) != 1 or (indexes and file):
        raise click.UsageError("Give --before, --all or --from-file; --partition goes with the first two.")
    with Brokers(session.bootstrap) as brokers:
        topics = TopicAdmin(brokers)
        refuse_internal(name, marked=topics.topic(name).internal, meant=internal)
        if file is not None:
            wanted = read_offsets(file.read_text("utf-8", errors="replace"), name)
        else:
            offset = END if before is None else before
            wanted = {each.partition: offset for each in topics.partitions_of(name, indexes)}
        if not yes:
            _ask(name, wanted)
        begins = topics.delete_records(name, wanted)
    result = [{"topic": name, "partition": index, "start_offset": begins[index]} for index in sorted(begins)]
    session.show(result, lambda: table(["partition", "begins at"], sorted(begins.items())))


def read_offsets(text: str, topic: str) -> dict[int, int]:
    """What Kafka's file says of `topic`; BadInput if it is of others as well, or is no such file."""
    try:
        entries = [
            (str(each["topic"]), int(each["partition"]), int(each["offset"]))
            for each in json.loads(text)["partitions"]
        ]
    except (ValueError, KeyError, TypeError):
        raise BadInput(
            'the file: expected {"partitions": [{"topic": "orders", "partition": 0, "offset": 12}]}'
        ) from None
    for other, _, _ in entries:
        if other != topic:
            raise BadInput(f"the file is about {other}, too: only {topic} was named")
    return {partition: offset for _, partition, offset in entries}


def _ask(topic: str, wanted: Mapping[int, int]) -> None:
    """Return if the deletion is wanted."""
    what = f"records of {topic}, in {count(len(wanted), 'partition')}"
    ask(f"Delete {what}? They are gone for good", allowed=f"to delete {what}")
