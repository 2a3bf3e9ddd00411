"""confluent-kafka's admin client: topics, partitions, records, offsets, settings, the cluster."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from wire.confluent import TIMEOUT_S, make_topic, read, send, settings
from wire.process import BrokerProcess
from wire.requests import fresh_name

TIMESTAMP = 1_700_000_000_000


@pytest.fixture
def admin(broker: BrokerProcess) -> Any:
    return AdminClient(settings(broker.bootstrap))


def outcome(futures: dict[Any, Any]) -> dict[Any, Any]:
    """What became of each: the result, or the number of the error."""
    found = {}
    for key, future in futures.items():
        try:
            found[key] = future.result(TIMEOUT_S)
        except KafkaException as error:
            found[key] = error.args[0].code()
    return found


def test_each_topic_of_a_request_is_made_or_refused_on_its_own(admin: Any) -> None:
    good, bad, large = fresh_name("good"), "bad/name", fresh_name("large")
    topics = [
        NewTopic(good, num_partitions=3, replication_factor=1),
        NewTopic(bad, num_partitions=1, replication_factor=1),
        NewTopic(large, num_partitions=1, replication_factor=3),
    ]

    assert outcome(admin.create_topics(topics)) == {
        good: None,
        bad: KafkaError.TOPIC_EXCEPTION,
        large: KafkaError.INVALID_REPLICATION_FACTOR,
    }
    assert outcome(admin.create_topics([NewTopic(good, num_partitions=3)])) == {
        good: KafkaError.TOPIC_ALREADY_EXISTS
    }
    assert len(admin.list_topics(timeout=TIMEOUT_S).topics[good].partitions) == 3
    assert large not in admin.list_topics(timeout=TIMEOUT_S).topics


@pytest.mark.parametrize(
    ("config", "partitions", "code"),
    [
        ({"retention.ms": "soon"}, 1, KafkaError.INVALID_CONFIG),
        ({"no.such.setting": "1"}, 1, KafkaError.INVALID_CONFIG),
        ({"cleanup.policy": "burn"}, 1, KafkaError.INVALID_CONFIG),
        ({}, 0, KafkaError.INVALID_PARTITIONS),
    ],
)
def test_a_topic_that_cannot_be_is_refused(
    admin: Any, config: dict[str, str], partitions: int, code: int
) -> None:
    name = fresh_name("refused")
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)

    assert outcome(admin.create_topics([topic])) == {name: code}


def test_validation_alone_makes_nothing(admin: Any) -> None:
    name = fresh_name("imagined")

    made = outcome(admin.create_topics([NewTopic(name, num_partitions=2)], validate_only=True))

    assert made == {name: None}
    assert name not in admin.list_topics(timeout=TIMEOUT_S).topics


def test_replicas_can_be_assigned_by_hand(admin: Any) -> None:
    good, bad = fresh_name("by-hand"), fresh_name("by-hand")
    topics = [
        NewTopic(good, num_partitions=2, replica_assignment=[[1], [1]]),
        NewTopic(bad, num_partitions=1, replica_assignment=[[7]]),
    ]

    assert outcome(admin.create_topics(topics)) == {good: None, bad: KafkaError.INVALID_REPLICA_ASSIGNMENT}
    partitions = admin.list_topics(timeout=TIMEOUT_S).topics[good].partitions
    assert {number: (each.leader, each.replicas, each.isrs) for number, each in partitions.items()} == {
        0: (1, [1], [1]),
        1: (1, [1], [1]),
    }


def test_a_deleted_topic_takes_its_records_along(broker: BrokerProcess) -> None:
    name = fresh_name("reborn")
    admin = make_topic(broker.bootstrap, name)
    send(broker.bootstrap, name, [{"value": b"old"}] * 5)

    assert outcome(admin.delete_topics([name, "never-was"])) == {
        name: None,
        "never-was": KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
    left = [path.name for path in broker.log_dir.glob(f"{name}-*")]
    assert all(each.endswith("-delete") for each in left), left  # a thread unlinks these
    make_topic(broker.bootstrap, name)
    send(broker.bootstrap, name, [{"value": b"new"}])

    assert [(message.value(), message.offset()) for message in read(broker.bootstrap, name)] == [(b"new", 0)]


def test_partitions_are_added_and_old_records_stay(broker: BrokerProcess) -> None:
    name = fresh_name("grown")
    admin = make_topic(broker.bootstrap, name)
    send(broker.bootstrap, name, [{"value": b"first", "partition": 0}])

    assert outcome(admin.create_partitions([NewPartitions(name, 4)])) == {name: None}
    assert outcome(admin.create_partitions([NewPartitions(name, 4)])) == {name: KafkaError.INVALID_PARTITIONS}
    assert outcome(admin.create_partitions([NewPartitions("never-was", 4)])) == {
        "never-was": KafkaError.UNKNOWN_TOPIC_OR_PART
    }
    send(broker.bootstrap, name, [{"value": b"last", "partition": 3}])

    received = read(broker.bootstrap, name, partitions=range(4))
    assert {(message.partition(), message.value()) for message in received} == {(0, b"first"), (3, b"last")}


def test_records_deleted_before_an_offset_are_gone(broker: BrokerProcess) -> None:
    name = fresh_name("trimmed")
    admin = make_topic(broker.bootstrap, name)
    send(broker.bootstrap, name, [{"value": b"%d" % n} for n in range(10)])

    ((_, result),) = outcome(admin.delete_records([TopicPartition(name, 0, 4)])).items()
    assert result.low_watermark == 4
    assert [int(message.value()) for message in read(broker.bootstrap, name)] == [4, 5, 6, 7, 8, 9]

    beyond = outcome(admin.delete_records([TopicPartition(name, 0, 11)]))
    assert list(beyond.values()) == [KafkaError.OFFSET_OUT_OF_RANGE]

    ((_, result),) = outcome(admin.delete_records([TopicPartition(name, 0, -1)])).items()
    assert result.low_watermark == 10
    assert read(broker.bootstrap, name) == []


def test_a_topic_that_is_only_compacted_keeps_its_records(broker: BrokerProcess) -> None:
    name = fresh_name("kept")
    admin = make_topic(broker.bootstrap, name, cleanup_policy="compact")
    send(broker.bootstrap, name, [{"key": b"k", "value": b"v"}])

    refused = outcome(admin.delete_records([TopicPartition(name, 0, 1)]))

    assert list(refused.values()) == [KafkaError.POLICY_VIOLATION]


def test_a_topic_without_a_cleanup_policy_keeps_its_records_until_somebody_deletes_them(
    broker: BrokerProcess,
) -> None:
    name = fresh_name("kept")
    admin = make_topic(broker.bootstrap, name, cleanup_policy="")
    send(broker.bootstrap, name, [{"key": b"k", "value": b"v"}])
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    (described,) = outcome(admin.describe_configs([resource])).values()
    assert described["cleanup.policy"].value == ""

    ((_, result),) = outcome(admin.delete_records([TopicPartition(name, 0, 1)])).items()

    assert result.low_watermark == 1


def test_offsets_are_listed_for_every_question(broker: BrokerProcess) -> None:
    name = fresh_name("listed")
    admin = make_topic(broker.bootstrap, name)
    times = [TIMESTAMP, TIMESTAMP + 2000, TIMESTAMP + 1000]
    send(broker.bootstrap, name, [{"value": b"x", "timestamp": time} for time in times])

    def offset(spec: Any) -> int:
        ((_, result),) = outcome(admin.list_offsets({TopicPartition(name, 0): spec})).items()
        found: int = result.offset
        return found

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 3
    assert offset(OffsetSpec.max_timestamp()) == 1
    assert offset(OffsetSpec.for_timestamp(TIMESTAMP + 500)) == 1
    assert offset(OffsetSpec.for_timestamp(TIMESTAMP + 5000)) == -1
    unknown = outcome(admin.list_offsets({TopicPartition("never-was", 0): OffsetSpec.latest()}))
    assert list(unknown.values()) == [KafkaError._NOENT]  # the client has looked it up before


def test_the_cluster_describes_itself(admin: Any, broker: BrokerProcess) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True).result(TIMEOUT_S)

    assert [(node.id, f"{node.host}:{node.port}") for node in cluster.nodes] == [(1, broker.bootstrap)]
    assert cluster.controller.id == 1
    assert cluster.cluster_id == admin.cluster_id(TIMEOUT_S)
    assert cluster.authorized_operations


def test_topics_are_described_with_their_ids(broker: BrokerProcess) -> None:
    name = fresh_name("described")
    admin = make_topic(broker.bootstrap, name, partitions=2)

    found = admin.describe_topics(TopicCollection([name, "never-was"]), include_authorized_operations=True)
    described = outcome(found)

    assert described["never-was"] == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert [partition.leader.id for partition in described[name].partitions] == [1, 1]
    assert str(described[name].topic_id)
    assert described[name].authorized_operations
    assert not described[name].is_internal


def config_of(admin: Any, resource: ConfigResource) -> dict[str, Any]:
    found: dict[str, Any] = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    return found


def test_settings_of_a_topic_tell_where_they_come_from(broker: BrokerProcess) -> None:
    name = fresh_name("configured")
    admin = make_topic(broker.bootstrap, name, retention_ms="12345")

    found = config_of(admin, ConfigResource(ResourceType.TOPIC, name))

    assert (found["retention.ms"].value, found["retention.ms"].source) == (
        "12345",
        ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
    )
    assert found["segment.bytes"].source == ConfigSource.DEFAULT_CONFIG.value
    assert found["segment.bytes"].is_default
    assert "log.segment.bytes" in found["segment.bytes"].synonyms


def test_settings_of_an_unknown_topic_are_an_error(admin: Any) -> None:
    resource = ConfigResource(ResourceType.TOPIC, "never-was")

    assert list(outcome(admin.describe_configs([resource])).values()) == [KafkaError.UNKNOWN_TOPIC_OR_PART]


def test_settings_of_the_broker_are_described(admin: Any) -> None:
    found = config_of(admin, ConfigResource(ResourceType.BROKER, "1"))

    assert found["broker.id"].value == "1"
    assert found["broker.id"].is_read_only
    assert (found["log.retention.hours"].value, found["log.retention.ms"].value) == ("168", None)


def change(admin: Any, kind: ResourceType, name: str, *entries: tuple[str, str | None, Any]) -> Any:
    """Alter settings one by one; returns None or the number of the error."""
    incremental = [
        ConfigEntry(setting, value, incremental_operation=operation) for setting, value, operation in entries
    ]
    resource = ConfigResource(kind, name, incremental_configs=incremental)
    return outcome(admin.incremental_alter_configs([resource]))[resource]


def test_a_topic_setting_takes_effect_at_once_and_goes_again(broker: BrokerProcess) -> None:
    name = fresh_name("altered")
    admin = make_topic(broker.bootstrap, name, retention_ms="12345")
    resource = ConfigResource(ResourceType.TOPIC, name)

    limit = ("max.message.bytes", "1000", AlterConfigOpType.SET)
    assert change(admin, ResourceType.TOPIC, name, limit) is None
    refused = send(broker.bootstrap, name, [{"value": b"x" * 2000}])
    assert refused[0][0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert config_of(admin, resource)["retention.ms"].value == "12345"

    gone = ("max.message.bytes", None, AlterConfigOpType.DELETE)
    assert change(admin, ResourceType.TOPIC, name, gone) is None
    assert send(broker.bootstrap, name, [{"value": b"x" * 2000}])[0][0] is None
    assert config_of(admin, resource)["max.message.bytes"].is_default


def test_lists_are_appended_to_and_subtracted_from(broker: BrokerProcess) -> None:
    name = fresh_name("policies")
    admin = make_topic(broker.bootstrap, name)
    resource = ConfigResource(ResourceType.TOPIC, name)

    assert (
        change(admin, ResourceType.TOPIC, name, ("cleanup.policy", "compact", AlterConfigOpType.APPEND))
        is None
    )
    assert set(config_of(admin, resource)["cleanup.policy"].value.split(",")) == {"delete", "compact"}
    assert (
        change(admin, ResourceType.TOPIC, name, ("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT))
        is None
    )
    assert config_of(admin, resource)["cleanup.policy"].value == "compact"


@pytest.mark.parametrize(("setting", "value"), [("retention.ms", "soon"), ("no.such.setting", "1")])
def test_a_bad_change_of_a_topic_changes_nothing(broker: BrokerProcess, setting: str, value: str) -> None:
    name = fresh_name("unaltered")
    admin = make_topic(broker.bootstrap, name)
    entries = [("segment.ms", "77777", AlterConfigOpType.SET), (setting, value, AlterConfigOpType.SET)]

    assert change(admin, ResourceType.TOPIC, name, *entries) == KafkaError.INVALID_CONFIG
    assert config_of(admin, ConfigResource(ResourceType.TOPIC, name))["segment.ms"].is_default


def test_a_setting_of_the_broker_changes_what_its_topics_inherit(own_broker: BrokerProcess) -> None:
    admin = make_topic(own_broker.bootstrap, "inheriting")

    limit = ("message.max.bytes", "1000", AlterConfigOpType.SET)
    assert change(admin, ResourceType.BROKER, "1", limit) is None

    refused = send(own_broker.bootstrap, "inheriting", [{"value": b"x" * 2000}])
    assert refused[0][0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    own_broker.stop()
    own_broker.start()
    assert config_of(admin, ConfigResource(ResourceType.BROKER, "1"))["message.max.bytes"].value == "1000"
    refused = send(own_broker.bootstrap, "inheriting", [{"value": b"x" * 2000}])
    assert refused[0][0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_a_setting_that_needs_a_restart_cannot_be_altered(admin: Any) -> None:
    entry = ("broker.id", "7", AlterConfigOpType.SET)

    assert change(admin, ResourceType.BROKER, "1", entry) in {
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_REQUEST,
    }
