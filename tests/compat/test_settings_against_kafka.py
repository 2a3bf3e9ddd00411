"""Settings, and requests about them, with Apache Kafka and with Headrace: the same names, the same answers.

Messages are in our own words; codes, values, types and synonyms are Kafka's. What differs on purpose is in
the tables below.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pytest

from compat.kafka_tools.java import KafkaJava
from compat.kafka_tools.server import KafkaServer
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import (
    alter_configs,
    alter_replica_log_dirs,
    api_versions,
    create_partitions,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from wire.configs import BROKER, DELETE, GROUP, SET, TOPIC
from wire.process import BrokerProcess
from wire.raw import RawClient
from wire.requests import create_topic

TIMEOUT_S: Final = 10
APPEND, SUBTRACT = 2, 3
DEFAULT: Final = 5  # a source
STATIC: Final = {
    "log.retention.hours": "2",
    "log.roll.hours": "4",
    "log.flush.scheduler.interval.ms": "7777",
    "log.segment.bytes": "2000000",
    "num.io.threads": "5",
    "group.consumer.session.timeout.ms": "46000",
}
OTHER_DEFAULTS: Final = {  # bounds of ours are lower, and there is no KRaft
    "broker.id",
    "log.cleaner.io.max.bytes.per.second",
    "log.dir",
    "log.dirs",
    "max.connections",
    "max.connections.per.ip",
    "queued.max.request.bytes",
}
OF_THE_TEST: Final = {  # what either broker is started with
    *STATIC,
    "advertised.listeners",
    "auto.create.topics.enable",
    "broker.id",
    "controller.listener.names",
    "controller.quorum.voters",
    "group.initial.rebalance.delay.ms",
    "listeners",
    "log.dirs",
    "node.id",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "process.roles",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
}
NOT_DYNAMIC: Final = {"listeners"}  # Kafka opens and closes them while it runs


class Broker(NamedTuple):
    """One of the two, asked as a person would."""

    client: RawClient
    log_dir: str

    def alter(self, kind: int, name: str, *changes: tuple[str, int, str | None]) -> str:
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                incremental_alter_configs.AlterableConfig(
                    name=setting, config_operation=operation, value=value
                )
                for setting, operation, value in changes
            ],
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[resource], validate_only=False
        )
        (answer,) = self.client.ask(request, 1).responses
        return ErrorCode(answer.error_code).name

    def replace(self, kind: int, name: str, *values: tuple[str, str | None]) -> str:
        resource = alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[alter_configs.AlterableConfig(name=setting, value=value) for setting, value in values],
        )
        request = alter_configs.AlterConfigsRequest(resources=[resource], validate_only=False)
        (answer,) = self.client.ask(request, 2).responses
        return ErrorCode(answer.error_code).name

    def describe(self, kind: int, name: str, *settings: str) -> Any:
        """The code, and each setting: name, value, read-only, source, sensitive, type, synonyms."""
        wanted = describe_configs.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=settings or None
        )
        request = describe_configs.DescribeConfigsRequest(resources=[wanted], include_synonyms=True)
        (answer,) = self.client.ask(request, 4).results
        return ErrorCode(answer.error_code).name, {
            each.name: (
                each.value,
                each.read_only,
                each.config_source,
                each.is_sensitive,
                each.config_type,
                [(place.name, place.value, place.source) for place in each.synonyms],
            )
            for each in sorted(answer.configs, key=lambda each: str(each.name))
        }

    def described(self, kind: int, name: str, values: Mapping[str, str]) -> Any:
        """The same, once the settings have these values: Kafka answers before a change is in force."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            found = self.describe(kind, name, *values)
            if {setting: value for setting, (value, *_) in found[1].items()} == values:
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def await_topic(self, name: str) -> None:
        """Wait until a new topic can be described: Kafka answers before it knows it everywhere."""
        deadline = time.monotonic() + TIMEOUT_S
        while not self.describe(TOPIC, name, "retention.ms")[1]:
            assert time.monotonic() < deadline, name
            time.sleep(0.05)

    def list(self, *types: int, version: int = 1) -> Any:
        request = list_config_resources.ListConfigResourcesRequest(resource_types=types)
        answer = self.client.ask(request, version)
        found = [(each.resource_type, each.resource_name) for each in answer.config_resources]
        return ErrorCode(answer.error_code).name, sorted(found)

    def listed(self, type_: int, *names: str) -> Any:
        """Return the resources of a type once they have these names: Kafka answers before that."""
        deadline = time.monotonic() + TIMEOUT_S
        while (found := self.list(type_))[1] != [(type_, name) for name in sorted(names)]:
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        return found

    def grow(self, *topics: tuple[str, int, Sequence[Sequence[int]] | None]) -> Any:
        request = create_partitions.CreatePartitionsRequest(
            topics=[
                create_partitions.CreatePartitionsTopic(
                    name=name,
                    count=count,
                    assignments=None
                    if given is None
                    else [create_partitions.CreatePartitionsAssignment(broker_ids=each) for each in given],
                )
                for name, count, given in topics
            ],
            timeout_ms=5000,
            validate_only=False,
        )
        answer = self.client.ask(request, 3)
        return sorted((each.name, ErrorCode(each.error_code).name) for each in answer.results)

    def move(self, path: str, topic: str, *partitions: int) -> Any:
        named = alter_replica_log_dirs.AlterReplicaLogDirTopic(name=topic, partitions=partitions)
        directory = alter_replica_log_dirs.AlterReplicaLogDir(path=path, topics=[named])
        answer = self.client.ask(alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[directory]), 2)
        return [
            (
                each.topic_name,
                sorted((p.partition_index, ErrorCode(p.error_code).name) for p in each.partitions),
            )
            for each in answer.results
        ]

    def versions(self, name: str, version: str) -> str:
        request = api_versions.ApiVersionsRequest(client_software_name=name, client_software_version=version)
        return ErrorCode(self.client.ask(request, 3).error_code).name


