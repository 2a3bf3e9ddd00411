"""`headrace cluster reassign` and `drain`: move partitions to other brokers."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from headrace.cli import completion
from headrace.cli.cluster import draw_moves, draw_reassignments
from headrace.cli.output import bar
from headrace.cli.session import Session, existing_file, options, partition_option
from headrace.client.cluster.moves import Move, plan_of, read_plan
from headrace.client.cluster.throttle import throttled
from headrace.client.errors import ClientError
from headrace.protocol.ids import TopicPartition

ROUNDS: Final = 10  # of a drain: topics may be created on the broker meanwhile


def _waiting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --wait, --timeout and --throttle."""
    for option in (
        click.option(
            "--throttle",
            type=click.IntRange(1),
            metavar="BYTES",
            help="How many bytes a second each broker may copy; lifted at the end of --wait.",
        ),
        click.option(
            "--timeout",
            "timeout_s",
            type=click.FloatRange(0),
            metavar="SECONDS",
            help="How long to --wait at most.",
        ),
        click.option("--wait", is_flag=True, help="Show progress, and return when all have moved."),
    ):
        command = option(command)
    return command


@click.command()
@click.option("--topic", metavar="NAME", shell_complete=completion.topics, help="The topic to move.")
@partition_option
@click.option(
    "--to",
    metavar="ID,...",
    shell_complete=completion.brokers,
    help="The brokers to move to, the preferred leader first.",
)
@click.option(
    "--from-file", "file", type=existing_file, help="A plan, as kafka-reassign-partitions takes it."
)
@click.option(
    "--cancel",
    is_flag=True,
    help="Cancel the reassignments of the topic or of the file, or all reassignments.",
)
@_waiting_options
@options
def reassign(
    session: Session,
    *,
    topic: str | None,
    indexes: Sequence[int],
    to: str | None,
    file: Path | None,
    timeout_s: float | None,
    throttle: int | None,
    cancel: bool,
    wait: bool,
) -> None:
    """Move partitions to other brokers:  headrace cluster reassign --topic orders --partition 0 --to 1,2,3

    Without --partition every partition of the topic moves, and the brokers take turns as preferred leader.
    The records are copied before the old replicas are deleted: clients notice nothing.
    """
    if cancel:
        if to is not None:
            raise click.UsageError("--cancel and --to contradict each other.")
        _cancel(session, topic, indexes, file)
        return
    moves = _moves(session, topic, indexes, to, file)
    with _throttled(session, moves, throttle, wait=wait):
        _show(session, moves, session.cluster.reassign(moves))
        if wait:
            _wait(session, moves, timeout_s)


@click.command()
@click.argument("broker_id", metavar="BROKER", type=click.IntRange(0), shell_complete=completion.brokers)
@click.option("--dry-run", is_flag=True, help="Show where the replicas would go, and move nothing.")
@_waiting_options
@options
def drain(
    session: Session,
    *,
    broker_id: int,
    timeout_s: float | None,
    throttle: int | None,
    dry_run: bool,
    wait: bool,
) -> None:
    """Move everything off a broker:  headrace cluster drain 3 --wait

    Its replicas are spread over the other brokers, in racks that have none of the same partition if possible.
    Then the broker can be stopped for good. With --dry-run --json this prints a plan for `headrace cluster
    reassign --from-file`.
    """
    moves = session.cluster.plan_drain(broker_id)
    empty = f"no replica is left on broker {broker_id}"
    if dry_run:
        _show(session, moves, session.cluster.check(moves), nothing=empty)
        return
    with _throttled(session, moves, throttle, wait=wait):
        _show(session, moves, session.cluster.reassign(moves) if moves else {}, nothing=empty)
        if wait and moves:
            _wait_until_empty(session, broker_id, moves, timeout_s)
            if not session.as_json:
                click.echo(empty)


