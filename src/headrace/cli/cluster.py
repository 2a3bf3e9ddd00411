"""`headrace cluster`: status, elect, reassign, drain, balance."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    found = session.cluster.status()
    session.show(found, lambda: draw_status(found))


@cluster.command()
@click.option(
    "--preferred",
    "kind",
    flag_value="preferred",
    default=True,
    show_default=False,
    help="Elect preferred replicas. The default.",
)
@click.option("--unclean", "kind", flag_value="unclean", help="Elect any live replica; records may be lost.")
@click.option(
    "--topic", metavar="NAME", shell_complete=completion.topics, help="Only partitions of this topic."
)
@partition_option
@yes_option
@options
def elect(session: Session, kind: str, topic: str | None, indexes: Sequence[int], *, yes: bool) -> None:
    """Elect the preferred replicas as leaders:  headrace cluster elect --topic orders

    The first replica of a partition becomes its leader again if it is in sync. With --unclean any live
    replica becomes the leader of a partition that has none: records that this replica lacks are lost, even
    if they were acknowledged.
    """
    if indexes and topic is None:
        raise click.UsageError("--partition needs a --topic.")
    unclean = kind == "unclean"
    partitions = None if topic is None else session.topics.partitions_of(topic, indexes)
    if unclean:
        _confirm_unclean(partitions, yes=yes)
    found = session.cluster.elect(partitions, unclean=unclean)
    session.show(found, (lambda: draw_elections(found)) if found else "no election was needed")
    if refused := [each for each in found if each.refused is not None]:
        raise ClientError(f"{count(len(refused), 'partition')} could not get the requested leader")


def _confirm_unclean(partitions: Sequence[TopicPartition] | None, *, yes: bool) -> None:
    if partitions is None:
        what = "every partition that has no leader"
    else:
        what = str(partitions[0]) if len(partitions) == 1 else count(len(partitions), "partition")
    question = f"Elect a leader that may lack acknowledged records, for {what}? Those records would be lost"
    confirm(question, action=f"for an unclean election of {what}", declined="nothing was elected", yes=yes)


# -- tables, for a terminal of 80 columns ----------------------------------------------------------


def draw_status(found: ClusterStatus) -> Drawable:
    """Return the brokers, the partitions with problems, worst first, and the reassignments."""
    parts: list[Drawable] = [_head(found), _brokers(found.brokers)]
    problems = list(_problems(found))
    if problems:
        parts.append(table(["partition", "leader", "replicas", "in sync", "state"], _shown(problems)))
    if found.reassignments:
        parts.append(draw_reassignments(found.reassignments))
    parts.append("\n".join(_totals(found)))
    return together(parts)


def draw_reassignments(found: Sequence[Reassignment]) -> Drawable:
    rows = [(str(each.topic_partition), each.target, each.adding, each.removing) for each in found]
    return table(["moving", "to", "new", "old"], _shown(rows))


def draw_moves(moves: Sequence[Move], before: Mapping[TopicPartition, Sequence[int]]) -> Drawable:
    rows = [(str(each.topic_partition), before.get(each.topic_partition), each.replicas) for each in moves]
    return table(["partition", "from", "to"], _shown(rows))


def draw_elections(found: Sequence[Election]) -> Drawable:
    rows = [(str(TopicPartition(each.topic, each.partition)), each.leader, _outcome(each)) for each in found]
    return table(["partition", "leader", "outcome"], _shown(rows))


def _outcome(election: Election) -> str:
    if election.refused is not None:
        return election.refused
    return "elected" if election.needed else "leads already"


def _head(found: ClusterStatus) -> str:
    controller = "no controller" if found.controller is None else f"controller {found.controller}"
    return (
        f"cluster {found.cluster_id or UNKNOWN}: {count(len(found.brokers), 'broker')}, {controller}, "
        f"{count(found.topics, 'topic')}, {count(found.partitions, 'partition')}"
    )


def address(broker: Broker) -> str | None:
    return None if broker.host is None else f"{broker.host}:{broker.port}"


def state(broker: Broker) -> str:
    return f"{broker.state}, controller" if broker.controller else broker.state


def locations(brokers: Sequence[Broker]) -> dict[str, list[str | None]]:
    """Return the columns that say where each broker is; there is one for nodes if a broker has one."""
    columns = {"rack": [each.rack for each in brokers]}
    if any(each.node for each in brokers):
        columns["node"] = [each.node for each in brokers]
    return columns


def _brokers(brokers: Sequence[Broker]) -> Drawable:
    where = locations(brokers)
    rows = [
        (each.id, address(each), *places, state(each), each.pid, each.leads, each.follows)
        for each, *places in zip(brokers, *where.values(), strict=True)
    ]
    return table(["broker", "address", *where, "state", "pid", "leads", "follows"], rows)


def _by_problem(found: ClusterStatus) -> dict[str, Sequence[PartitionState]]:
    """Return the partitions with each problem, the worst problem first."""
    return {
        "offline": found.offline,
        "leaderless": found.leaderless,
        "under min ISR": found.under_min_isr,
        "under-replicated": found.under_replicated,
    }


def _problems(found: ClusterStatus) -> Iterator[Sequence[object]]:
    """Yield a row for each partition with a problem; a partition with several has its worst one."""
    seen: set[TopicPartition] = set()
    for problem, partitions in _by_problem(found).items():
        for each in partitions:
            if each.topic_partition not in seen:
                seen.add(each.topic_partition)
                yield (
                    str(each.topic_partition),
                    each.leader,
                    each.replicas,
                    each.in_sync,
                    f"{problem}: {_why(each)}",
                )


def _why(partition: PartitionState) -> str:
    if partition.leader is None:
        candidates = dict.fromkeys((*partition.in_sync, *partition.eligible))
        return f"waits for {' or '.join(map(str, candidates)) or 'any'}"
    if len(partition.in_sync) < partition.min_in_sync:
        return f"{len(partition.in_sync)} of {partition.min_in_sync}"
    return f"lacks {', '.join(map(str, partition.lacks))}"


def _totals(found: ClusterStatus) -> Iterator[str]:
    problems = {name: each for name, each in _by_problem(found).items() if each}
    if problems:
        named = ", ".join(f"{len(each)} {name}" for name, each in problems.items())
        yield f"of {count(found.partitions, 'partition')}: {named}"
    else:
        yield "every partition has all its replicas in sync"
    if found.not_preferred:
        yield (
            f"{count(len(found.not_preferred), 'partition')} not led by the preferred replica "
            "(`headrace cluster elect`)"
        )
    if found.sharing_node:
        yield (
            f"{count(len(found.sharing_node), 'partition')} with replicas that share a node although another "
            "has none (`headrace cluster reassign`)"
        )
    if found.reassignments:
        yield f"{count(len(found.reassignments), 'partition')} moving to other brokers"


def _shown(rows: Sequence[Sequence[object]]) -> Sequence[Sequence[object]]:
    """Return the rows; on a terminal only the first, and how many more there are."""
    if len(rows) <= _SHOWN or not sys.stdout.isatty():
        return rows
    return [*rows[:_SHOWN], (f"… {len(rows) - _SHOWN:,} more", *[""] * (len(rows[0]) - 1))]


# -- reassign and drain ----------------------------------------------------------------------------

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
    throttle: int | None,
    dry_run: bool,
    wait: bool,
) -> None:
    """Move everything off a broker:  headrace cluster drain 3 --wait

    Its replicas are spread over the other brokers, in racks and on nodes that have none of the same partition
    if possible. Then the broker can be stopped for good. With --dry-run --json this prints a plan for
    `headrace cluster reassign --from-file`.

    Everything off a machine with several brokers:  headrace cluster drain --node node-1 --wait
    """
    drained = _drained(session, broker_id, node)
    moves = session.cluster.plan_drain(drained)
    empty = f"no replica is left on {_named(drained)}"
    if dry_run:
        _show(session, moves, session.cluster.check(moves), nothing=empty)
        return
    with _throttled(session, moves, throttle, wait=wait):
        _show(session, moves, session.cluster.reassign(moves) if moves else {}, nothing=empty)
        if wait and moves:
            _wait_until_empty(session, drained, moves, timeout_s)
            if not session.as_json:
                click.echo(empty)


def _drained(session: Session, broker_id: int | None, node: str | None) -> list[int]:
    """Return the brokers that the arguments of `drain` name."""
    if (broker_id is None) == (node is None):
        raise click.UsageError("Give a broker, or --node.")
    if node is not None:
        return session.cluster.brokers_of_node(node)
    assert broker_id is not None
    return [broker_id]


def _named(brokers: Sequence[int]) -> str:
    return f"{'broker' if len(brokers) == 1 else 'brokers'} {', '.join(map(str, brokers))}"


@cluster.command()
@click.option("--node", required=True, metavar="NAME", help="The headrace.node of the brokers.")
@click.option("--dry-run", is_flag=True, help="Show which replicas would move, and move nothing.")
@_waiting_options
@options
def balance(
    session: Session,
    *,
    node: str,
    timeout_s: float | None,
    throttle: int | None,
    dry_run: bool,
    wait: bool,
) -> None:
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
    with _throttled(session, moves, throttle, wait=wait):
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
    with session.cluster.throttled(moves, rate):
        yield


def _show(
    session: Session, moves: Sequence[Move], before: Mapping[TopicPartition, Sequence[int]], nothing: str = ""
) -> None:
    session.show(plan_of(moves), (lambda: draw_moves(moves, before)) if moves else nothing)


def _wait_until_empty(
    session: Session, drained: Sequence[int], moves: list[Move], timeout_s: float | None
) -> None:
    for _ in range(ROUNDS):
        if not moves:
            return
        _wait(session, moves, timeout_s)
        moves = session.cluster.plan_drain(drained)  # of topics that were created there meanwhile
        if moves:
            session.cluster.reassign(moves)
    raise ClientError(
        f"new partitions are created on {_named(drained)} again and again: create no topics during a drain"
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