@pytest.fixture(scope="module")
def kafka(kafka_java: KafkaJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with (
        KafkaServer(kafka_java, tmp_path_factory.mktemp("kafka-settings"), STATIC) as server,
        RawClient(server.bootstrap) as client,
    ):
        yield Broker(client, str(server.log_dir))


@pytest.fixture(scope="module")
def headrace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {**STATIC, "auto.create.topics.enable": "false"}
    with (
        BrokerProcess(tmp_path_factory.mktemp("headrace-settings"), settings) as process,
        RawClient(process.bootstrap) as client,
    ):
        yield Broker(client, str(process.log_dir))
        assert process.complaints() == []


# -- names, types, defaults -------------------------------------------------------------------------


def test_every_broker_setting_of_kafka_is_known_with_its_type_and_default(
    kafka: Broker, headrace: Broker
) -> None:
    (_, theirs), (_, ours) = kafka.describe(BROKER, "1"), headrace.describe(BROKER, "1")

    assert theirs.keys() - ours.keys() == set()
    assert len(theirs) > 300
    for name, (value, read_only, _, sensitive, kind, _) in theirs.items():
        assert (ours[name][1], ours[name][3], ours[name][4]) == (
            read_only or name in NOT_DYNAMIC,
            sensitive,
            kind,
        ), name
        if name not in OTHER_DEFAULTS | OF_THE_TEST:
            assert (ours[name][0] or "") == (value or ""), name


def test_a_file_with_every_setting_of_kafka_is_accepted(kafka: Broker) -> None:
    _, theirs = kafka.describe(BROKER, "1")
    elsewhere = {"listeners", "advertised.listeners", "log.dirs", "controller.listener.names"}  # KRaft's
    given = {name: value for name, (value, *_) in theirs.items() if value and name not in elsewhere}
    refused = {"queued.max.request.bytes"}  # Kafka's -1: no bound

    config = BrokerConfig.of({name: value for name, value in given.items() if name not in refused})

    assert config.broker_id == 1


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "described"), (GROUP, "described")])
def test_every_other_setting_of_kafka_is_described_alike(
    kafka: Broker, headrace: Broker, kind: int, name: str
) -> None:
    if kind == TOPIC:
        for broker in (kafka, headrace):
            create_topic(broker.client, name)

    (_, theirs), (_, ours) = kafka.describe(kind, name), headrace.describe(kind, name)

    assert len(theirs) >= 3
    theirs.pop("min.insync.replicas", None)  # which Kafka has set for all brokers itself, for KIP-966
    assert {setting: ours[setting] for setting in theirs} == theirs


