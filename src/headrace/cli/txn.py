"""`headrace txn`: list, describe, describe-producers, find-hanging, abort."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click

from headrace.cli import completion
from headrace.cli.group import spans
from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import Drawable, count, table, together
from headrace.cli.support.session import Session, confirm, duration_ms, options, yes_option
from headrace.client.errors import ClientError
from headrace.client.transactions.transaction import (
    STATES,
    OpenTransaction,
    PartitionProducer,
    Transaction,
    TransactionSummary,
)
from headrace.protocol.ids import TopicPartition

_topic = click.argument("topic", shell_complete=completion.topics)
_partition = click.option(
    "--partition", "index", type=click.IntRange(0), metavar="N", required=True, help="The partition."
)


@click.group(cls=LazyGroup)
def txn() -> None:
    """List and describe transactions; find and abort hanging ones."""


@txn.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="Only transactions in this state; repeatable.",
)
@click.option(
    "--producer-id",
    "producer_ids",
    type=click.IntRange(0),
    metavar="N",
    multiple=True,
    help="Only of this producer id; repeatable.",
)
@click.option("--open-for", metavar="PT10M", help="Only those open for longer than ten minutes (P1D: a day).")
@click.option("--pattern", metavar="REGEX", help="Only transactional ids that match RE2's REGEX as a whole.")
@options
def list_(
    session: Session,
    states: Sequence[str],
    producer_ids: Sequence[int],
    open_for: str | None,
    pattern: str | None,
) -> None:
    """List the transactions:  headrace txn list --state ongoing

    Every transactional id has one line, with the state of its latest transaction.
    """
    min_duration_ms = None if open_for is None else duration_ms(open_for, "--open-for")
    found = session.transactions.list_transactions(states, producer_ids, min_duration_ms, pattern)
    filtered = bool(states or producer_ids or open_for or pattern)
    session.show(found, lambda: draw_transactions(found, filtered=filtered))


@txn.command()
@click.argument(
    "ids", metavar="TRANSACTIONAL_ID...", nargs=-1, required=True, shell_complete=completion.transactional_ids
)
@options
def describe(session: Session, ids: Sequence[str]) -> None:
    """Show the state, the producer and the partitions:  headrace txn describe billing-1

    The partitions are those in which the transaction has no marker yet.
    """
    found = session.transactions.describe(ids)
    session.show(found, lambda: together([draw_transaction(each) for each in found]))


@txn.command("describe-producers")
@_topic
@_partition
@options
def describe_producers(session: Session, topic: str, index: int) -> None:
    """Show a partition's producers:  headrace txn describe-producers orders --partition 0

    These are the idempotent and transactional producers whose state the leader keeps. A start offset is that
    of an open transaction, at which consumers with isolation.level=read_committed wait.
    """
    found = session.transactions.describe_producers(topic, index)
    session.show(found, lambda: draw_producers(TopicPartition(topic, index), found))


@txn.command("find-hanging")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    shell_complete=completion.topics,
    help="Only partitions of this topic; repeatable. Default: all topics.",
)
@click.option(
    "--broker",
    "broker_id",
    type=click.IntRange(0),
    metavar="ID",
    shell_complete=completion.brokers,
    help="Only partitions that this broker leads.",
)
@click.option(
    "--open-for",
    metavar="PT20M",
    help="Only transactions open for so long. Default: transaction.max.timeout.ms and five minutes.",
)
@options
def find_hanging(
    session: Session, topics: Sequence[str], broker_id: int | None, open_for: str | None
) -> None:
    """Find transactions that no coordinator will end:  headrace txn find-hanging --topic orders

    A transaction hangs if a partition has it open and its coordinator does not have this partition in an open
    transaction. Consumers with isolation.level=read_committed wait at its start offset until it is aborted.
    """
    found = session.transactions.find_hanging(
        topics or None,
        broker_id=broker_id,
        min_duration_ms=None if open_for is None else duration_ms(open_for, "--open-for"),
    )
    session.show(found, lambda: draw_hanging(found))


@txn.command()
@_topic
@_partition
@click.option(
    "--start-offset", type=click.IntRange(0), metavar="N", help="The first offset of the transaction."
)
@click.option("--producer-id", type=click.IntRange(0), metavar="N", help="The producer of the transaction.")
@click.option("--force", is_flag=True, help="Abort it even if its coordinator would end it.")
@yes_option
@options
def abort(
    session: Session,
    topic: str,
    index: int,
    start_offset: int | None,
    producer_id: int | None,
    *,
    force: bool,
    yes: bool,
) -> None:
    """Abort a hanging transaction:  headrace txn abort orders --partition 0 --start-offset 1200

    Writes an abort marker into this partition only: consumers with isolation.level=read_committed skip the
    records of the transaction and read on. The coordinator is not informed. A transaction that is not hanging
    is refused: its producer could commit it later, without the records in this partition.
    """
    if (start_offset is None) == (producer_id is None):
        raise click.UsageError("Give --start-offset or --producer-id.")
    found = _chosen(session, topic, index, start_offset, producer_id)
    if not force and not session.transactions.unknown([found]):
        raise click.ClickException(
            f"{found.topic_partition}: the transaction of producer {found.producer_id} is not hanging: its "
            "coordinator ends it, at its timeout at the latest (--force aborts it in this partition)"
        )
    what = f"the transaction of producer {found.producer_id} from offset {found.start_offset} on"
    question = f"Abort {what} in {found.topic_partition}? Its records there will never be committed"
    confirm(question, action=f"to abort {what}", declined="nothing was aborted", yes=yes)
    # It may have ended since, and the producer may have begun another transaction with the same epoch.
    if _chosen(session, topic, index, start_offset, producer_id).key != found.key:
        raise ClientError(f"{found.topic_partition}: {what} has ended")
    session.transactions.abort(
        topic,
        index,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        coordinator_epoch=found.coordinator_epoch,
    )
    session.show({"aborted": found}, f"aborted {what} in {found.topic_partition}")


def _chosen(
    session: Session, topic: str, index: int, start_offset: int | None, producer_id: int | None
) -> OpenTransaction:
    """Return the open transaction with this offset or producer; ClientError if the partition has none."""
    found = session.transactions.open_transactions(topic, index)
    for each in found:
        if each.start_offset == start_offset or each.producer_id == producer_id:
            return each
    wanted = f"at offset {start_offset}" if producer_id is None else f"of producer {producer_id}"
    others = ", ".join(f"{each.start_offset} (producer {each.producer_id})" for each in found)
    beside = f", only at {others}" if others else ""
    raise ClientError(f"{topic}-{index} has no open transaction {wanted}{beside}")


# -- tables, for a terminal of 80 columns ----------------------------------------------------------


def draw_transactions(found: Sequence[TransactionSummary], *, filtered: bool) -> Drawable:
    if not found:
        return "no transaction matches" if filtered else "there are no transactions"
    return table(
        ["transactional id", "state", "producer id", "coordinator"],
        [(each.transactional_id, each.state, each.producer_id, each.coordinator) for each in found],
    )


def draw_transaction(found: Transaction) -> Drawable:
    """Return two lines about the transaction, and a row for each topic."""
    since = "" if found.duration_ms is None else f" for {duration(found.duration_ms)}"
    started = "" if found.start_ms is None else f", started {moment(found.start_ms)}"
    where = f"coordinator {found.coordinator.id} at {found.coordinator.host}:{found.coordinator.port}"
    head = (
        f"{found.transactional_id}: {found.state}{since}{started}\n"
        f"producer {found.producer_id}, epoch {found.producer_epoch}, "
        f"timeout {duration(found.timeout_ms)}, {where}"
    )
    if not found.topics:
        return head
    rows = [(each.topic, spans(each.partitions)) for each in found.topics]
    return together([head, table(["topic", "partitions"], rows)])


def draw_producers(partition: TopicPartition, found: Sequence[PartitionProducer]) -> Drawable:
    if not found:
        return f"{partition} has no idempotent or transactional producers"
    return table(
        ["producer id", "epoch", "last sequence", "last record", "coordinator epoch", "start offset"],
        [
            (
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                None if each.last_timestamp_ms is None else moment(each.last_timestamp_ms),
                each.coordinator_epoch,
                each.start_offset,
            )
            for each in found
        ],
    )


def draw_hanging(found: Sequence[OpenTransaction]) -> Drawable:
    """Return a row for each transaction, and the command that aborts the first one."""
    if not found:
        return "no transaction hangs"
    first = found[0]
    rows = [
        (
            each.topic,
            each.partition,
            each.start_offset,
            each.producer_id,
            each.producer_epoch,
            None if each.duration_ms is None else duration(each.duration_ms),
            each.transactional_id,
        )
        for each in found
    ]
    columns = ["topic", "partition", "start offset", "producer id", "epoch", "open for", "transactional id"]
    command = f"headrace txn abort {first.topic} --partition {first.partition}"
    verb = "hangs" if len(found) == 1 else "hang"
    advice = f"abort {'it' if len(found) == 1 else 'each'} with {command} --start-offset {first.start_offset}"
    return together([table(columns, rows), f"{count(len(found), 'transaction')} {verb}: {advice}"])


def duration(milliseconds: int) -> str:
    """Return `0:15:00`, `1 day, 2:00:00`."""
    return str(timedelta(seconds=milliseconds // 1000))


def moment(milliseconds: int) -> str:
    """Return a timestamp in UTC; the number if no calendar has it, as a client may have sent anything."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
