"""What is wrong with partitions of a topic, and what to do about it, in sentences. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.client.cluster.status import HEALTHY, OFFLINE, UNDER_MIN_ISR, PartitionState

NAMED: Final = 10  # partitions that a sentence names


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem that some partitions share: what it is, what to do, and a command if there is one."""

    tone: str
    text: str
    advice: str
    command: str = ""


def diagnose(partitions: Iterable[PartitionState], live: Collection[int]) -> list[Finding]:
    """Return the problems of a topic's partitions, the worst first."""
    alike: dict[tuple[int, tuple[int, ...], tuple[int, ...]], list[PartitionState]] = {}
    for partition in partitions:
        if partition.severity != HEALTHY:
            without = tuple(sorted(partition.replicas if partition.leader is None else partition.lacks))
            dead = tuple(broker for broker in without if broker not in live)
            alike.setdefault((partition.severity, dead, without), []).append(partition)
    return [
        _finding(severity, some, dead, tuple(replica for replica in without if replica in live))
        for (severity, dead, without), some in sorted(alike.items())
    ]


def _finding(
    severity: int, partitions: Sequence[PartitionState], dead: Sequence[int], alive: Sequence[int]
) -> Finding:
    indexes = [partition.partition for partition in partitions]
    one = len(indexes) == 1
    which = f"Partition {indexes[0]}" if one else f"Partitions {_listed(indexes)}"
    if len(indexes) > NAMED:
        which = f"{len(indexes):,} partitions ({', '.join(map(str, indexes[:NAMED]))}, …)"
    verb = "is" if one else "are"
    missing = f"{_brokers(dead)}, which {'is' if len(dead) == 1 else 'are'} not registered" if dead else ""
    if severity == OFFLINE:
        effect = "Nothing can be read or written there; other partitions are not affected."
        if not alive:
            return Finding(
                tone="bad",
                text=f"{which} {verb} offline: all replicas are on {missing}. {effect}",
                advice=f"Start {_brokers(dead)} again: no other broker has these records.",
            )
        waits = f" and waits for {missing}" if dead else ""
        first = partitions[0]
        return Finding(
            tone="bad",
            text=f"{which} {verb} without a leader{waits}: the replica on {_brokers(alive)} was not in sync. "
            f"{effect}",
            advice=(f"Start {_brokers(dead)} again. " if dead else "")
            + "If that is not possible, an unclean election makes another replica the leader: "
            "acknowledged records that it does not have are lost.",
            command=f"headrace cluster elect --unclean --topic {first.topic} --partition {first.partition}",
        )
    lag = " and ".join(f"on {brokers}" for brokers in (missing, _brokers(alive) if alive else "") if brokers)
    advice = f"Start {_brokers(dead)} again." if dead else "Wait until the replicas have caught up."
    if severity == UNDER_MIN_ISR:
        text = (
            f"{which} {'has' if one else 'have'} fewer replicas in sync than min.insync.replicas: writes "
            f"with acks=all are refused. Replicas {lag} are not in sync."
        )
        return Finding(tone="bad", text=text, advice=advice)
    text = f"{which} {verb} under-replicated: replicas {lag} are not in sync. Reads and writes work."
    return Finding(tone="warn", text=text, advice=advice)


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {_listed(ids)}"


def _listed(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}" if others else last
