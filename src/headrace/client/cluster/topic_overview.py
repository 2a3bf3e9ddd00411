"""A summary of every topic: partitions, records, bytes, and problems.

Thousands of partitions take as many requests as there are brokers, and a few more.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.client.admin.topics import Spans, read_spans
from headrace.client.cluster.log_dirs import read_log_dirs, sizes
from headrace.client.cluster.reading import read_configs, read_partitions
from headrace.client.cluster.status import PartitionState
from headrace.client.wire.brokers import QUESTION_S, Brokers
from headrace.client.wire.requests import nodes_of

SHOWN: Final = ("cleanup.policy", "retention.ms", "retention.bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOverview:
    """A summary of a partition; offsets are None while its leader does not answer."""

    index: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start_offset: int | None
    next_offset: int | None  # of the next record


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOverview:
    """A summary of a topic. Bytes and records are None while no broker that has them answers.

    Records are offsets that were given out and are still in the log: compaction leaves fewer than that.
    """

    name: str
    internal: bool
    partitions: int
    replicas: int
    records: int | None
    size_bytes: int | None  # of the leaders
    disk_bytes: int | None  # of all replicas
    under_replicated: int  # partitions
    leaderless: int  # partitions, those without a live replica included
    cleanup_policy: str | None
    retention_ms: int | None
    retention_bytes: int | None
    by_partition: tuple[PartitionOverview, ...] | None = None  # if requested


def read_overview(brokers: Brokers, *, by_partition: bool = False) -> list[TopicOverview]:
    """Return the summary of every topic, by name."""
    found = brokers.metadata(within_s=QUESTION_S)
    partitions = read_partitions(found)
    of_topic: dict[str, list[PartitionState]] = defaultdict(list)
    for each in partitions:
        of_topic[each.topic].append(each)
    spans = read_spans(brokers, found, [each.topic_partition for each in partitions])
    taken = sizes(read_log_dirs(brokers, nodes_of(found)))
    settings = read_shown(brokers, sorted(of_topic))
    internal = {topic.name for topic in found.topics if topic.is_internal}
    return [
        TopicOverview(
            name=name,
            internal=name in internal,
            partitions=len(parts),
            replicas=max(len(each.replicas) for each in parts),
            records=_sum(spans.records(each.topic_partition) for each in parts),
            size_bytes=_sum(
                taken.get((each.leader, each.topic_partition)) for each in parts if each.leader is not None
            ),
            disk_bytes=_sum(
                taken.get((broker, each.topic_partition)) for each in parts for broker in each.replicas
            ),
            under_replicated=sum(bool(each.lacks) for each in parts),
            leaderless=sum(each.leader is None for each in parts),
            cleanup_policy=settings.get((name, "cleanup.policy")),
            retention_ms=whole(settings.get((name, "retention.ms"))),
            retention_bytes=whole(settings.get((name, "retention.bytes"))),
            by_partition=tuple(_partitions(parts, spans)) if by_partition else None,
        )
        for name, parts in sorted(of_topic.items())
    ]


def _partitions(parts: Iterable[PartitionState], spans: Spans) -> Iterator[PartitionOverview]:
    for each in sorted(parts, key=lambda each: each.topic_partition):
        yield PartitionOverview(
            index=each.partition,
            leader=each.leader,
            replicas=tuple(each.replicas),
            in_sync=tuple(each.in_sync),
            start_offset=spans.starts.get(each.topic_partition),
            next_offset=spans.ends.get(each.topic_partition),
        )


def read_shown(brokers: Brokers, topics: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return the settings of these topics that a line shows, by topic and name."""
    return {(topic, name): value for topic, name, value in read_configs(brokers, topics, SHOWN)}


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of the numbers that are known; None if none is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def whole(text: str | None) -> int | None:
    return None if text is None else int(text)
