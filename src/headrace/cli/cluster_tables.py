"""How a cluster looks on a terminal of 80 columns."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from headrace.cli.session import UNKNOWN, table, together
from headrace.cli.texts import count
from headrace.client.cluster.cluster import Election
from headrace.client.cluster.moves import Move, Reassignment
from headrace.client.cluster.status import Broker, ClusterStatus, PartitionState
from headrace.protocol.ids import TopicPartition

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHOWN: Final = 20  # partitions on a terminal


def draw_status(found: ClusterStatus) -> "RenderableType":
    """Brokers, then what is wrong, worst first, then what moves."""
    parts: list[RenderableType] = [_head(found), _brokers(found.brokers)]
    sick = list(_sick(found))
    if sick:
        parts.append(table(["partition", "leader", "replicas", "in sync", "state"], _shown(sick)))
    if found.reassignments:
        parts.append(draw_reassignments(found.reassignments))
    parts.append("\n".join(_sums(found, len(sick))))
    return together(parts)


def draw_reassignments(found: Sequence[Reassignment]) -> "RenderableType":
    """A line for each partition under way."""
    rows = [(str(each.topic_partition), each.target, each.adding, each.removing) for each in found]
    return table(["moving", "to", "new", "old"], _shown(rows))


def draw_moves(moves: Sequence[Move], before: Mapping[TopicPartition, Sequence[int]]) -> "RenderableType":
    """A line for each partition: where it is, and where it goes."""
    rows = [
        (str(each.topic_partition), before.get(each.topic_partition, UNKNOWN), each.replicas)
        for each in moves
    ]
    return table(["partition", "from", "to"], _shown(rows))


def draw_elections(found: Sequence[Election]) -> "RenderableType":
    """A line for each partition with its leader."""
    rows = [
        (str(TopicPartition(each.topic, each.partition)), _or_unknown(each.leader), _outcome(each))
        for each in found
    ]
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


def _brokers(brokers: Sequence[Broker]) -> "RenderableType":
    rows = [
        (
            each.id,
            UNKNOWN if each.host is None else f"{each.host}:{each.port}",
            _or_unknown(each.rack),
            f"{each.state}, controller" if each.controller else each.state,
            _or_unknown(each.pid),
            each.leads,
            each.follows,
        )
        for each in brokers
    ]
    return table(["broker", "address", "rack", "state", "pid", "leads", "follows"], rows)


def _sick(found: ClusterStatus) -> Iterator[Sequence[object]]:
    """Each partition once, with the worst that can be said of it."""
    seen: set[TopicPartition] = set()
    for partitions, word in (
        (found.offline, "offline: "),
        (found.leaderless, "leaderless: "),
        (found.under_min_isr, "under min ISR: "),
        (found.under_replicated, "under-replicated: "),
    ):
        for each in partitions:
            if each.topic_partition not in seen:
                seen.add(each.topic_partition)
                why = f"{word}{_why(each)}"
                yield str(each.topic_partition), _or_unknown(each.leader), each.replicas, each.in_sync, why


def _why(partition: PartitionState) -> str:
    if partition.leader is None:
        return f"waits for {_either(partition.in_sync, partition.eligible)}"
    if len(partition.in_sync) < partition.min_in_sync:
        return f"{len(partition.in_sync)} of {partition.min_in_sync}"
    return f"lacks {', '.join(map(str, partition.lacks))}"


def _either(in_sync: Sequence[int], eligible: Sequence[int]) -> str:
    return " or ".join(str(each) for each in dict.fromkeys((*in_sync, *eligible))) or "any"


def _sums(found: ClusterStatus, sick: int) -> Iterator[str]:
    if sick:
        parts = {
            "offline": found.offline,
            "leaderless": found.leaderless,
            "under min ISR": found.under_min_isr,
            "under-replicated": found.under_replicated,
        }
        named = ", ".join(f"{len(each)} {name}" for name, each in parts.items() if each)
        yield f"of {count(found.partitions, 'partition')}: {named}"
    else:
        yield "every partition has all its replicas in sync"
    if found.not_preferred:
        yield (
            f"{count(len(found.not_preferred), 'partition')} not led by the preferred replica "
            "(`headrace cluster elect`)"
        )
    if found.reassignments:
        yield f"{count(len(found.reassignments), 'partition')} on the way to other brokers"


def _shown(rows: Sequence[Sequence[object]]) -> Sequence[Sequence[object]]:
    """The rows; a terminal is spared very many."""
    if len(rows) <= _SHOWN or not sys.stdout.isatty():
        return rows
    return [*rows[:_SHOWN], (f"… {len(rows) - _SHOWN:,} more", *[""] * (len(rows[0]) - 1))]


def _or_unknown(value: object) -> object:
    return UNKNOWN if value is None else value
