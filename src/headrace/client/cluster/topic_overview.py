"""A summary of every topic: partitions, records, bytes, and problems.

Thousands of partitions take as many requests as there are brokers, and a few more.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.client.admin.topics import Partition, Spans, read_spans
from headrace.client.cluster.log_dirs import read_log_dirs, size_of, sizes
from headrace.client.cluster.reading import read_configs, read_partitions, with_min_isr
from headrace.client.cluster.status import HEALTHY, OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED, PartitionState
from headrace.client.wire.brokers import QUESTION_S, Brokers
from headrace.client.wire.requests import nodes_of
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.metadata import MetadataResponse

SHOWN: Final = ("cleanup.policy", "retention.ms", "retention.bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOverview:
    """A summary of a topic. Bytes and records are None while those of a partition are not known.

    Records are offsets that were given out and are still in the log: compaction leaves fewer than that.
    """

    name: str
    internal: bool
    partitions: int
    replicas: int
    records: int | None
    size_bytes: int | None  # of the leaders
    disk_bytes: int | None  # of all replicas
    under_replicated: int  # partitions, those without a leader included
    under_min_isr: int  # partitions that have a leader and refuse acks=all
    leaderless: int  # partitions, those without a live replica included
    cleanup_policy: str | None
    retention_ms: int | None
    retention_bytes: int | None
    by_partition: tuple[Partition, ...] | None = None  # if requested

    @property
    def severity(self) -> int:
        """Return the worst problem of its partitions, as `PartitionState.severity` does."""
        if self.leaderless:
            return OFFLINE
        if self.under_min_isr:
            return UNDER_MIN_ISR
        return UNDER_REPLICATED if self.under_replicated else HEALTHY


@dataclass(frozen=True, slots=True)
class TopicList:
    """All topics as metadata has them: their partitions, by name."""

    metadata: MetadataResponse
    partitions: Mapping[str, Sequence[PartitionState]]

    @property
    def rows(self) -> list[TopicOverview]:
        """Every topic without records, bytes and settings, which metadata does not have."""
        return self._rows(self.partitions, Spans({}, {}), {}, {}, by_partition=False)

    def complete(
        self, brokers: Brokers, names: Collection[str] | None = None, *, by_partition: bool = False
    ) -> list[TopicOverview]:
        """Return the whole summary of these topics, or of all, which takes more requests."""
        shown = self.partitions if names is None else {name: self.partitions[name] for name in names}
        places = [part.topic_partition for parts in shown.values() for part in parts]
        indexes = {name: [part.partition for part in parts] for name, parts in shown.items()}
        nodes = nodes_of(self.metadata)
        return self._rows(
            shown,
            read_spans(brokers, self.metadata, places),
            sizes(read_log_dirs(brokers, nodes, None if names is None else indexes)),
            {(topic, name): value for topic, name, value in read_configs(brokers, list(shown), SHOWN)},
            by_partition=by_partition,
        )

    def _rows(
        self,
        shown: Mapping[str, Sequence[PartitionState]],
        spans: Spans,
        taken: Mapping[tuple[int, TopicPartition], int],
        settings: Mapping[tuple[str, str], str],
        *,
        by_partition: bool,
    ) -> list[TopicOverview]:
        internal = {topic.name for topic in self.metadata.topics if topic.is_internal}
        return [
            TopicOverview(
                name=name,
                internal=name in internal,
                partitions=len(parts),
                replicas=max(len(each.replicas) for each in parts),
                records=total(spans.records(each.topic_partition) for each in parts),
                size_bytes=total(size_of(taken, each.leader, each.topic_partition) for each in parts),
                disk_bytes=total(
                    taken.get((broker, each.topic_partition)) for each in parts for broker in each.replicas
                ),
                under_replicated=sum(bool(each.lacks) or each.leader is None for each in parts),
                under_min_isr=sum(each.severity == UNDER_MIN_ISR for each in parts),
                leaderless=sum(each.leader is None for each in parts),
                cleanup_policy=settings.get((name, "cleanup.policy")),
                retention_ms=_whole(settings.get((name, "retention.ms"))),
                retention_bytes=_whole(settings.get((name, "retention.bytes"))),
                by_partition=tuple(_partitions(parts, spans)) if by_partition else None,
            )
            for name, parts in shown.items()
        ]


def read_topics(brokers: Brokers) -> TopicList:
    """Return all topics, by one request or two; a further one if ISRs are not complete."""
    metadata = brokers.metadata(within_s=QUESTION_S)
    partitions: dict[str, list[PartitionState]] = defaultdict(list)
    for each in with_min_isr(brokers, read_partitions(metadata)):
        partitions[each.topic].append(each)
    return TopicList(metadata, dict(sorted(partitions.items())))


def _partitions(parts: Iterable[PartitionState], spans: Spans) -> Iterator[Partition]:
    for each in sorted(parts, key=lambda each: each.topic_partition):
        yield Partition(
            index=each.partition,
            leader=each.leader,
            replicas=tuple(each.replicas),
            in_sync=tuple(each.in_sync),
            start_offset=spans.starts.get(each.topic_partition),
            next_offset=spans.ends.get(each.topic_partition),
        )


def total(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of the numbers; None if one of them is not known."""
    found = 0
    for number in numbers:
        if number is None:
            return None
        found += number
    return found


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)