# -- conversations ----------------------------------------------------------------------------------


def about_topics(broker: Broker) -> Iterator[Any]:
    create_topic(broker.client, "asked")
    yield broker.alter(TOPIC, "nope", ("retention.ms", SET, "77"))
    for setting, operation, value in (
        ("retention.ms", SET, "77"),
        ("no.such", SET, "1"),
        ("no.such", DELETE, None),
        ("retention.ms", DELETE, None),
        ("retention.ms", DELETE, "3"),
        ("retention.ms", SET, None),
        ("retention.ms", SET, "x"),
        ("retention.ms", SET, "-2"),
        ("retention.ms", APPEND, "3"),
        ("max.message.bytes", SET, "99999999999"),
        ("remote.storage.enable", SET, "true"),
        ("remote.storage.enable", SET, "false"),
        ("local.retention.ms", SET, "5"),
        ("compression.gzip.level", SET, "0"),
        ("compression.gzip.level", SET, "9"),
        ("compression.zstd.level", SET, "23"),
        ("leader.replication.throttled.replicas", SET, "x"),
        ("leader.replication.throttled.replicas", SET, "0:1,1:1"),
        ("leader.replication.throttled.replicas", SUBTRACT, "0:1"),
        ("cleanup.policy", APPEND, "compact"),
        ("cleanup.policy", APPEND, "compact"),
        ("cleanup.policy", SUBTRACT, "delete"),
        ("cleanup.policy", APPEND, "shred"),
        ("preallocate", SET, "TRUE"),
        ("segment.ms", SET, " 5 "),
        ("internal.segment.bytes", SET, "2000"),
    ):
        yield setting, value, broker.alter(TOPIC, "asked", (setting, operation, value))
    yield broker.described(
        TOPIC,
        "asked",
        {
            "cleanup.policy": "compact",
            "internal.segment.bytes": "2000",
            "leader.replication.throttled.replicas": "1:1",
            "preallocate": "true",
            "segment.ms": "5",
        },
    )
    yield broker.alter(TOPIC, "asked", ("flush.ms", SET, "3"), ("flush.ms", SET, "4"))
    yield broker.alter(
        TOPIC, "asked", ("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "5")
    )
    yield broker.alter(TOPIC, "asked")
    yield broker.alter(TOPIC, "", ("retention.ms", SET, "1"))
    yield broker.replace(TOPIC, "asked", ("no.such", "1"))
    yield broker.replace(TOPIC, "asked", ("retention.ms", None))
    yield broker.replace(TOPIC, "asked", ("retention.ms", "1"), ("retention.ms", "2"))
    yield broker.replace(TOPIC, "asked", ("flush.ms", "88"))
    yield broker.described(TOPIC, "asked", {"flush.ms": "88", "preallocate": "false"})
    yield broker.replace(TOPIC, "asked")
    yield broker.described(TOPIC, "asked", {"flush.ms": "7777", "retention.ms": "7200000"})
    yield broker.replace(TOPIC, "nope", ("flush.ms", "88"))
    for name in ("nope", "a/b", ""):
        yield broker.describe(TOPIC, name)


def about_brokers(broker: Broker) -> Iterator[Any]:
    for resource in ("1", ""):
        for setting, operation, value in (
            ("no.such", SET, "1"),
            ("num.partitions", SET, "2"),
            ("num.partitions", DELETE, None),
            ("num.io.threads", SET, "x"),
            ("num.io.threads", SET, "0"),
            ("num.io.threads", SET, "4"),
            ("num.network.threads", SET, "4"),
            ("num.replica.fetchers", SET, "2"),
            ("num.recovery.threads.per.data.dir", SET, "3"),
            ("background.threads", SET, "11"),
            ("log.cleaner.threads", SET, "2"),
            ("log.cleaner.backoff.ms", SET, "1000"),
            ("log.cleaner.io.max.bytes.per.second", SET, "1000000"),
            ("log.cleaner.dedupe.buffer.size", SET, "100000000"),
            ("max.connections", SET, "1000"),
            ("max.connections.per.ip", SET, "1000"),
            ("max.connections.per.ip.overrides", SET, "127.0.0.9:3"),
            ("max.connection.creation.rate", SET, "1000"),
            ("producer.id.expiration.ms", SET, "100000"),
            ("replica.alter.log.dirs.io.max.bytes.per.second", SET, "10"),
            ("replica.alter.log.dirs.io.max.bytes.per.second", DELETE, None),
            ("leader.replication.throttled.rate", DELETE, None),
            ("follower.replication.throttled.rate", SET, "-1"),
            ("log.cleanup.policy", SET, ""),
            ("log.cleanup.policy", DELETE, None),
            ("compression.gzip.level", SET, "0"),
            ("ssl.keystore.location", SET, "/nowhere"),
            ("remote.log.reader.threads", SET, "11"),
        ):
            yield resource, setting, value, broker.alter(BROKER, resource, (setting, operation, value))
    yield broker.alter(BROKER, "1", ("log.cleaner.dedupe.buffer.size", SET, "100"))
    yield broker.alter(BROKER, "1", ("max.connections.per.ip.overrides", SET, "nonsense"))
    yield broker.alter(BROKER, "", ("listener.security.protocol.map", SET, "PLAINTEXT:PLAINTEXT"))
    yield broker.alter(BROKER, "1", ("listener.name.plaintext.max.connections", SET, "500"))
    for resource in ("2", "x"):
        yield broker.alter(BROKER, resource, ("num.io.threads", SET, "4"))
        yield broker.describe(BROKER, resource)
    yield broker.replace(BROKER, "1", ("num.partitions", "5"))


def about_where_values_come_from(broker: Broker) -> Iterator[Any]:
    create_topic(broker.client, "inheriting")
    broker.await_topic("inheriting")
    hours = (
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
        "log.roll.ms",
        "log.roll.hours",
    )
    yield broker.describe(BROKER, "1", *hours, "log.flush.interval.ms", "log.flush.scheduler.interval.ms")
    yield broker.describe(TOPIC, "inheriting", "retention.ms", "segment.ms", "flush.ms", "segment.bytes")
    yield broker.describe(GROUP, "inheriting", "consumer.session.timeout.ms")
    for resource, value in (("", "6"), ("1", "5")):
        yield broker.alter(BROKER, resource, ("log.retention.ms", SET, value), ("unknown", SET, value))
        yield broker.described(BROKER, "1", {"log.retention.ms": value})
    yield broker.describe(BROKER, "1", "unknown", "ssl.keystore.password", "log.retention.minutes")
    yield broker.described(TOPIC, "inheriting", {"retention.ms": "5"})
    yield broker.alter(TOPIC, "inheriting", ("retention.ms", SET, "9"))
    yield broker.described(TOPIC, "inheriting", {"retention.ms": "9"})
    yield broker.alter(BROKER, "1", ("listener.name.plaintext.max.connections", SET, "400"))
    _, found = broker.described(BROKER, "1", {"listener.name.plaintext.max.connections": "400"})
    value, *rest, synonyms = found["listener.name.plaintext.max.connections"]
    yield value, rest, [place for place in synonyms if place[2] != DEFAULT]
    _, shared = broker.describe(BROKER, "")
    yield {name: shared[name] for name in ("log.retention.ms", "unknown")}


def about_groups(broker: Broker) -> Iterator[Any]:
    for setting, operation, value in (
        ("consumer.session.timeout.ms", SET, "50000"),
        ("consumer.session.timeout.ms", SET, "1000"),
        ("consumer.session.timeout.ms", SET, "100000"),
        ("consumer.session.timeout.ms", SET, "x"),
        ("consumer.heartbeat.interval.ms", SET, "6000"),
        ("consumer.heartbeat.interval.ms", SET, "1"),
        ("consumer.heartbeat.interval.ms", SET, "16000"),
        ("consumer.heartbeat.interval.ms", APPEND, "16000"),
        ("share.auto.offset.reset", SET, "by_duration:PT1H"),
        ("share.auto.offset.reset", SET, "sometime"),
        ("share.isolation.level", SET, "read_committed"),
        ("streams.num.standby.replicas", SET, "3"),
        ("no.such", SET, "1"),
        ("no.such", DELETE, None),
    ):
        yield broker.alter(GROUP, "a/b c", (setting, operation, value))
    yield broker.alter(GROUP, "", ("consumer.session.timeout.ms", SET, "50000"))
    # The last change that was accepted.
    broker.described(GROUP, "a/b c", {"share.isolation.level": "read_committed"})
    yield broker.describe(GROUP, "a/b c")
    yield broker.describe(GROUP, "")
    yield broker.replace(GROUP, "a/b c", ("no.such", "1"))
    yield broker.replace(GROUP, "other", ("share.session.timeout.ms", "50000"))
    yield broker.listed(GROUP, "a/b c", "other")
    yield broker.alter(GROUP, "other", ("share.session.timeout.ms", DELETE, None))
    yield broker.listed(GROUP, "a/b c")


def about_resources(broker: Broker) -> Iterator[Any]:
    yield broker.list(BROKER)
    for types in ([0], [99], [TOPIC, 99]):
        yield broker.list(*types)
    for kind in (0, 1, 99):
        yield broker.alter(kind, "x", ("a", SET, "b"))
        yield broker.replace(kind, "x", ("a", "b"))
        yield broker.describe(kind, "x")


def about_log_directories(broker: Broker) -> Iterator[Any]:
    create_topic(broker.client, "moved", partitions=2)
    yield broker.move(broker.log_dir, "moved", 0, 1, 7)
    yield broker.move(broker.log_dir, "moved", 0, 0)
    yield broker.move(broker.log_dir, "nope", 0)
    yield broker.move(broker.log_dir, "a/b", 0)
    for path in ("/nowhere", "data", "", broker.log_dir + "/"):
        yield broker.move(path, "moved", 0)
        yield broker.move(path, "nope", 0)


def about_partitions(broker: Broker) -> Iterator[Any]:
    create_topic(broker.client, "grown", partitions=2)
    yield broker.grow(("grown", 3, None), ("grown", 4, None), ("nope", 5, None))
    for count, given in (
        (4, [[1]]),
        (3, [[1], [1]]),
        (3, []),
        (3, [[9]]),
        (3, [[1, 1]]),
        (4, [[1], []]),
        (2, None),
        (1, None),
        (0, None),
        (3, [[1]]),
    ):
        yield broker.grow(("grown", count, given))


def about_software(broker: Broker) -> Iterator[Any]:
    for name in ("", "a", "a b", "-a", "a-", ".a", "a.", "a_b", "a/b", "a-b.c", "é", "a\n", "x" * 5000):
        yield broker.versions(name, "1")
        yield broker.versions("a", name)


@pytest.mark.parametrize(
    "conversation",
    [
        about_topics,
        about_brokers,
        about_where_values_come_from,
        about_groups,
        about_resources,
        about_log_directories,
        about_partitions,
        about_software,
    ],
    ids=lambda each: each.__name__,
)
def test_both_brokers_give_the_same_answers(
    kafka: Broker, headrace: Broker, conversation: Callable[[Broker], Iterator[Any]]
) -> None:
    expected = list(conversation(kafka))
    ours = list(conversation(headrace))

    for mine, theirs in zip(ours, expected, strict=True):
        assert mine == theirs
