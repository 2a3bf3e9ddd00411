"""Quotas of users on a cluster: other people's clients are throttled, and lose nothing."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cluster.waiting import until
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.schema.sasl_authenticate import SaslAuthenticateRequest
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest
from wire.kafka_python import KafkaConsumer, KafkaProducer
from wire.quotas import Entity, named, quotas_of, set_quotas
from wire.raw import RawClient
from wire.requests import ASK_VERSIONS, fresh_name
from wire.secured import SecuredCluster, sasl_cluster

pytestmark = pytest.mark.extended

TIMEOUT_S: Final = 30
VALUE: Final = b"x" * 10_000
COUNT: Final = 30
RATE: Final = 75_000  # bytes per second: 300 KB are twice the two seconds of all complete samples
PLAIN: Final = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
ALICE: Final = {"sasl_plain_username": "alice", "sasl_plain_password": "wonderland"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with sasl_cluster(tmp_path_factory.mktemp("quotas"), quota_window_num="3") as made:
        yield made


def connect(cluster: SecuredCluster, broker: int = 0, client_id: str = "admin") -> RawClient:
    """A connection of alice to one broker."""
    client = RawClient(cluster.bootstrap.split(",")[broker], client_id)
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    client.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonderland"), 2)
    return client


def limit(cluster: SecuredCluster, client_id: str, **quotas: float) -> None:
    """Set quotas of alice's client id, and wait until both brokers have them."""
    entity: Entity = {"user": "alice", "client-id": client_id}
    with connect(cluster) as first, connect(cluster, 1) as second:
        set_quotas(first, entity, **quotas)
        until(
            "the other broker has the quotas",
            lambda: quotas_of(second, named("client-id", client_id)) == {tuple(entity.items()): quotas},
        )


def make_topic(cluster: SecuredCluster, partitions: int = 1) -> str:
    name = fresh_name("throttled")
    admin = AdminClient(cluster.settings())
    admin.create_topics([NewTopic(name, partitions, 2)])[name].result(TIMEOUT_S)
    return name


def test_confluent_kafka_reports_its_throttle_times_and_loses_nothing(cluster: SecuredCluster) -> None:
    topic, app = make_topic(cluster), fresh_name("confluent")
    limit(cluster, app, producer_byte_rate=RATE, consumer_byte_rate=RATE)
    throttled: list[float] = []
    heard = {"throttle_cb": lambda event: throttled.append(event.throttle_time)}
    settings = cluster.settings(client_id=app, linger_ms=0, batch_num_messages=1) | heard

    producer = Producer(settings)
    for _ in range(COUNT):
        producer.produce(topic, VALUE)
    assert producer.flush(TIMEOUT_S) == 0
    producer.poll(0)
    assert sum(throttled) > 0

    throttled.clear()
    fetch = {"fetch.message.max.bytes": 50_000, "group.id": app}
    consumer = Consumer(cluster.settings(client_id=app) | fetch | heard)
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = [message.value() for message in consumer.consume(COUNT, TIMEOUT_S)]
    consumer.close()
    assert values == [VALUE] * COUNT
    assert sum(throttled) > 0


def test_kafka_python_is_throttled_and_loses_nothing(cluster: SecuredCluster) -> None:
    topic, app = make_topic(cluster), fresh_name("python")
    limit(cluster, app, producer_byte_rate=RATE, consumer_byte_rate=RATE)
    settings: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "client_id": app, **PLAIN, **ALICE}

    producer = KafkaProducer(**settings, batch_size=0)
    for _ in range(COUNT):
        producer.send(topic, VALUE)
    producer.flush(TIMEOUT_S)
    assert _throttle_time(producer.metrics()) > 0
    producer.close()

    consumer = KafkaConsumer(
        topic, **settings, auto_offset_reset="earliest", group_id=None, max_partition_fetch_bytes=50_000
    )
    values = [next(consumer).value for _ in range(COUNT)]
    assert values == [VALUE] * COUNT
    assert _throttle_time(consumer.metrics()) > 0
    consumer.close()


def _throttle_time(metrics: Any) -> float:
    """The longest throttle time in a client's metrics."""
    groups = metrics.values()
    return max(
        float(value) for group in groups for name, value in group.items() if "throttle-time-max" in name
    )


def test_aiokafka_loses_nothing(cluster: SecuredCluster) -> None:
    topic, app = make_topic(cluster), fresh_name("aio")
    limit(cluster, app, producer_byte_rate=RATE, consumer_byte_rate=RATE)
    settings: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "client_id": app, **PLAIN, **ALICE}

    async def write_and_read() -> list[bytes | None]:
        async with AIOKafkaProducer(**settings, max_batch_size=12_000) as producer:
            for _ in range(COUNT):
                await producer.send(topic, VALUE)
        async with AIOKafkaConsumer(
            topic, **settings, auto_offset_reset="earliest", max_partition_fetch_bytes=50_000
        ) as consumer:
            return [(await consumer.getone()).value for _ in range(COUNT)]

    assert asyncio.run(asyncio.wait_for(write_and_read(), TIMEOUT_S)) == [VALUE] * COUNT


def test_mutations_are_charged_by_the_controller_and_any_broker_mutes_the_client(
    cluster: SecuredCluster,
) -> None:
    app = fresh_name("mutating")
    limit(cluster, app, controller_mutation_rate=0.1)

    for broker in range(2):
        with connect(cluster, broker, app) as client:
            client.ask(_create(3), 7)  # the first exhausts the quota
        with connect(cluster, broker, app) as client:
            refused = client.ask(_create(1), 7)
            assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            assert 1_000 < refused.throttle_time_ms <= 20_000
            client.send(ASK_VERSIONS, 0)
            assert not client.has_something_to_read(0.3)


def test_topics_of_metadata_requests_are_charged_by_the_controller_on_any_broker(
    cluster: SecuredCluster,
) -> None:
    app = fresh_name("asking")
    limit(cluster, app, controller_mutation_rate=0.001)
    codes = []
    for broker in (0, 1, 0, 1):
        topic = MetadataRequestTopic(name=fresh_name("asked"))
        with connect(cluster, broker, app) as client:
            found = client.ask(MetadataRequest(topics=[topic], allow_auto_topic_creation=True), 12)
        codes.append(found.topics[0].error_code)

    assert codes == [ErrorCode.NONE, *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3]


def _create(partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=fresh_name("made"), num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def test_replication_is_not_throttled_by_the_quota_of_the_brokers_user(cluster: SecuredCluster) -> None:
    topic = make_topic(cluster)
    with connect(cluster) as admin:
        set_quotas(admin, {"user": "broker"}, consumer_byte_rate=1.0, request_percentage=0.001)
        try:
            producer = Producer(cluster.settings(acks="all"))
            for _ in range(COUNT):
                producer.produce(topic, VALUE)
            assert producer.flush(TIMEOUT_S) == 0
        finally:
            set_quotas(admin, {"user": "broker"}, consumer_byte_rate=None, request_percentage=None)
