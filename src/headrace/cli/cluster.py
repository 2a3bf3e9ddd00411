"""`headrace cluster`: status, elect, reassign, drain, balance."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from headrace.cli import completion
from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import UNKNOWN, Drawable, bar, count, table, together
from headrace.cli.support.session import (
    Session,
    confirm,
    existing_file,
    options,
    partition_option,
    yes_option,
)
from headrace.client.cluster.cluster import Election
from headrace.client.cluster.moves import Move, Reassignment, plan_of, read_plan
from headrace.client.cluster.status import Broker, ClusterStatus, PartitionState
from headrace.client.errors import ClientError
from headrace.protocol.ids import TopicPartition

_SHOWN: Final = 20  # partitions on a terminal


@click.group(cls=LazyGroup)
def cluster() -> None:
    """Show the state of a cluster; move partitions and leaders."""


@cluster.command()
@options
def status(session: Session) -> None:
    """Show brokers, and partitions with problems:  headrace cluster status

    A broker is up, silent (registered, but it does not answer) or down. A partition is offline (no replica is
    alive), leaderless (no live replica is known to have every record), under min ISR (too few replicas are in
    sync for acks=all) or under-replicated (some replicas are not in sync).
    """
    reported = session.cluster.status()
    session.show(reported, lambda: draw_status(reported))


@cluster.command()
@click.option(
    "--unclean/--preferred",
    help="Elect any live replica, and records may be lost; or preferred replicas, the default.",
)
@click.option(
    "--topic", metavar="NAME", shell_complete=completion.topics, help="Only partitions of this topic."
)
@partition_option
@yes_option
@options
def elect(session: Session, topic: str | None, indexes: Sequence[int], *, unclean: bool, yes: bool) -> None:
    """Elect the preferred replicas as leaders:  headrace cluster elect --topic orders

    The first replica of a partition becomes its leader again if it is in sync. With --unclean any live
    replica becomes the leader of a partition that has none: records that this replica lacks are lost, even
    if they were acknowledged.
    """
    if indexes and topic is None:
        raise click.UsageError("--partition needs a --topic.")
    partitions = None if topic is None else session.topics.partitions_of(topic, indexes)
    if unclean:
        if partitions is None:
            what = "every partition that has no leader"
        else:
            what = str(partitions[0]) if len(partitions) == 1 else count(len(partitions), "partition")
        question = (
            f"Elect a leader that may lack acknowledged records, for {what}? Those records would be lost"
        )
        action = f"for an unclean election of {what}"
        confirm(question, action=action, declined="nothing was elected", yes=yes)
    elections = session.cluster.elect(partitions, unclean=unclean)
    session.show(elections, (lambda: draw_elections(elections)) if elections else "no election was needed")
    if refused := sum(election.refused is not None for election in elections):
        raise ClientError(f"{count(refused, 'partition')} could not get the requested leader")


def draw_status(status: ClusterStatus) -> Drawable:
    """Return the brokers, the partitions with problems, worst first, and the reassignments."""
    controller = "no controller" if status.controller is None else f"controller {status.controller}"
    head = (
        f"cluster {status.cluster_id or UNKNOWN}: {count(len(status.brokers), 'broker')}, {controller}, "
        f"{count(status.topics, 'topic')}, {count(status.partitions, 'partition')}"
    )
    where = locations(status.brokers)
    brokers = [
        (broker.id, address(broker), *places, state(broker), broker.pid, broker.leads, broker.follows)
        for broker, *places in zip(status.brokers, *where.values(), strict=True)
    ]
    columns = ["broker", "address", *where, "state", "pid", "leads", "follows"]
    parts: list[Drawable] = [head, table(columns, brokers)]
    by_problem: dict[str, Sequence[PartitionState]] = {
        "offline": status.offline,
        "leaderless": status.leaderless,
        "under min ISR": status.under_min_isr,
        "under-replicated": status.under_replicated,
    }
    # A partition with several problems has a row for its worst one.
    rows: dict[TopicPartition, Sequence[object]] = {}
    for problem, partitions in by_problem.items():
        for part in partitions:
            columns_of_part = (str(part.topic_partition), part.leader, part.replicas, part.in_sync)
            rows.setdefault(part.topic_partition, (*columns_of_part, f"{problem}: {_why(part)}"))
    if rows:
        columns = ["partition", "leader", "replicas", "in sync", "state"]
        parts.append(table(columns, _shown(list(rows.values()))))
    if status.reassignments:
        parts.append(draw_reassignments(status.reassignments))
    numbers = ", ".join(f"{len(having)} {problem}" for problem, having in by_problem.items() if having)
    totals = [
        f"of {count(status.partitions, 'partition')}: {numbers}"
        if numbers
        else "every partition has all its replicas in sync"
    ]
    if number := len(status.not_preferred):
        line = f"{count(number, 'partition')} not led by the preferred replica (`headrace cluster elect`)"
        totals.append(line)
    if number := len(status.sharing_node):
        totals.append(
            f"{count(number, 'partition')} with replicas that share a node although another has none "
            "(`headrace cluster reassign`)"
        )
    if number := len(status.reassignments):
        totals.append(f"{count(number, 'partition')} moving to other brokers")
    return together([*parts, "\n".join(totals)])


def draw_reassignments(reassignments: Sequence[Reassignment]) -> Drawable:
    rows = [(str(move.topic_partition), move.target, move.adding, move.removing) for move in reassignments]
    return table(["moving", "to", "new", "old"], _shown(rows))


def draw_moves(moves: Sequence[Move], before: Mapping[TopicPartition, Sequence[int]]) -> Drawable:
    rows = [(str(move.topic_partition), before.get(move.topic_partition), move.replicas) for move in moves]
    return table(["partition", "from", "to"], _shown(rows))


def draw_elections(elections: Sequence[Election]) -> Drawable:
    rows = []
    for election in elections:
        outcome = election.refused or ("elected" if election.needed else "leads already")
        rows.append((str(TopicPartition(election.topic, election.partition)), election.leader, outcome))
    return table(["partition", "leader", "outcome"], _shown(rows))


def address(broker: Broker) -> str | None:
    return None if broker.host is None else f"{broker.host}:{broker.port}"


def state(broker: Broker) -> str:
    return f"{broker.state}, controller" if broker.controller else broker.state


def locations(brokers: Sequence[Broker]) -> dict[str, list[str | None]]:
    """Return the columns that say where each broker is; there is one for nodes if a broker has one."""
    columns = {"rack": [broker.rack for broker in brokers]}
    if any(broker.node for broker in brokers):
        columns["node"] = [broker.node for broker in brokers]
    return columns


def _why(partition: PartitionState) -> str:
    if partition.leader is None:
        candidates = dict.fromkeys((*partition.in_sync, *partition.eligible))
        return f"waits for {' or '.join(map(str, candidates)) or 'any'}"
    if len(partition.in_sync) < partition.min_in_sync:
        return f"{len(partition.in_sync)} of {partition.min_in_sync}"
    return f"lacks {', '.join(map(str, partition.lacks))}"


def _shown(rows: Sequence[Sequence[object]]) -> Sequence[Sequence[object]]:
    """Return the rows; on a terminal only the first, and how many more there are."""
    if len(rows) <= _SHOWN or not sys.stdout.isatty():
        return rows
    return [*rows[:_SHOWN], (f"… {len(rows) - _SHOWN:,} more", *[""] * (len(rows[0]) - 1))]


ROUNDS: Final = 10  # of a drain: topics may be created on the broker meanwhile


def _waiting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --wait and --timeout."""
    for option in (
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


@cluster.command()
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
        if indexes and topic is not None:
            partitions = session.topics.partitions_of(topic, indexes)
        else:
            moves = None if file is None else _moves(session, None, (), None, file)
            in_file = None if moves is None else {move.topic_partition for move in moves}
            partitions = [
                move.topic_partition
                for move in session.cluster.reassignments()
                if topic in {None, move.topic} and (in_file is None or move.topic_partition in in_file)
            ]
        cancelled = session.cluster.cancel(partitions)
        nothing = "no reassignment is in progress"
        text = (lambda: draw_reassignments(cancelled)) if cancelled else nothing
        session.show({"cancelled": cancelled}, text)
        return
    moves = _moves(session, topic, indexes, to, file)
    _show(session, moves, session.cluster.reassign(moves))
    if wait:
        _wait(session, moves, timeout_s)


@cluster.command()
@click.argument(
    "broker_id", metavar="BROKER", type=click.IntRange(0), shell_complete=completion.brokers, required=False
)
@click.option("--node", metavar="NAME", help="Drain all brokers of this node, to other nodes.")
@click.option("--dry-run", is_flag=True, help="Show where the replicas would go, and move nothing.")
@_waiting_options
@options
def drain(
    session: Session,
    *,
    broker_id: int | None,
    node: str | None,
    timeout_s: float | None,
    dry_run: bool,
    wait: bool,
) -> None:
    """Move everything off a broker:  headrace cluster drain 3 --wait

    Its replicas are spread over the other brokers, in racks and on nodes that have none of the same partition
    if possible. Then the broker can be stopped for good. With --dry-run --json this prints a plan for
    `headrace cluster reassign --from-file`.

    Everything off a machine with several brokers:  headrace cluster drain --node node-1 --wait
    """
    if (broker_id is None) == (node is None):
        raise click.UsageError("Give a broker, or --node.")
    drained = [broker_id] if broker_id is not None else session.cluster.brokers_of_node(str(node))
    named = f"{'broker' if len(drained) == 1 else 'brokers'} {', '.join(map(str, drained))}"
    moves = session.cluster.plan_drain(drained)
    empty = f"no replica is left on {named}"
    if dry_run:
        _show(session, moves, session.cluster.check(moves), nothing=empty)
        return
    _show(session, moves, session.cluster.reassign(moves) if moves else {}, nothing=empty)
    if not wait or not moves:
        return
    for _ in range(ROUNDS):
        _wait(session, moves, timeout_s)
        moves = session.cluster.plan_drain(drained)  # of topics that were created there meanwhile
        if not moves:
            break
        session.cluster.reassign(moves)
    else:
        raise ClientError(
            f"new partitions are created on {named} again and again: create no topics during a drain"
        )
    if not session.as_json:
        click.echo(empty)


@cluster.command()
@click.option("--node", required=True, metavar="NAME", help="The headrace.node of the brokers.")
@click.option("--dry-run", is_flag=True, help="Show which replicas would move, and move nothing.")
@_waiting_options
@options
def balance(session: Session, *, node: str, timeout_s: float | None, dry_run: bool, wait: bool) -> None:
    """Spread the replicas of a node over its brokers:  headrace cluster balance --node NAME --wait

    For a node that has got more brokers. As few replicas as possible move from the brokers with the most
    replicas to those with the fewest, and so do preferred leaders. Closed segments are linked and not copied
    if the brokers' directories are on one file system.
    """
    moves = session.cluster.plan_balance(node)
    nothing = f"the replicas of node {node} are spread evenly"
    if dry_run:
        _show(session, moves, session.cluster.check(moves), nothing=nothing)
        return
    _show(session, moves, session.cluster.reassign(moves) if moves else {}, nothing=nothing)
    if wait and moves:
        _wait(session, moves, timeout_s)


def _moves(
    session: Session, topic: str | None, indexes: Sequence[int], to: str | None, file: Path | None
) -> list[Move]:
    """Return the moves of the file, or of the topic to the brokers `to`."""
    if file is not None and topic is None and to is None and not indexes:
        return read_plan(file.read_text("utf-8", errors="replace"), str(file))
    if file is not None or topic is None or to is None:
        raise click.UsageError("Give --topic and --to, or --from-file.")
    ids = [part.strip() for part in to.split(",")]
    if not all(part.isdigit() for part in ids):
        raise click.UsageError(f"--to {to}: expected broker ids such as 1,2,3.")
    moves = []
    for number, partition in enumerate(session.topics.partitions_of(topic, indexes)):
        first = 0 if indexes else number % len(ids)  # 1,2,3, then 2,3,1
        replicas = tuple(map(int, [*ids[first:], *ids[:first]]))
        moves.append(Move(topic=topic, partition=partition.partition, replicas=replicas))
    return moves


def _show(
    session: Session, moves: Sequence[Move], before: Mapping[TopicPartition, Sequence[int]], nothing: str = ""
) -> None:
    session.show(plan_of(moves), (lambda: draw_moves(moves, before)) if moves else nothing)


def _wait(session: Session, moves: Sequence[Move], timeout_s: float | None) -> None:
    """Return when all partitions have moved, and print how many have whenever the number changes.

    A terminal has a progress bar, and one line at the end. Raise ClientError after the timeout.
    """
    total = waiting = len(moves)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    is_terminal, reported = sys.stderr.isatty(), False
    try:
        with bar("moving", total) as advance:
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
