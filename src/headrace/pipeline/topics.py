"""What a pipeline needs and does not find: topics for results and for dead letters. They are made."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from headrace.client.admin.admin import Admin
from headrace.client.errors import TopicExists
from headrace.client.wire.security import Security
from headrace.pipeline.declaration import Pipeline, Sink, Source
from headrace.pipeline.targets import Topic
from headrace.spark.cluster import Cluster
from headrace.spark.options import SourceOptions
from headrace.spark.planning import Planner

MOST_REPLICAS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to be."""

    name: str
    partitions: int
    replicas: int


def missing_topics(pipeline: Pipeline, bootstrap: str) -> list[NewTopic]:
    """Those that results and dead letters go to and that are not there; NoSuchTopic if a source's is not.

    One that does not say otherwise gets as many partitions as what is read into it.
    """
    cluster = Cluster(bootstrap, Security.of(pipeline.client))
    try:
        there = cluster.topics()
        sizes = {name: partitions_of(source, bootstrap) for name, source in pipeline.sources.items()}
        replicas = min(MOST_REPLICAS, cluster.brokers())
    finally:
        cluster.close()
    found: dict[str, NewTopic] = {}
    for name, topic, partitions in _wanted(pipeline, sizes):
        if name not in there and name not in found:
            wanted = (topic.replicas if topic else None) or replicas
            found[name] = NewTopic(name=name, partitions=partitions, replicas=wanted)
    return list(found.values())


def partitions_of(source: Source, bootstrap: str) -> int:
    """How many partitions it has; NoSuchTopic if a topic that it names is not there."""
    planner = Planner(SourceOptions.of(source.reading(bootstrap), streaming=True))
    try:
        return len(planner.partitions())
    finally:
        planner.close()


def _wanted(pipeline: Pipeline, sizes: dict[str, int]) -> Iterator[tuple[str, Topic | None, int]]:
    for sink in pipeline.sinks.values():
        if isinstance(sink.target, Topic):
            yield sink.target.name, sink.target, sink.target.partitions or _as_read(pipeline, sink, sizes)
    for source in pipeline.sources.values():
        if source.has_dead_letters:
            yield source.dead_letters, None, max(1, sizes[source.name])


def _as_read(pipeline: Pipeline, sink: Sink, sizes: dict[str, int]) -> int:
    return max(1, *(sizes[name] for name in pipeline.needed(sink)))


def create(pipeline: Pipeline, bootstrap: str, topics: Iterable[NewTopic]) -> None:
    admin = Admin(bootstrap, pipeline.client)
    for each in topics:
        with contextlib.suppress(TopicExists):  # somebody else was faster
            admin.create_topic(each.name, partitions=each.partitions, replicas=each.replicas)
