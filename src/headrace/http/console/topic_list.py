"""The list of topics: what metadata says of all, and what has to be asked for of those that are on the page.

Of ten thousand partitions, offsets, bytes and settings take most of a second; of a page's, nothing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headrace.client.cluster.log_dirs import read_log_dirs, sizes
from headrace.client.cluster.reading import TOPIC, read_partitions
from headrace.client.cluster.status import PartitionState
from headrace.client.cluster.topic_overview import EARLIEST, LATEST, SHOWN, TopicOverview, read_offsets
from headrace.client.wire.brokers import Brokers
from headrace.protocol.schema.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
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
    found = brokers.metadata()
    partitions: dict[str, list[PartitionState]] = {}
    for each in read_partitions(found):
        partitions.setdefault(each.topic, []).append(each)
    return Listed(found, partitions)


def completed(brokers: Brokers, listed: Listed, lines: Sequence[TopicOverview]) -> list[TopicOverview]:
    """These lines with records, bytes and settings."""
    names = [each.name for each in lines]
    parts = [part for name in names for part in listed.partitions[name]]
    starts = read_offsets(brokers, listed.found, parts, EARLIEST)
    ends = read_offsets(brokers, listed.found, parts, LATEST)
    asked = {name: [part.partition for part in listed.partitions[name]] for name in names}
    taken = sizes(read_log_dirs(brokers, listed.found.brokers, asked))
    settings = _settings(brokers, names)
    done = []
    for line in lines:
        mine = listed.partitions[line.name]
        known = [each.place for each in mine if each.place in starts and each.place in ends]
        led = [(each.leader, each.place) for each in mine if each.leader is not None]
        held = [taken[place] for place in led if place in taken]
        done.append(
            replace(
                line,
                records=sum(ends[place] - starts[place] for place in known) if known else None,
                size_bytes=sum(held) if held else None,
                cleanup_policy=settings.get((line.name, "cleanup.policy")),
                retention_ms=_whole(settings.get((line.name, "retention.ms"))),
                retention_bytes=_whole(settings.get((line.name, "retention.bytes"))),
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


def _settings(brokers: Brokers, topics: Collection[str]) -> dict[tuple[str, str], str]:
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=SHOWN)
        for topic in topics
    ]
    if not resources:
        return {}
    answer: DescribeConfigsResponse = brokers.any(DescribeConfigsRequest(resources=resources))
    return {
        (result.resource_name, each.name): each.value
        for result in answer.results
        for each in result.configs
        if each.value is not None
    }


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)
