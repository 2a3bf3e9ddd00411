"""`headrace cluster`: status, elect, and tables; reassign and drain are in cluster_move."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import click

from headrace.cli import completion
from headrace.cli.lazy import Lazy, LazyGroup
from headrace.cli.output import UNKNOWN, Drawable, count, table, together
from headrace.cli.session import Session, confirm, options, partition_option, yes_option
from headrace.client.cluster.cluster import Election
from headrace.client.cluster.moves import Move, Reassignment
from headrace.client.cluster.status import Broker, ClusterStatus, PartitionState
from headrace.client.errors import ClientError
from headrace.protocol.ids import TopicPartition

_SHOWN: Final = 20  # partitions on a terminal
COMMANDS: Final = {
    "reassign": Lazy("headrace.cli.cluster_move", "reassign", "Move partitions to other brokers."),
    "drain": Lazy("headrace.cli.cluster_move", "drain", "Move everything off a broker."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
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


def _brokers(brokers: Sequence[Broker]) -> Drawable:
    rows = [
        (each.id, address(each), each.rack, state(each), each.pid, each.leads, each.follows)
        for each in brokers
    ]
    return table(["broker", "address", "rack", "state", "pid", "leads", "follows"], rows)


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
    if found.reassignments:
        yield f"{count(len(found.reassignments), 'partition')} moving to other brokers"


def _shown(rows: Sequence[Sequence[object]]) -> Sequence[Sequence[object]]:
    """Return the rows; on a terminal only the first, and how many more there are."""
    if len(rows) <= _SHOWN or not sys.stdout.isatty():
        return rows
    return [*rows[:_SHOWN], (f"… {len(rows) - _SHOWN:,} more", *[""] * (len(rows[0]) - 1))]