def _moves(
    session: Session, topic: str | None, indexes: Sequence[int], to: str | None, file: Path | None
) -> list[Move]:
    """Return the moves of the file, or of the topic to the brokers `to`."""
    if file is not None and topic is None and to is None and not indexes:
        return read_plan(file.read_text("utf-8", errors="replace"), str(file))
    if file is not None or topic is None or to is None:
        raise click.UsageError("Give --topic and --to, or --from-file.")
    brokers = _ids(to)
    return [
        Move(topic=topic, partition=each.partition, replicas=_rotated(brokers, 0 if indexes else number))
        for number, each in enumerate(session.topics.partitions_of(topic, indexes))
    ]


def _rotated(brokers: Sequence[int], number: int) -> tuple[int, ...]:
    """Return the brokers from the one at `number` on: 1,2,3, then 2,3,1."""
    first = number % len(brokers)
    return (*brokers[first:], *brokers[:first])


def _ids(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise click.UsageError(f"--to {text}: expected broker ids such as 1,2,3.")
    return [int(part) for part in parts]


def _cancel(session: Session, topic: str | None, indexes: Sequence[int], file: Path | None) -> None:
    if indexes and topic is not None:
        partitions = session.topics.partitions_of(topic, indexes)
    else:
        moves = None if file is None else _moves(session, None, (), None, file)
        in_file = None if moves is None else {each.topic_partition for each in moves}
        partitions = [
            each.topic_partition
            for each in session.cluster.reassignments()
            if (topic is None or each.topic == topic) and (in_file is None or each.topic_partition in in_file)
        ]
    cancelled = session.cluster.cancel(partitions)
    nothing = "no reassignment is in progress"
    session.show({"cancelled": cancelled}, (lambda: draw_reassignments(cancelled)) if cancelled else nothing)


@contextmanager
def _throttled(session: Session, moves: Sequence[Move], rate: int | None, *, wait: bool) -> Iterator[None]:
    if rate is None or not moves:
        yield
        return
    if not wait:
        raise click.UsageError("--throttle needs --wait: the throttle is lifted when all have moved.")
    before = session.cluster.check(moves)
    with throttled(session.admin, session.cluster.brokers(), moves, before, rate=rate):
        yield


def _show(
    session: Session, moves: Sequence[Move], before: Mapping[TopicPartition, Sequence[int]], nothing: str = ""
) -> None:
    session.show(plan_of(moves), (lambda: draw_moves(moves, before)) if moves else nothing)


def _wait_until_empty(session: Session, broker_id: int, moves: list[Move], timeout_s: float | None) -> None:
    for _ in range(ROUNDS):
        if not moves:
            return
        _wait(session, moves, timeout_s)
        moves = session.cluster.plan_drain(broker_id)  # of topics that were created there meanwhile
        if moves:
            session.cluster.reassign(moves)
    raise ClientError(
        f"broker {broker_id} keeps getting new partitions: create no topics while it is drained"
    )


def _wait(session: Session, moves: Sequence[Move], timeout_s: float | None) -> None:
    """Return when all partitions have moved, and print how many have whenever the number changes.

    A terminal has a progress bar, and one line at the end. Raise ClientError after the timeout.
    """
    total = waiting = len(moves)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    is_terminal, reported = sys.stderr.isatty(), False
    try:
        with bar("moving", total, unit="partitions") as advance:
            for left in session.cluster.wait(moves):
                if left != waiting or not reported:
                    advance(waiting - left)
                    waiting, reported = left, True
                    if not is_terminal:
                        _print_moved(session, total - left, total)
                if left and deadline is not None and time.monotonic() > deadline:
                    raise ClientError(
                        f"{left} of {total} partitions are still moving after {timeout_s:g} s: "
                        "the reassignment continues"
                    )
        if is_terminal:
            _print_moved(session, total, total)
    except KeyboardInterrupt:
        click.echo("the reassignment continues; `headrace cluster status` shows its progress", err=True)
        raise


def _print_moved(session: Session, moved: int, total: int) -> None:
    if not session.as_json:
        click.echo(f"{moved} of {total} partitions have moved")
        sys.stdout.flush()
