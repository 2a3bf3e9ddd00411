"""Administration of a cluster: `headrace.Admin`, and what `headrace topic` and `headrace config` do.

with Admin("127.0.0.1:9092") as admin:
    admin.create_topic("orders", partitions=6)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from confluent_kafka import TopicCollection
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from headrace.client.admin.arguments import (
    MOST_PARTITIONS,
    MOST_REPLICAS,
    Configs,
    broker_of,
    check_new_topic,
    check_topic,
    count_of,
    names_of,
    texts,
    total_of,
)
from headrace.client.admin.offsets import OffsetAdmin
from headrace.client.connection import TIMEOUT_S
from headrace.client.errors import BadSetting, ClientError
from headrace.protocol.ids import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition and where it stands; offsets are None while it has no leader."""

    index: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start_offset: int | None = None
    next_offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic, and what it sets itself."""

    name: str
    topic_id: str
    internal: bool
    partitions: tuple[Partition, ...]
    configs: Mapping[str, str]

    @property
    def replicas(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSummary:
    """A line in the list of topics."""

    name: str
    partitions: int
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A setting as a topic or broker has it, and who said so."""

    name: str
    value: str | None
    source: str
    is_default: bool
    read_only: bool


class Admin(OffsetAdmin):
    """Topics and settings, offsets and groups. Every call waits for its answer, or raises a ClientError."""

    # -- topics --------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Configs | None = None,
    ) -> Topic:
        """Make a topic and return it; TopicExists if it is there. None: as the brokers are configured."""
        check_new_topic(name)
        new = NewTopic(
            name,
            count_of("partitions", partitions, MOST_PARTITIONS),
            count_of("replicas", replicas, MOST_REPLICAS),
            config=texts({} if configs is None else configs, "configs"),
        )
        self._wait(name, lambda: self._client.create_topics([new], request_timeout=TIMEOUT_S)[name])
        return self.describe_topic(name)

    def list_topics(self) -> list[TopicSummary]:
        """Every topic, by name."""
        found = self._ask("the topics", lambda: self._client.list_topics(timeout=TIMEOUT_S))
        return [
            TopicSummary(
                name=name,
                partitions=len(topic.partitions),
                replicas=max((len(part.replicas) for part in topic.partitions.values()), default=0),
            )
            for name, topic in sorted(found.topics.items())
        ]

    def describe_topic(self, name: str) -> Topic:
        """A topic with its partitions, their offsets and its own settings; NoSuchTopic if there is none."""
        check_topic(name)
        found = self._wait(
            name,
            lambda: self._client.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_S)[name],
        )
        led = [TopicPartition(name, part.id) for part in found.partitions if part.leader is not None]
        starts = self._offsets(led, OffsetSpec.earliest())
        ends = self._offsets(led, OffsetSpec.latest())
        return Topic(
            name=found.name,
            topic_id=str(found.topic_id).translate(_AS_KAFKA_WRITES_IDS),
            internal=found.is_internal,
            partitions=tuple(
                Partition(
                    index=part.id,
                    leader=None if part.leader is None else part.leader.id,
                    replicas=tuple(node.id for node in part.replicas),
                    in_sync=tuple(node.id for node in part.isr),
                    start_offset=starts.get(TopicPartition(name, part.id)),
                    next_offset=ends.get(TopicPartition(name, part.id)),
                )
                for part in found.partitions
            ),
            configs={
                each.name: each.value or "" for each in self.topic_configs(name) if each.source == "topic"
            },
        )

    def add_partitions(self, name: str, total: int) -> None:
        """Have the topic split into `total` partitions from now on."""
        check_topic(name)
        more = NewPartitions(name, total_of(total))
        self._wait(name, lambda: self._client.create_partitions([more], request_timeout=TIMEOUT_S)[name])

    def delete_topic(self, name: str) -> None:
        """Remove a topic and everything in it."""
        check_topic(name)
        self._wait(name, lambda: self._client.delete_topics([name], request_timeout=TIMEOUT_S)[name])

    # -- settings ------------------------------------------------------------------------------

    def topic_configs(self, name: str) -> list[Config]:
        """Every setting of a topic, by name."""
        check_topic(name)
        return self._configs(ResourceType.TOPIC, name)

    def broker_configs(self, broker_id: int) -> list[Config]:
        """Every setting of a broker, by name."""
        return self._configs(ResourceType.BROKER, self._broker(broker_id))

    def alter_topic_configs(self, name: str, *, sets: Configs, unsets: Sequence[str] = ()) -> None:
        """Set some of a topic's settings, and give others back to the broker's; all or none."""
        check_topic(name)
        changes = _changes(sets, unsets)
        if names := names_of(unsets):  # a topic is content to unset what does not exist
            self._check_names(ResourceType.TOPIC, name, names)
        self._alter(ResourceType.TOPIC, name, changes)

    def alter_broker_configs(self, broker_id: int, *, sets: Configs, unsets: Sequence[str] = ()) -> None:
        """The same for a broker's settings, while it runs."""
        changes, name = _changes(sets, unsets), self._broker(broker_id)
        self._check_names(ResourceType.BROKER, name, [each.name for each in changes])  # a broker keeps any
        self._alter(ResourceType.BROKER, name, changes)

    def _check_names(self, kind: ResourceType, name: str, settings: Sequence[str]) -> None:
        """Raise ClientError for a setting that the resource does not describe: it is probably misspelt."""
        known = {each.name for each in self._configs(kind, name)} | _UNDESCRIBED
        for each in settings:
            if each not in known and not each.startswith(_FOR_A_LISTENER):
                near = get_close_matches(each[:_LONGEST_NAME], known, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                what = name if kind is ResourceType.TOPIC else f"broker {name}"
                raise ClientError(f"{what}: there is no setting {each!r}{hint}")

    def _broker(self, given: int) -> str:
        """Its name, if it is there: librdkafka would try to connect to any until its time is up."""
        broker_id = broker_of(given)
        brokers = self._ask("the brokers", lambda: self._client.list_topics(timeout=TIMEOUT_S)).brokers
        if broker_id not in brokers:
            there = ", ".join(str(each) for each in sorted(brokers))
            raise ClientError(f"there is no broker {broker_id}, only {there}")
        return str(broker_id)

    def _configs(self, kind: ResourceType, name: str) -> list[Config]:
        resource = ConfigResource(kind, name)
        found: Mapping[str, Any] = self._wait(
            name, lambda: self._client.describe_configs([resource], request_timeout=TIMEOUT_S)[resource]
        )
        return [
            Config(
                name=each.name,
                value=each.value,
                source=_SOURCES.get(ConfigSource(each.source), "unknown"),
                is_default=ConfigSource(each.source) is ConfigSource.DEFAULT_CONFIG,
                read_only=bool(each.is_read_only),
            )
            for each in sorted(found.values(), key=lambda each: str(each.name))
        ]

    def _alter(self, kind: ResourceType, name: str, changes: list[ConfigEntry]) -> None:
        resource = ConfigResource(kind, name, incremental_configs=changes)
        self._wait(
            name if kind is ResourceType.TOPIC else f"broker {name}",
            lambda: self._client.incremental_alter_configs([resource], request_timeout=TIMEOUT_S)[resource],
        )


def _changes(sets: Configs, unsets: Sequence[str]) -> list[ConfigEntry]:
    values, names = texts(sets, "sets"), names_of(unsets)
    if not values and not names:
        raise BadSetting("there is nothing to change: give sets={NAME: VALUE} or unsets=[NAME]")
    for name in names:
        if name in values:
            raise BadSetting(f"{name} is to be set, and is among `unsets`, too")
    return [
        *(ConfigEntry(name, values[name], incremental_operation=AlterConfigOpType.SET) for name in values),
        *(ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE) for name in names),
    ]


_AS_KAFKA_WRITES_IDS: Final = str.maketrans("+/", "-_")

_FOR_A_LISTENER: Final = (
    "listener.name."  # Kafka takes broker settings for one listener, and keeps them secret
)
_UNDESCRIBED: Final = frozenset(  # settings of a broker that Kafka describes only while they are set
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
_LONGEST_NAME: Final = 100  # characters of a name that somebody may have meant
_SOURCES: Final = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG: "topic",
    ConfigSource.DYNAMIC_BROKER_CONFIG: "broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "all brokers",
    ConfigSource.STATIC_BROKER_CONFIG: "broker's file",
    ConfigSource.DEFAULT_CONFIG: "default",
}
