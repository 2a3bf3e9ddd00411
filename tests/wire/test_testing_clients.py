"""Other people's clients with the broker of a test, and what they make of its faults."""

import asyncio
import time
import unittest
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer

from headrace.testing import Broker
from wire.confluent import read, send, sent_offsets, settings
from wire.kafka_python import KafkaConsumer, KafkaProducer
from wire.requests import fresh_name

PATIENCE_S = 20


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker
        ours = "a fault of the test"
        assert [line for line in broker.log if ours not in line] == []


@pytest.fixture
def served(shared: Broker) -> Iterator[Broker]:
    yield shared
    shared.faults.clear()


@pytest.fixture
def topic(served: Broker) -> str:
    served.create_topic(name := fresh_name("clients"))
    return name


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def consume(bootstrap: str, topic: str, count: int, **options: Any) -> list[bytes]:
    """The first records of a topic, as a member of a group."""
    consumer = Consumer(
        settings(bootstrap, auto_offset_reset="earliest", **{"group_id": "readers", **options})
    )
    found: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    try:
        consumer.subscribe([topic])
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                found.append(message.value())
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return found


# -- each of them ----------------------------------------------------------------------------------


def test_confluent_kafka_writes_and_a_group_reads(served: Broker, topic: str) -> None:
    send(served.bootstrap, topic, [{"value": b"tea"}, {"value": b"coffee"}])

    assert consume(served.bootstrap, topic, 2) == [b"tea", b"coffee"]


def test_a_group_goes_on_where_it_was(served: Broker, topic: str) -> None:
    served.produce(topic, "tea")
    assert consume(served.bootstrap, topic, 1, group_id="goes-on") == [b"tea"]
    served.produce(topic, "coffee")

    assert consume(served.bootstrap, topic, 1, group_id="goes-on") == [b"coffee"]


def test_a_group_of_the_newer_protocol_reads(served: Broker, topic: str) -> None:
    served.produce(topic, "tea")

    assert consume(served.bootstrap, topic, 1, group_id="newer", group_protocol="consumer") == [b"tea"]


def test_kafka_python_writes_and_reads(served: Broker, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=served.bootstrap)
    producer.send(topic, b"tea").get(PATIENCE_S)
    producer.close()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=served.bootstrap,
        group_id="python",
        auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE_S * 1000,
    )

    assert next(consumer).value == b"tea"
    consumer.close()


def test_aiokafka_writes_and_reads(served: Broker, topic: str) -> None:
    async def both() -> bytes:
        async with AIOKafkaProducer(bootstrap_servers=served.bootstrap) as producer:
            await producer.send_and_wait(topic, b"tea")
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=served.bootstrap, group_id="aio", auto_offset_reset="earliest"
        )
        async with consumer:
            message = await asyncio.wait_for(consumer.getone(), PATIENCE_S)
        value: bytes = message.value
        return value

    assert asyncio.run(both()) == b"tea"


class TestWithUnittest(unittest.TestCase):
    broker: ClassVar[Broker]

    @classmethod
    def setUpClass(cls) -> None:
        cls.broker = cls.enterClassContext(Broker(topics={"orders": 1}))

    def test_a_broker_serves_a_class_of_tests(self) -> None:
        self.broker.produce("orders", "tea")

        self.assertEqual(values(self.broker, "orders"), [b"tea"])  # noqa: PT009  how unittest says it


# -- and what goes wrong ---------------------------------------------------------------------------


def test_an_idempotent_producer_whose_acknowledgement_is_lost_writes_once(served: Broker, topic: str) -> None:
    with served.faults.hang_up("Produce", after="append") as fault:
        reports = send(
            served.bootstrap,
            topic,
            [{"value": b"%d" % number} for number in range(10)],
            enable_idempotence=True,
        )
        fault.wait()

    assert sorted(sent_offsets(reports)) == list(range(10))
    assert values(served, topic) == [b"%d" % number for number in range(10)]


def test_a_producer_without_idempotence_writes_twice(served: Broker, topic: str) -> None:
    with served.faults.hang_up("Produce", after="append"):
        send(served.bootstrap, topic, [{"value": b"tea"}], enable_idempotence=False)

    assert values(served, topic) == [b"tea", b"tea"]


def test_a_java_like_producer_in_python_retries_by_itself(served: Broker, topic: str) -> None:
    with served.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=3) as fault:
        producer = KafkaProducer(bootstrap_servers=served.bootstrap, retries=10, retry_backoff_ms=10)
        producer.send(topic, b"tea").get(PATIENCE_S)
        producer.close()

    assert len(fault.hits) == 3
    assert values(served, topic) == [b"tea"]


def test_an_error_that_is_final_reaches_the_delivery_report(served: Broker, topic: str) -> None:
    with served.faults.fail("Produce", error="TOPIC_AUTHORIZATION_FAILED", topic=topic):
        ((error, _),) = send(served.bootstrap, topic, [{"value": b"tea"}])

    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert values(served, topic) == []


def test_a_consumer_reads_on_after_fetches_that_failed(served: Broker, topic: str) -> None:
    served.produce(topic, "tea", "coffee")

    with served.faults.fail("Fetch", error="NOT_LEADER_OR_FOLLOWER", times=3, topic=topic) as fault:
        found = read(served.bootstrap, topic)

    assert len(fault.hits) == 3
    assert [message.value() for message in found] == [b"tea", b"coffee"]


def test_kafka_python_reads_on_after_fetches_that_failed(served: Broker, topic: str) -> None:
    served.produce(topic, "tea", "coffee")

    with served.faults.fail("Fetch", error="NOT_LEADER_OR_FOLLOWER", times=3, topic=topic) as fault:
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=served.bootstrap,
            auto_offset_reset="earliest",
            consumer_timeout_ms=PATIENCE_S * 1000,
            retry_backoff_ms=10,
        )
        found = [next(consumer).value, next(consumer).value]
        consumer.close()

    assert len(fault.hits) == 3
    assert found == [b"tea", b"coffee"]


def test_a_group_survives_a_coordinator_that_is_not_there_at_first(served: Broker, topic: str) -> None:
    served.produce(topic, "tea")

    with (
        served.faults.fail("FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", times=2) as finding,
        served.faults.fail("JoinGroup", error="NOT_COORDINATOR", times=1) as joining,
        served.faults.fail("SyncGroup", error="REBALANCE_IN_PROGRESS", times=1) as syncing,
    ):
        assert consume(served.bootstrap, topic, 1, group_id="patient") == [b"tea"]

    assert [len(each.hits) for each in (finding, joining, syncing)] == [2, 1, 1]


def test_a_producer_outlives_an_outage(served: Broker, topic: str) -> None:
    producer = Producer(settings(served.bootstrap))
    producer.produce(topic, b"before")
    assert producer.flush(PATIENCE_S) == 0

    with served.faults.refuse_connections() as outage:
        producer.produce(topic, b"during")
        outage.wait()
        assert producer.flush(0.1) == 1

    assert producer.flush(PATIENCE_S) == 0
    assert values(served, topic) == [b"before", b"during"]


def test_a_dropped_connection_costs_a_consumer_nothing(served: Broker, topic: str) -> None:
    served.produce(topic, "tea")
    consumer = Consumer(
        settings(served.bootstrap, group_id="dropped", auto_offset_reset="earliest", client_id="reader")
    )
    consumer.subscribe([topic])
    assert consumer.consume(1, PATIENCE_S)[0].value() == b"tea"

    assert served.faults.drop_connections(client_id="reader") > 0
    served.produce(topic, "coffee")

    assert consumer.consume(1, PATIENCE_S)[0].value() == b"coffee"
    consumer.close()
