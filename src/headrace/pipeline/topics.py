"""Topics for results and dead letters, which are created if they do not exist."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from headrace.client.admin.admin import Admin
from headrace.client.errors import TopicExists
from headrace.client.wire.security import Security
from headrace.pipeline.declaration import Pipeline, Source
from headrace.pipeline.targets import Topic
from headrace.spark.options import SourceOptions
from headrace.spark.planner import Planner
from headrace.tables.reader.cluster import ClusterConnections

MAX_REPLICAS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create."""

    name: str
    partitions: int
    replicas: int


def missing_topics(pipeline: Pipeline, bootstrap: str) -> list[NewTopic]:
    """Return the missing topics of results and dead letters; NoSuchTopic if a topic of a source is missing.

    By default a topic gets as many partitions as the largest source of its rows.
    """
    with contextlib.closing(ClusterConnections(bootstrap, Security.of(pipeline.client))) as cluster:
        existing = cluster.topics()
        sizes = {name: partitions_of(source, bootstrap) for name, source in pipeline.sources.items()}
        replicas = min(MAX_REPLICAS, cluster.brokers())
    found: dict[str, NewTopic] = {}
    for sink in pipeline.queries():
        topic = sink.target
        if isinstance(topic, Topic) and topic.name not in existing and topic.name not in found:
            found[topic.name] = NewTopic(
                name=topic.name,
                partitions=topic.partitions or max(1, *(sizes[name] for name in pipeline.needed(sink))),
                replicas=topic.replicas or replicas,
            )
    return list(found.values())


def partitions_of(source: Source, bootstrap: str) -> int:
    """Return the number of partitions of a source; NoSuchTopic if one of its topics does not exist."""
    options = SourceOptions.of(source.reading(bootstrap), streaming=True)
    with contextlib.closing(Planner(options)) as planner:
        return len(planner.partitions())


def create(pipeline: Pipeline, bootstrap: str, topics: Iterable[NewTopic]) -> None:
    admin = Admin(bootstrap, pipeline.client)
    for topic in topics:
        with contextlib.suppress(TopicExists):  # created by another process meanwhile
            admin.create_topic(topic.name, partitions=topic.partitions, replicas=topic.replicas)
