"""Transactions of clients that we did not write: read, process, write, and each record once."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from aiokafka.errors import ProducerFenced as AioProducerFenced
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from wire.confluent import TIMEOUT_S, make_topic, settings
from wire.kafka_python import KafkaConsumer, KafkaProducer, OffsetAndMetadata
from wire.kafka_python import TopicPartition as PythonPartition
from wire.process import BrokerProcess
from wire.requests import fresh_name

COUNT = 28  # four times what is read at a time


def values(bootstrap: str, topic: str, *, isolation: str = "read_committed") -> list[bytes]:
    """Every value of a topic of one partition, up to its end."""
    consumer = Consumer(
        settings(
            bootstrap,
            group_id=fresh_name("reader"),
            auto_offset_reset="earliest",
            isolation_level=isolation,
            enable_partition_eof=True,
        )
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    try:
        while True:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, found
            if message.error():
                return found
            found.append(message.value())
    finally:
        consumer.close()


@pytest.fixture
def topics(broker: BrokerProcess) -> tuple[str, str]:
    source, target = fresh_name("source"), fresh_name("target")
    for each in (source, target):
        make_topic(broker.bootstrap, each)
    producer = Producer(settings(broker.bootstrap))
    for number in range(COUNT):
        producer.produce(source, b"%d" % number)
    producer.flush(TIMEOUT_S)
    return source, target


# -- confluent-kafka -------------------------------------------------------------------------------


def transactional(broker: BrokerProcess, transactional_id: str) -> Producer:
    producer = Producer(settings(broker.bootstrap, transactional_id=transactional_id))
    producer.init_transactions(TIMEOUT_S)
    return producer


def test_confluent_aborts_and_commits(broker: BrokerProcess, topics: tuple[str, str]) -> None:
    target = topics[1]
    producer = transactional(broker, fresh_name("confluent"))
    for number in range(6):
        producer.begin_transaction()
        producer.produce(target, b"%d" % number)
        producer.flush(TIMEOUT_S)
        if number % 2:
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)

    assert values(broker.bootstrap, target) == [b"0", b"2", b"4"]
    assert len(values(broker.bootstrap, target, isolation="read_uncommitted")) == 6


def test_confluent_reads_processes_and_writes_each_record_once(
    broker: BrokerProcess, topics: tuple[str, str]
) -> None:
    """Every other transaction is aborted: its offsets are read again, and its records are not seen."""
    source, target = topics
    group = fresh_name("group")
    producer = transactional(broker, fresh_name("confluent"))
    done = rounds = 0
    while done < COUNT:
        consumer = Consumer(
            settings(broker.bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False)
        )
        consumer.subscribe([source])
        messages = consumer.consume(7, TIMEOUT_S)
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value())
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        rounds += 1
        if rounds % 2:
            producer.flush(TIMEOUT_S)
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)
            done += len(messages)
        consumer.close()

    assert values(broker.bootstrap, target) == [b"%d" % number for number in range(COUNT)]


def test_confluent_is_fenced_by_its_successor(broker: BrokerProcess, topics: tuple[str, str]) -> None:
    target, transactional_id = topics[1], fresh_name("confluent")
    zombie = transactional(broker, transactional_id)
    zombie.begin_transaction()
    zombie.produce(target, b"zombie")
    zombie.flush(TIMEOUT_S)
    successor = transactional(broker, transactional_id)

    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(TIMEOUT_S)
    assert fenced.value.args[0].fatal()

    successor.begin_transaction()
    successor.produce(target, b"successor")
    successor.commit_transaction(TIMEOUT_S)
    assert values(broker.bootstrap, target) == [b"successor"]


# -- aiokafka --------------------------------------------------------------------------------------


def run(story: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(story(), 2 * TIMEOUT_S))


def test_aiokafka_reads_processes_and_writes_each_record_once(
    broker: BrokerProcess, topics: tuple[str, str]
) -> None:
    source, target = topics
    group = fresh_name("group")

    async def story() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap, transactional_id=fresh_name("aiokafka")
        )
        consumer = AIOKafkaConsumer(
            source,
            bootstrap_servers=broker.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        await producer.start()
        await consumer.start()
        try:
            done = 0
            while done < COUNT:
                batches = await consumer.getmany(timeout_ms=TIMEOUT_S * 1000, max_records=7)
                async with producer.transaction():
                    for partition, messages in batches.items():
                        for message in messages:
                            await producer.send(target, message.value)
                        offsets = {AioPartition(*partition): messages[-1].offset + 1}
                        await producer.send_offsets_to_transaction(offsets, group)
                        done += len(messages)
        finally:
            await consumer.stop()
            await producer.stop()

    run(story)

    assert values(broker.bootstrap, target) == [b"%d" % number for number in range(COUNT)]


def test_aiokafka_aborts_and_is_fenced(broker: BrokerProcess, topics: tuple[str, str]) -> None:
    target, transactional_id = topics[1], fresh_name("aiokafka")

    async def story() -> None:
        zombie = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=transactional_id)
        await zombie.start()
        await zombie.begin_transaction()
        await zombie.send_and_wait(target, b"aborted")
        await zombie.abort_transaction()
        await zombie.begin_transaction()
        await zombie.send_and_wait(target, b"zombie")
        successor = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=transactional_id)
        await successor.start()
        with pytest.raises(AioProducerFenced):
            await zombie.commit_transaction()
        async with successor.transaction():
            await successor.send(target, b"successor")
        await successor.stop()
        await zombie.stop()

    run(story)

    assert values(broker.bootstrap, target) == [b"successor"]


# -- kafka-python ----------------------------------------------------------------------------------


def test_kafka_python_reads_processes_and_writes_each_record_once(
    broker: BrokerProcess, topics: tuple[str, str]
) -> None:
    source, target = topics
    group = fresh_name("group")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=fresh_name("kafka-python"))
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=broker.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=7,
    )
    producer.init_transactions()
    done = 0
    while done < COUNT:
        batches = consumer.poll(timeout_ms=TIMEOUT_S * 1000)
        producer.begin_transaction()
        offsets = {}
        for partition, messages in batches.items():
            for message in messages:
                producer.send(target, message.value)
            offsets[PythonPartition(*partition)] = OffsetAndMetadata(messages[-1].offset + 1, "", -1)
            done += len(messages)
        producer.send_offsets_to_transaction(offsets, group)
        producer.commit_transaction()
    consumer.close()
    producer.close()

    assert values(broker.bootstrap, target) == [b"%d" % number for number in range(COUNT)]
