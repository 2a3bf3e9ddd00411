"""`headrace txn`: list, describe, describe-producers."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click

from headrace.cli import completion
from headrace.cli.group import spans
from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import Drawable, table, together
from headrace.cli.support.session import Session, duration_ms, options
from headrace.client.transactions import transaction
from headrace.protocol.ids import TopicPartition


@click.group(cls=LazyGroup)
def txn() -> None:
    """List and describe transactions, and the producers of a partition."""


@txn.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice(transaction.STATES, case_sensitive=False),
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
    found = session.transactions.list_transactions(
        states=states, producer_ids=producer_ids, min_duration_ms=min_duration_ms, pattern=pattern
    )
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
    found = session.transactions.describe_transactions(ids)
    session.show(found, lambda: together([draw_transaction(each) for each in found]))


@txn.command("describe-producers")
@click.argument("topic", shell_complete=completion.topics)
@click.option(
    "--partition", "index", type=click.IntRange(0), metavar="N", required=True, help="The partition."
)
@options
def describe_producers(session: Session, topic: str, index: int) -> None:
    """Show a partition's producers:  headrace txn describe-producers orders --partition 0

    These are the idempotent and transactional producers whose state the leader keeps. A start offset is that
    of an open transaction, at which consumers with isolation.level=read_committed wait.
    """
    found = session.transactions.describe_producers(topic, index)
    session.show(found, lambda: draw_producers(TopicPartition(topic, index), found))


def draw_transactions(found: Sequence[transaction.TransactionSummary], *, filtered: bool) -> Drawable:
    if not found:
        return "no transaction matches" if filtered else "there are no transactions"
    return table(
        ["transactional id", "state", "producer id", "coordinator"],
        [(each.transactional_id, each.state, each.producer_id, each.coordinator) for each in found],
    )


def draw_transaction(found: transaction.Transaction) -> Drawable:
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
    rows = [(topic.topic, spans(topic.partitions)) for topic in found.topics]
    return together([head, table(["topic", "partitions"], rows)])


def draw_producers(partition: TopicPartition, found: Sequence[transaction.PartitionProducer]) -> Drawable:
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


def duration(milliseconds: int) -> str:
    """Return `0:15:00`, `1 day, 2:00:00`."""
    return str(timedelta(seconds=milliseconds // 1000))


def moment(milliseconds: int) -> str:
    """Return a timestamp in UTC; the number if no calendar has it, as a client may have sent anything."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
