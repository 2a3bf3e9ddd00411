"""The list of topics: what metadata says of all, and what has to be asked for of those that are on the page.

Of ten thousand partitions, offsets, bytes and settings take most of a second; of a page's, nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from headrace.client.admin.topics import read_spans
from headrace.client.cluster.log_dirs import read_log_dirs, sizes
from headrace.client.cluster.reading import read_partitions
from headrace.client.cluster.status import PartitionState
from headrace.client.cluster.topic_overview import TopicOverview, read_shown, whole
from headrace.client.wire.brokers import QUESTION_S, Brokers
from headrace.client.wire.requests import nodes_of
from headrace.protocol.schema.metadata import MetadataResponse

CHEAP: Final = {"name", "partitions", "replicas", "sick"}
"""Columns that metadata fills: to sort by another, every topic has to be asked about."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Topics as metadata has them, with what it takes to ask for more."""

    found: MetadataResponse
    partitions: dict[str, list[PartitionState]]

    @property
    def lines(self) -> list[TopicOverview]:
        """Every topic, by name, without what has to be asked for."""
        internal = {topic.name for topic in self.found.topics if topic.is_internal}
        return [_line(name, parts, name in internal) for name, parts in sorted(self.partitions.items())]


def read_list(brokers: Brokers) -> Listed:
    """Every topic, in one request or two."""
    found = brokers.metadata(within_s=QUESTION_S)
    partitions: dict[str, list[PartitionState]] = {}
    for each in read_partitions(found):
        partitions.setdefault(each.topic, []).append(each)
    return Listed(found, partitions)


def completed(brokers: Brokers, listed: Listed, lines: Sequence[TopicOverview]) -> list[TopicOverview]:
    """These lines with records, bytes and settings."""
    names = [each.name for each in lines]
    parts = [part for name in names for part in listed.partitions[name]]
    spans = read_spans(brokers, listed.found, [part.topic_partition for part in parts])
    asked = {name: [part.partition for part in listed.partitions[name]] for name in names}
    taken = sizes(read_log_dirs(brokers, nodes_of(listed.found), asked))
    settings = read_shown(brokers, names)
    done = []
    for line in lines:
        mine = listed.partitions[line.name]
        records = [
            each for each in (spans.records(part.topic_partition) for part in mine) if each is not None
        ]
        led = [(each.leader, each.topic_partition) for each in mine if each.leader is not None]
        held = [taken[place] for place in led if place in taken]
        done.append(
            replace(
                line,
                records=sum(records) if records else None,
                size_bytes=sum(held) if held else None,
                cleanup_policy=settings.get((line.name, "cleanup.policy")),
                retention_ms=whole(settings.get((line.name, "retention.ms"))),
                retention_bytes=whole(settings.get((line.name, "retention.bytes"))),
            )
        )
    return done


def _line(name: str, parts: Sequence[PartitionState], internal: bool) -> TopicOverview:
    return TopicOverview(
        name=name,
        internal=internal,
        partitions=len(parts),
        replicas=max(len(each.replicas) for each in parts),
        records=None,
        size_bytes=None,
        disk_bytes=None,
        under_replicated=sum(bool(each.lacks) for each in parts),
        leaderless=sum(each.leader is None for each in parts),
        cleanup_policy=None,
        retention_ms=None,
        retention_bytes=None,
    )
