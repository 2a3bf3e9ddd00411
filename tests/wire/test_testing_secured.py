"""Secured brokers of `headrace.testing`: TLS, SCRAM and ACLs, with clients that are not ours."""

import asyncio
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from headrace.client.errors import ClientError
from headrace.testing import Broker, Cluster
from headrace.testing.client_settings import ClientSettings
from wire.kafka_python import KafkaConsumer, KafkaProducer, TopicAuthorizationFailedError
from wire.requests import fresh_name

TIMEOUT_S: Final = 30
FROM_START: Final = {"auto.offset.reset": "earliest"}


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with Broker(secure=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def alice(secured: Broker) -> ClientSettings:
    return secured.add_user("alice", produces=["orders"], consumes=["orders"], groups=["billing", "other"])


def produce(settings: dict[str, Any], topic: str, value: str) -> KafkaError | None:
    """Write a record with confluent-kafka, and return its error."""
    told: list[KafkaError | None] = []
    producer = Producer(settings | {"message.timeout.ms": TIMEOUT_S * 1000})
    producer.produce(topic, value, on_delivery=lambda error, _: told.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    return told[0]


def test_the_fixture_itself_is_the_administrator(secured: Broker) -> None:
    topic = fresh_name("own")
    secured.create_topic(topic, partitions=2)
    secured.produce(topic, "tea", partition=1)

    assert [(each.partition, each.value) for each in secured.records(topic, count=1)] == [(1, b"tea")]
    assert topic in [each.name for each in secured.admin.list_topics()]
    assert produce(secured.client.confluent_kafka, topic, "coffee") is None


def test_confluent_kafka(alice: ClientSettings) -> None:
    assert produce(alice.confluent_kafka, "orders", "confluent") is None
    consumer = Consumer(alice.confluent_kafka | FROM_START | {"group.id": "billing"})
    consumer.subscribe(["orders"])
    with closing(consumer):
        (message,) = consumer.consume(1, timeout=TIMEOUT_S)
    assert message.error() is None
    assert message.value() is not None


def test_kafka_python(alice: ClientSettings) -> None:
    with closing(KafkaProducer(**alice.kafka_python)) as producer:
        producer.send("orders", b"kafka-python").get(TIMEOUT_S)
    consumer = KafkaConsumer(
        "orders",
        **alice.kafka_python,
        group_id="other",
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT_S * 1000,
    )
    with closing(consumer):
        assert next(consumer).value is not None
    with (
        closing(KafkaProducer(**alice.kafka_python)) as producer,
        pytest.raises(TopicAuthorizationFailedError),
    ):
        producer.send("salaries", b"1").get(TIMEOUT_S)


def test_aiokafka(alice: ClientSettings) -> None:
    async def there_and_back() -> Any:
        async with AIOKafkaProducer(**alice.aiokafka) as producer:
            await producer.send_and_wait("orders", b"aiokafka")
        consumer = AIOKafkaConsumer(
            "orders", **alice.aiokafka, group_id="billing", auto_offset_reset="earliest"
        )
        async with consumer, asyncio.timeout(TIMEOUT_S):
            return (await consumer.getone()).value

    assert asyncio.run(there_and_back()) is not None


def test_users_may_do_what_acls_allow_and_nothing_else(secured: Broker, alice: ClientSettings) -> None:
    secured.create_topic("salaries")
    error = produce(alice.confluent_kafka, "salaries", "1")

    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert secured.records("salaries") == []
    consumer = Consumer(alice.confluent_kafka | {"group.id": "not-mine"})
    consumer.subscribe(["orders"])
    with closing(consumer):
        message = consumer.poll(TIMEOUT_S)
    assert message is not None
    assert (refused := message.error()) is not None
    assert refused.code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_nobody_connects_without_the_password_or_the_ca(secured: Broker, alice: ClientSettings) -> None:
    wrong = alice.confluent_kafka | {"sasl.password": "guessed", "log_level": 0}
    errors: list[KafkaError] = []
    consumer = Consumer(wrong | {"group.id": "billing", "error_cb": errors.append})
    with closing(consumer), pytest.raises(KafkaException):
        consumer.list_topics(timeout=3)
    assert KafkaError._AUTHENTICATION in [each.code() for each in errors]
    host, _, port = secured.bootstrap.rpartition(":")
    with (
        socket.create_connection((host, int(port)), TIMEOUT_S) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        ssl.create_default_context().wrap_socket(plain, server_hostname=host)


def test_faults_apply_to_secured_clients(secured: Broker, alice: ClientSettings) -> None:
    with secured.faults.hang_up("Produce", after="append") as fault:
        assert produce(alice.confluent_kafka | {"enable.idempotence": True}, "orders", "again") is None
    assert len(fault.hits) == 1


def test_no_password_is_in_a_repr(secured: Broker, alice: ClientSettings) -> None:
    assert alice.user is not None
    for each in (alice, alice.user, alice.connection, secured.client):
        assert alice.user.password not in repr(each)
    assert alice.properties.stat().st_mode & 0o777 == 0o600


def test_passwords_and_names_may_have_any_characters(secured: Broker) -> None:
    topic = fresh_name("odd")
    odd = secured.add_user('o"d/d', password='a "b\\c', produces=[topic])
    assert produce(odd.confluent_kafka, topic, "1") is None
    assert produce(odd.connection.librdkafka(), topic, "2") is None
    assert odd.connection == odd.connection.load(odd.properties)


def test_the_gateway_serves_https_to_the_same_users(secured: Broker) -> None:
    user = secured.client.user
    assert user is not None
    context = ssl.create_default_context(cafile=str(user.ca))
    assert secured.http.startswith("https://")
    with pytest.raises(HTTPError) as refused:
        urlopen(f"{secured.http}/subjects", context=context)
    refused.value.close()
    assert refused.value.code == 401
    credentials = b64encode(f"{user.name}:{user.password}".encode()).decode()
    asked = Request(f"{secured.http}/subjects", headers={"Authorization": f"Basic {credentials}"})
    with urlopen(asked, context=context) as answer:
        assert answer.read() == b"[]"


def test_settings_that_secure_decides_are_refused() -> None:
    broker = Broker(secure=True, settings={"authorizer.class.name": ""})
    with pytest.raises(ValueError, match=r"authorizer\.class\.name is decided by secure=True"):
        broker.start()


def test_a_plain_broker_has_client_settings_but_no_users(headrace: Broker) -> None:
    assert headrace.client.confluent_kafka == {"bootstrap.servers": headrace.bootstrap}
    assert produce(headrace.client.confluent_kafka, "orders", "tea") is None
    with closing(KafkaProducer(**headrace.client.kafka_python)) as producer:
        producer.send("orders", b"milk").get(TIMEOUT_S)
    assert len(headrace.records("orders", count=2)) == 2
    with pytest.raises(RuntimeError, match="only a secured cluster has users: use secure=True"):
        headrace.add_user("alice")


@pytest.mark.headrace(secure=True, brokers=2, topics={"orders": 4})
def test_a_secured_cluster_survives_a_broker_that_dies(headrace_cluster: Cluster) -> None:
    bob = headrace_cluster.add_user("bob", produces=["orders"])
    producer = Producer(bob.confluent_kafka | {"acks": "all"})
    leader = headrace_cluster.leader_of("orders", 0)
    for number in range(20):
        producer.produce("orders", str(number))
        if number == 10:
            producer.flush()
            headrace_cluster.kill(leader)
    assert producer.flush(TIMEOUT_S) == 0
    assert len(headrace_cluster.records("orders")) == 20
    headrace_cluster.restart(leader)
    headrace_cluster.wait_until_in_sync()


@pytest.mark.headrace(secure=True, process=True)
def test_a_secured_broker_may_be_a_process(headrace: Broker) -> None:
    bob = headrace.add_user("bob", produces=["orders"])
    assert produce(bob.confluent_kafka, "orders", "tea") is None
    headrace.kill()
    headrace.restart()
    assert len(headrace.records("orders")) == 1
    with pytest.raises(ClientError):
        headrace.add_user("bob")
