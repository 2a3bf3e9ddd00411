"""kafka-python against a real broker: producer, consumer and admin client, new and as old as they can be."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from wire.kafka_python import (
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    MessageSizeTooLargeError,
    NewPartitions,
    NewTopic,
    TopicAlreadyExistsError,
    TopicPartition,
    UnknownTopicOrPartitionError,
)
from wire.process import BrokerProcess
from wire.requests import fresh_name

TIMEOUT_S = 20
TIMESTAMP = 1_700_000_000_000
OLDEST = (0, 11)  # the first with record batches of today's format


@pytest.fixture(scope="module")
def admin(broker: BrokerProcess) -> Iterator[Any]:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as client:
        yield client


@pytest.fixture
def topic(admin: Any) -> str:
    name = fresh_name("kafka-python")
    admin.create_topics([NewTopic(name, 2, 1)])
    return name


def send(broker: BrokerProcess, topic: str, values: list[bytes], **options: Any) -> list[int]:
    """Produce to partition 0 and return the offsets."""
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, **options)) as producer:
        futures = [
            producer.send(
                topic, value, key=b"k", headers=[("h", value)], partition=0, timestamp_ms=TIMESTAMP + number
            )
            for number, value in enumerate(values)
        ]
        producer.flush(TIMEOUT_S)
        return [future.get(TIMEOUT_S).offset for future in futures]


def read(broker: BrokerProcess, topic: str, count: int, **options: Any) -> list[Any]:
    """The first `count` records of partition 0."""
    with closing(
        KafkaConsumer(bootstrap_servers=broker.bootstrap, consumer_timeout_ms=TIMEOUT_S * 1000, **options)
    ) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        return [record for _, record in zip(range(count), consumer, strict=False)]


@pytest.mark.parametrize("api_version", [None, OLDEST, (1, 0), (2, 5)])
@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_records_arrive_as_they_were_sent(
    broker: BrokerProcess, topic: str, acks: int | str, api_version: tuple[int, int] | None
) -> None:
    values = [b"value-%d" % number for number in range(300)]
    options: dict[str, Any] = {} if api_version is None else {"api_version": api_version}

    offsets = send(broker, topic, values, acks=acks, enable_idempotence=False, linger_ms=2, **options)

    records = read(broker, topic, 300, **options)
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == list(range(300))
    assert [record.timestamp for record in records] == [TIMESTAMP + number for number in range(300)]
    assert [dict(record.headers)["h"] for record in records] == values
    if acks != 0:
        assert offsets == list(range(300))


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_every_compression_passes_through(broker: BrokerProcess, topic: str, compression: str) -> None:
    values = [b"value-%d" % number * 20 for number in range(300)]

    send(broker, topic, values, compression_type=compression, linger_ms=5)

    assert [record.value for record in read(broker, topic, 300)] == values


def test_an_idempotent_producer_gets_offsets_in_order(broker: BrokerProcess, topic: str) -> None:
    values = [b"%d" % number for number in range(1000)]

    assert send(broker, topic, values, enable_idempotence=True, batch_size=200) == list(range(1000))
    assert [record.value for record in read(broker, topic, 1000)] == values


def test_a_record_that_is_too_large_raises_in_the_client(broker: BrokerProcess, topic: str) -> None:
    with pytest.raises(MessageSizeTooLargeError):
        send(broker, topic, [b"x" * 2_000_000], max_request_size=3_000_000)


@pytest.mark.parametrize("api_version", [None, OLDEST])
def test_offsets_and_times_are_found(
    broker: BrokerProcess, topic: str, api_version: tuple[int, int] | None
) -> None:
    send(broker, topic, [b"a", b"b", b"c"])
    partition, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    options: dict[str, Any] = {} if api_version is None else {"api_version": api_version}

    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap, **options)) as consumer:
        assert consumer.beginning_offsets([partition, empty]) == {partition: 0, empty: 0}
        assert consumer.end_offsets([partition, empty]) == {partition: 3, empty: 0}
        found = consumer.offsets_for_times({partition: TIMESTAMP + 1, empty: TIMESTAMP})
        assert (found[partition].offset, found[partition].timestamp) == (1, TIMESTAMP + 1)
        assert found[empty] is None
        assert consumer.partitions_for_topic(topic) == {0, 1}


def test_a_consumer_pauses_resumes_and_seeks(broker: BrokerProcess, topic: str) -> None:
    send(broker, topic, [b"%d" % number for number in range(50)])
    partition = TopicPartition(topic, 0)

    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap)) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 40)
        assert next(consumer).offset == 40
        consumer.pause(partition)
        assert consumer.poll(timeout_ms=200) == {}
        consumer.resume(partition)
        consumer.seek_to_end(partition)
        assert consumer.position(partition) == 50


def test_topics_are_made_listed_grown_and_deleted(admin: Any) -> None:
    name = fresh_name("managed")

    admin.create_topics([NewTopic(name, 1, 1, topic_configs={"retention.ms": "1000"})])
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([NewTopic(name, 1, 1)])
    admin.create_partitions({name: NewPartitions(3)})
    (described,) = admin.describe_topics([name])
    listed = admin.list_topics()
    admin.delete_topics([name])

    assert len(described["partitions"]) == 3
    assert name in str(listed)
    assert name not in str(admin.list_topics())
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([name])


def test_records_are_deleted_up_to_an_offset(broker: BrokerProcess, admin: Any, topic: str) -> None:
    send(broker, topic, [b"%d" % number for number in range(10)])

    admin.delete_records({TopicPartition(topic, 0): 6})

    assert [record.offset for record in read(broker, topic, 4)] == [6, 7, 8, 9]


def test_the_cluster_and_its_settings_are_described(admin: Any, topic: str) -> None:
    cluster = admin.describe_cluster()
    configs = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")

    assert [node["broker_id"] for node in cluster["brokers"]] == [1]
    assert "segment.bytes" in str(configs)


def test_a_setting_is_altered_and_seen(admin: Any, topic: str) -> None:
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "4321"})])

    assert "4321" in str(admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)]))


def test_log_directories_and_producers_are_described(broker: BrokerProcess, admin: Any, topic: str) -> None:
    send(broker, topic, [b"a", b"b"], enable_idempotence=True)

    (directory,) = admin.describe_log_dirs()
    producers = admin.describe_producers([TopicPartition(topic, 0)])

    assert topic in str(directory)
    assert "last_sequence" in str(producers)


def test_partitions_of_topics_are_described_page_by_page(admin: Any, topic: str) -> None:
    assert topic in str(admin.describe_topic_partitions([topic]))
