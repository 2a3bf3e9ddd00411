"""The cluster metadata of a broker: live brokers, topics, leaders and configurations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.coordination.znodes import BrokerRegistration, PartitionState
from headrace.protocol.locations import Location, Locations
from headrace.storage.topics import INTERNAL_TOPICS


def put_config(configs: dict[str, Mapping[str, str]], name: str, values: Mapping[str, str]) -> None:
    """Store the configuration of `name`, or remove an empty one."""
    if values:
        configs[name] = values
    else:
        configs.pop(name, None)


class BrokerEndpoint(NamedTuple):
    """A broker as clients of one listener see it."""

    id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic: its id, its replica assignment, and the state of each partition.

    Partitions are in ascending order. Their states are replaced in place; a topic with more partitions is
    another image.
    """

    name: str
    topic_id: bytes
    replicas: dict[int, Sequence[int]]
    states: dict[int, PartitionState]

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


@dataclass(slots=True)
class ClusterImage:
    """The cluster metadata as last read from ZooKeeper. Every change of it increments `version`."""

    cluster_id: str
    brokers: dict[int, BrokerRegistration] = field(default_factory=dict)
    broker_epochs: dict[int, int] = field(default_factory=dict)
    topics: dict[str, TopicImage] = field(default_factory=dict)
    topic_names: dict[bytes, str] = field(default_factory=dict)
    topic_configs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    group_configs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    users: dict[str, Mapping[str, str]] = field(default_factory=dict)  # SCRAM credentials, by mechanism
    controller_id: int = -1
    suspects: set[int] = field(default_factory=set)
    version: int = 0

    def put_topic(self, topic: TopicImage) -> None:
        old = self.topics.get(topic.name)
        if old is not None:
            self.topic_names.pop(old.topic_id, None)
        self.topics[topic.name] = topic
        self.topic_names[topic.topic_id] = topic.name
        self.version += 1

    def remove_topic(self, name: str) -> None:
        topic = self.topics.pop(name, None)
        if topic is not None:
            self.topic_names.pop(topic.topic_id, None)
            self.topic_configs.pop(name, None)
            self.version += 1

    def suspect(self, broker_id: int) -> None:
        """Hide a broker that has closed its connection until the new leaders of its partitions are known."""
        self.suspects.add(broker_id)
        self.version += 1

    def trust(self, broker_id: int) -> None:
        if broker_id in self.suspects:
            self.suspects.remove(broker_id)
            self.version += 1

    def has_partition(self, topic: str, partition: int) -> bool:
        known = self.topics.get(topic)
        return known is not None and partition in known.replicas

    def offline(self, replicas: Sequence[int]) -> list[int]:
        """Return the replicas whose broker is not registered."""
        return [replica for replica in replicas if replica not in self.brokers]

    @property
    def locations(self) -> Locations:
        """The racks and nodes of the live brokers."""
        return {broker.broker_id: Location(broker.rack, broker.node) for broker in self.brokers.values()}

    def nodes(self, listener: str) -> list[BrokerEndpoint]:
        """Return the live brokers that have `listener`, ordered by id."""
        nodes = []
        for broker_id, registration in sorted(self.brokers.items()):
            endpoint = registration.endpoint(listener)
            if endpoint is not None:
                nodes.append(BrokerEndpoint(broker_id, endpoint.host, endpoint.port, registration.rack))
        return nodes
