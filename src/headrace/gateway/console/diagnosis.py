"""What is wrong with partitions of a topic, and what to do about it, in sentences. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from headrace.client.admin.topics import Partition
from headrace.client.cluster.status import HEALTHY, OFFLINE, UNDER_MIN_ISR, PartitionState
from headrace.gateway.console.formats import span

NAMED: Final = 10  # partitions that a sentence names
REMEMBERED: Final = 1000  # brokers


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem that some partitions share: what it is, what to do, and a command if there is one."""

    tone: str
    text: str
    advice: str
    command: str = ""


class Absences:
    """When each missing broker was first noticed to be missing: the protocol does not tell since when."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._since_ms: dict[int, int] = {}

    def note(self, expected: Iterable[int], live: Collection[int], now_ms: int) -> dict[int, int]:
        """Return the times of the missing brokers; those of brokers that are back are forgotten."""
        with self._lock:
            for each in set(live) & set(self._since_ms):
                del self._since_ms[each]
            for each in set(expected) - set(live):
                if each in self._since_ms or len(self._since_ms) < REMEMBERED:
                    self._since_ms.setdefault(each, now_ms)
            return dict(self._since_ms)


def diagnose(
    partitions: Iterable[PartitionState],
    live: Collection[int],
    since_ms: Mapping[int, int] | None = None,
    now_ms: int = 0,
) -> list[Finding]:
    """Return the problems of a topic's partitions, the worst first."""
    alike: dict[tuple[int, tuple[int, ...], tuple[int, ...]], list[PartitionState]] = {}
    for partition in partitions:
        if partition.severity != HEALTHY:
            without = tuple(sorted(partition.replicas if partition.leader is None else partition.lacks))
            dead = tuple(broker for broker in without if broker not in live)
            alike.setdefault((partition.severity, dead, without), []).append(partition)
    missing = _Missing(since_ms or {}, now_ms)
    return [
        _finding(severity, some, dead, tuple(replica for replica in without if replica in live), missing)
        for (severity, dead, without), some in sorted(alike.items())
    ]


@dataclass(frozen=True, slots=True)
class _Missing:
    since_ms: Mapping[int, int]
    now_ms: int

    def brokers(self, ids: Sequence[int]) -> str:
        """Return `broker 3, which is not registered (noticed 2 min ago)`."""
        noticed = [self.since_ms[each] for each in ids if each in self.since_ms]
        seconds = max(1, (self.now_ms - min(noticed)) // 1000) if noticed else 0
        ago = f" (noticed {span(seconds * 1000)} ago)" if noticed else ""
        return f"{_brokers(ids)}, which {'is' if len(ids) == 1 else 'are'} not registered{ago}"


def _finding(
    severity: int,
    partitions: Sequence[PartitionState],
    dead: Sequence[int],
    alive: Sequence[int],
    missing: _Missing,
) -> Finding:
    one = len(partitions) == 1
    which = _partitions([partition.partition for partition in partitions])
    if severity == OFFLINE:
        return _offline(partitions, dead, alive, missing)
    lag = " and ".join(
        [*([f"on {missing.brokers(dead)}"] if dead else []), *([f"on {_brokers(alive)}"] if alive else [])]
    )
    advice = f"Start {_brokers(dead)} again." if dead else "Wait until the replicas have caught up."
    if severity == UNDER_MIN_ISR:
        return Finding(
            tone="bad",
            text=f"{which} {'has' if one else 'have'} fewer replicas in sync than min.insync.replicas: "
            f"writes with acks=all are refused. Replicas {lag} are not in sync.",
            advice=advice,
        )
    return Finding(
        tone="warn",
        text=f"{which} {'is' if one else 'are'} under-replicated: replicas {lag} are not in sync. "
        "Reads and writes work.",
        advice=advice,
    )


def _offline(
    partitions: Sequence[PartitionState], dead: Sequence[int], alive: Sequence[int], missing: _Missing
) -> Finding:
    which = _partitions([partition.partition for partition in partitions])
    verb = "is" if len(partitions) == 1 else "are"
    effect = "Nothing can be read or written there; other partitions are not affected."
    if not alive:
        return Finding(
            tone="bad",
            text=f"{which} {verb} offline: all replicas are on {missing.brokers(dead)}. {effect}",
            advice=f"Start {_brokers(dead)} again: no other broker has these records.",
        )
    waits = f" and waits for {missing.brokers(dead)}" if dead else ""
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


def _partitions(indexes: Sequence[int]) -> str:
    if len(indexes) > NAMED:
        return f"{len(indexes):,} partitions ({', '.join(map(str, indexes[:NAMED]))}, …)"
    return f"Partition {indexes[0]}" if len(indexes) == 1 else f"Partitions {_listed(indexes)}"


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {_listed(ids)}"


def _listed(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}" if others else last


def states(topic: str, partitions: Iterable[Partition], min_in_sync: int) -> Iterator[PartitionState]:
    """Yield the partitions of a topic as states, with `min.insync.replicas`."""
    for partition in partitions:
        yield PartitionState(
            topic=topic,
            partition=partition.index,
            leader=partition.leader,
            replicas=partition.replicas,
            in_sync=partition.in_sync,
            min_in_sync=min(min_in_sync, len(partition.replicas)),
        )
