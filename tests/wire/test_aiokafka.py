"""aiokafka against a real broker."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import MessageSizeTooLargeError

from wire.process import BrokerProcess
from wire.requests import fresh_name

TIMEOUT_S = 20
TIMESTAMP = 1_700_000_000_000


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 2 * TIMEOUT_S))


async def using(client: Any, work: Callable[[Any], Awaitable[Any]]) -> Any:
    """Start a client, let it work, and stop it whatever happens."""
    await client.start()
    try:
        return await work(client)
    finally:
        await (client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop())


async def make_topic(broker: BrokerProcess, *, partitions: int = 1) -> str:
    name = fresh_name("aiokafka")
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await using(admin, lambda client: client.create_topics([NewTopic(name, partitions, 1)]))
    return name


async def send(broker: BrokerProcess, topic: str, values: list[bytes], **options: Any) -> list[Any]:
    async def work(producer: Any) -> list[Any]:
        futures = [
            await producer.send(
                topic,
                value,
                key=b"k%d" % number,
                partition=0,
                timestamp_ms=TIMESTAMP + number,
                headers=[("n", b"%d" % number)],
            )
            for number, value in enumerate(values)
        ]
        return await asyncio.gather(*futures)

    sent: list[Any] = await using(AIOKafkaProducer(bootstrap_servers=broker.bootstrap, **options), work)
    return sent


async def read(broker: BrokerProcess, topic: str, count: int, **options: Any) -> list[Any]:
    async def work(consumer: Any) -> list[Any]:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        return [await asyncio.wait_for(consumer.getone(), TIMEOUT_S) for _ in range(count)]

    records: list[Any] = await using(AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, **options), work)
    return records


@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", [1, "all"])
def test_records_arrive_as_they_were_sent(
    broker: BrokerProcess, acks: int | str, compression: str | None
) -> None:
    async def story() -> None:
        topic = await make_topic(broker)
        values = [b"value-%d" % number * 5 for number in range(200)]

        sent = await send(broker, topic, values, acks=acks, compression_type=compression)

        records = await read(broker, topic, 200)
        assert [metadata.offset for metadata in sent] == list(range(200))
        assert [record.value for record in records] == values
        assert [record.key for record in records] == [b"k%d" % number for number in range(200)]
        assert [record.timestamp for record in records] == [TIMESTAMP + number for number in range(200)]
        assert [record.headers for record in records] == [(("n", b"%d" % number),) for number in range(200)]

    run(story())


def test_an_idempotent_producer_writes_once_and_in_order(broker: BrokerProcess) -> None:
    async def story() -> None:
        topic = await make_topic(broker)
        values = [b"%d" % number for number in range(500)]

        sent = await send(broker, topic, values, enable_idempotence=True, max_batch_size=300)

        assert [metadata.offset for metadata in sent] == list(range(500))
        assert [record.value for record in await read(broker, topic, 500)] == values

    run(story())


def test_without_acks_records_arrive_all_the_same(broker: BrokerProcess) -> None:
    async def story() -> None:
        topic = await make_topic(broker)

        await send(broker, topic, [b"a", b"b"], acks=0)

        assert [record.value for record in await read(broker, topic, 2)] == [b"a", b"b"]

    run(story())


def test_a_batch_that_is_too_large_raises_in_the_client(broker: BrokerProcess) -> None:
    async def story() -> None:
        topic = await make_topic(broker)
        with pytest.raises(MessageSizeTooLargeError):
            await send(broker, topic, [b"x" * 2_000_000], max_request_size=3_000_000)

    run(story())


def test_offsets_and_times_are_found(broker: BrokerProcess) -> None:
    async def story() -> None:
        topic = await make_topic(broker, partitions=2)
        await send(broker, topic, [b"a", b"b", b"c"])
        partition, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)

        async def work(consumer: Any) -> None:
            assert await consumer.beginning_offsets([partition, empty]) == {partition: 0, empty: 0}
            assert await consumer.end_offsets([partition, empty]) == {partition: 3, empty: 0}
            found = await consumer.offsets_for_times({partition: TIMESTAMP + 2, empty: TIMESTAMP})
            assert (found[partition].offset, found[empty]) == (2, None)

        await using(AIOKafkaConsumer(bootstrap_servers=broker.bootstrap), work)

    run(story())


def test_a_reader_that_waits_gets_what_is_written_meanwhile(broker: BrokerProcess) -> None:
    async def story() -> None:
        topic = await make_topic(broker)

        async def work(consumer: Any) -> Any:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.seek_to_end()
            waiting = asyncio.create_task(consumer.getone())
            await send(broker, topic, [b"news"])
            return await asyncio.wait_for(waiting, TIMEOUT_S)

        client = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
        record = await using(client, work)
        assert record.value == b"news"

    run(story())


def test_topics_are_managed(broker: BrokerProcess) -> None:
    async def story() -> None:
        name = await make_topic(broker)

        async def work(admin: Any) -> None:
            await admin.create_partitions({name: NewPartitions(3)})
            (described,) = await admin.describe_topics([name])
            assert len(described["partitions"]) == 3
            assert name in await admin.list_topics()
            (configs,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
            assert "retention.ms" in str(configs)
            cluster = await admin.describe_cluster()
            assert cluster["controller_id"] == 1
            await admin.delete_topics([name])
            assert name not in await admin.list_topics()

        await using(AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap), work)

    run(story())


def test_records_are_deleted_up_to_an_offset(broker: BrokerProcess) -> None:
    async def story() -> None:
        topic = await make_topic(broker)
        await send(broker, topic, [b"a", b"b", b"c"])
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)

        deleted = {TopicPartition(topic, 0): RecordsToDelete(2)}
        await using(admin, lambda client: client.delete_records(deleted))

        assert [record.offset for record in await read(broker, topic, 1)] == [2]

    run(story())
