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
from headrace.client.cluster.deletion import delete_records as delete_before
from headrace.client.cluster.reading import read_partitions
from headrace.client.errors import ClientError, NoSuchTopic, Unreachable
from headrace.client.wire.brokers import Brokers, raise_for
from headrace.client.wire.connection import Address, NoAnswer
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

END: Final = -1  # how the protocol says where a partition ends
_KNOWN: Final = {"latest": END, "earliest": -2, "max-timestamp": -3}  # instead of a time
_CLIENT: Final = -1  # and no broker, asks

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
        found = _offsets(brokers, _led(brokers, name, indexes), name, which)
    rows = [{"topic": name, "partition": index, "offset": offset} for index, offset in found.items()]
    drawn = [(index, UNKNOWN if offset is None else offset) for index, offset in found.items()]
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
        marked = any(each.name == name and each.is_internal for each in brokers.metadata().topics)
        refuse_internal(name, marked=marked, meant=internal)
        if file is not None:
            wanted = read_offsets(file.read_text("utf-8", errors="replace"), name)
        else:
            wanted = dict.fromkeys(_led(brokers, name, indexes), END if before is None else before)
        if not yes:
            _ask(name, wanted)
        begins = delete_before(brokers, name, wanted)
    result = [{"topic": name, "partition": index, "start_offset": begins[index]} for index in sorted(begins)]
    session.show(result, lambda: table(["partition", "begins at"], sorted(begins.items())))


def _led(brokers: Brokers, topic: str, indexes: Sequence[int]) -> dict[int, Address | None]:
    """Where the leader of each partition is, or of these; ClientError if one is not there."""
    found = brokers.metadata()
    addresses = {each.node_id: Address(each.host, each.port) for each in found.brokers}
    led = {
        each.partition: None if each.leader is None else addresses.get(each.leader)
        for each in read_partitions(found)
        if each.topic == topic
    }
    if not led:
        raise NoSuchTopic(topic)
    for index in indexes:
        if index not in led:
            raise ClientError(f"{topic} has no partition {index}, only 0 to {max(led)}")
    return {index: led[index] for index in sorted(set(indexes) or led)}


def _offsets(
    brokers: Brokers, led: Mapping[int, Address | None], topic: str, which: int
) -> dict[int, int | None]:
    """The offset that `which` stands for in each partition; None where there is none, or no leader."""
    found: dict[int, int | None] = dict.fromkeys(led)
    for address in {each for each in led.values() if each is not None}:
        asked = [
            ListOffsetsPartition(partition_index=index, timestamp=which)
            for index, leader in led.items()
            if leader == address
        ]
        request = ListOffsetsRequest(
            replica_id=_CLIENT, topics=[ListOffsetsTopic(name=topic, partitions=asked)]
        )
        try:
            answer: ListOffsetsResponse = brokers.at(address, request)
        except NoAnswer as error:
            raise Unreachable(str(error)) from error
        for each in answer.topics[0].partitions:
            raise_for(each.error_code, None, str(TopicPartition(topic, each.partition_index)))
            found[each.partition_index] = each.offset if each.offset >= 0 else None
    return found


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
