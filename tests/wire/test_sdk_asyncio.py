"""The SDK's asyncio twins on a real broker."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import pytest

from headrace import (
    JSON,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    Avro,
    DeliveryFailed,
    NoSuchGroup,
    NotReadable,
    NotSerializable,
    TopicPartition,
    Unreachable,
)
from headrace.testing import Broker
from wire.process import BrokerProcess
from wire.sdk import QUICK, fresh, numbers, topic_of

T = TypeVar("T")


def run(story: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(story, 60))


async def first(count: int, messages: AsyncIterator[T]) -> list[T]:
    found: list[T] = []
    async for message in messages:
        found.append(message)
        if len(found) == count:
            break
    return found


def test_send_waits_for_the_acknowledgement_and_post_does_not(broker: BrokerProcess) -> None:
    async def story() -> None:
        topic = fresh("topic")
        async with AsyncAdmin(broker.bootstrap) as admin:
            await admin.create_topic(topic, partitions=2)
            async with AsyncProducer(broker.bootstrap, value=JSON) as producer:
                assert (await producer.send(topic, {"a": 1}, partition=1)).offset == 0
                posted = [await producer.post(topic, number) for number in range(1000)]
                places = await asyncio.gather(*posted)
                assert await producer.flush() == (1001, 1001, 0, 0)
            assert sorted(place.offset or 0 for place in places if place.partition == 0) == list(range(500))
            spans = await admin.offsets(topic)
            assert {index: span.next for index, span in spans.items()} == {0: 500, 1: 501}

    run(story())


def test_a_full_buffer_does_not_stop_the_loop(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])

    async def story() -> None:
        async with AsyncProducer(broker.bootstrap, queue_buffering_max_messages=5) as producer:
            await asyncio.gather(*(producer.send(topic, value) for value in numbers(200)))
        assert producer.counts == (200, 200, 0, 0)

    run(story())


class Slow(deque[Any]):
    """Reports that another thread always comes in between of."""

    def append(self, report: object) -> None:
        super().append(report)
        time.sleep(0.0005)


def test_reports_from_several_threads_all_reach_the_loop(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [], partitions=8)

    async def story() -> None:
        async with AsyncProducer(broker.bootstrap, linger_ms=0) as producer:
            producer._reports = Slow()
            for _ in range(5):
                posted, flushes = [], []
                for number in range(160):
                    posted.append(await producer.post(topic, b"", partition=number % 8))
                    if number % 8 == 7:
                        flushes.append(asyncio.ensure_future(producer.flush()))
                await asyncio.gather(*flushes, *posted)

    run(story())


def test_a_flush_ends_while_another_task_goes_on_posting() -> None:
    async def story() -> None:
        with Broker(topics={"busy": 4}) as own:
            async with AsyncProducer(own.bootstrap) as producer:

                async def work() -> None:
                    while True:
                        await producer.post("busy", b"more")
                        await asyncio.sleep(0.001)

                await producer.send("busy", b"first")
                working = asyncio.ensure_future(work())
                with own.faults.delay("Produce", seconds=0.05):
                    for _ in range(3):
                        sent = producer.counts.sent
                        assert (await producer.flush(15)).acknowledged >= sent
                        await producer.send("busy", b"after")  # the gate is open again
                working.cancel()

    run(story())


def test_what_fails_is_raised_by_send_and_by_flush(broker: BrokerProcess) -> None:
    async def story() -> None:
        topic = fresh("small")
        async with AsyncAdmin(broker.bootstrap) as admin:
            await admin.create_topic(topic, partitions=1, configs={"max.message.bytes": "1000"})
        async with AsyncProducer(broker.bootstrap) as producer:
            with pytest.raises(Exception, match=r"[Mm]essage size too large"):
                await producer.send(topic, b"x" * 5000)
            with pytest.raises(DeliveryFailed, match="1 failed"):
                await producer.flush()
            with pytest.raises(NotSerializable):
                await producer.send(topic, {"no": "format"})
            await producer.post(topic, b"x" * 5000)
            with pytest.raises(DeliveryFailed, match="1 failed"):
                await producer.close()

    run(story())


def test_reading_and_committing_as_a_group(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(700)), fresh("group")
    place = TopicPartition(topic, 0)

    async def story() -> None:
        async with AsyncConsumer(broker.bootstrap, topic, group=group, **QUICK) as consumer:
            found = await first(501, consumer.read())
            assert consumer.position() == {place: 501}
            assert await consumer.lag() == {place: 199}
        assert [message.value for message in found] == numbers(501)
        async with AsyncConsumer(broker.bootstrap, topic, group=group, **QUICK) as consumer:
            assert (await first(1, consumer.read()))[0].offset == 500  # in work when the loop was left
            assert await consumer.commit() == {place: 501}
            assert await consumer.committed() == {place: 501}
            await consumer.seek(topic, 0, 690)
            batches = [batch.values() async for batch in consumer.batches(4, stop_at_end=True)]
        assert [value for batch in batches for value in batch] == numbers(700)[690:]
        async with AsyncAdmin(broker.bootstrap) as admin:
            assert await admin.lag(group) == {place: 0}

    run(story())


def test_what_was_fetched_for_nobody_is_handed_out_later(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(3000), partitions=2), fresh("group")

    async def story() -> None:
        found: list[bytes] = []
        async with AsyncConsumer(broker.bootstrap, topic, group=group, **QUICK) as consumer:
            while len(found) < 3000:  # cancelled at any moment, now and then while it fetches
                reading = asyncio.ensure_future(anext(consumer.read()))
                await asyncio.sleep(0.0002 * (len(found) % 7))
                if not reading.done():
                    reading.cancel()
                try:
                    found.append((await reading).value)
                    await consumer.commit(wait=False)  # or it would come again
                except asyncio.CancelledError:
                    some = await first(min(200, 3000 - len(found)), consumer.read())
                    found.extend(message.value for message in some)
                    await consumer.commit(wait=False)
            assert await consumer.lag() == {TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 0}
        assert sorted(found, key=int) == numbers(3000)

    run(story())


def test_a_consumer_that_waits_for_nothing_can_be_cancelled_and_closed(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])

    async def story() -> None:
        async with AsyncConsumer(broker.bootstrap, topic, **QUICK) as consumer:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(consumer.read()), 0.3)
            assert await consumer.lag() == {TopicPartition(topic, 0): 0}

    run(story())


def test_pause_and_resume(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(100))

    async def story() -> None:
        async with AsyncConsumer(broker.bootstrap, **QUICK) as consumer:
            await consumer.assign([(topic, 0)])
            before = await first(3, consumer.read())
            await consumer.pause()
            assert [message async for message in consumer.read(idle_s=0.1)] == []
            await consumer.resume()
            after = [message async for message in consumer.read(stop_at_end=True)]
        assert [message.offset for message in before] == [0, 1, 2]
        assert [message.offset for message in after] == list(range(2, 100))

    run(story())


def test_bad_records_are_raised_where_they_stand(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [b"1", b"{", b"3"])

    async def story() -> None:
        async with AsyncConsumer(broker.bootstrap, topic, value=JSON, **QUICK) as consumer:
            found: list[int] = []
            with pytest.raises(NotReadable, match="offset 1"):
                found.extend([message.value async for message in consumer])
            found.extend([message.value async for message in consumer.read(stop_at_end=True)])
        assert found == [3]

    run(story())


def test_schemas_are_asked_for_beside_the_loop(broker: BrokerProcess) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
    topic = topic_of(broker.bootstrap, [])

    async def story() -> None:
        records = Avro(schema, registry=broker.http)
        async with AsyncProducer(broker.bootstrap, value=records) as producer:
            await asyncio.gather(*(producer.send(topic, {"n": number}) for number in range(20)))
        async with AsyncConsumer(broker.bootstrap, topic, value=records, **QUICK) as consumer:
            found = [message.value["n"] async for message in consumer.read(stop_at_end=True)]
        assert sorted(found) == list(range(20))

    run(story())


def test_administration(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(100)), fresh("group")

    async def story() -> None:
        async with AsyncAdmin(broker.bootstrap) as admin:
            assert topic in [each.name for each in await admin.list_topics()]
            await admin.alter_topic_configs(topic, sets={"retention.ms": "1000000"})
            assert (await admin.describe_topic(topic)).configs == {"retention.ms": "1000000"}
            assert await admin.delete_records(topic, {0: 40}) == {0: 40}
            assert await admin.offsets(topic) == {0: (40, 100)}
            assert await admin.offsets_at(topic, 0) == {0: 40}
            await admin.set_group_offsets(group, {(topic, 0): 60})
            assert await admin.lag(group) == {TopicPartition(topic, 0): 40}
            assert group in [each.name for each in await admin.list_groups()]
            await admin.delete_group(group)
            with pytest.raises(NoSuchGroup):
                await admin.describe_group(group)
            await admin.delete_topic(topic)

    run(story())


def test_a_place_without_a_broker_is_told_at_once() -> None:
    async def story() -> None:
        with pytest.raises(Unreachable):
            await AsyncProducer("127.0.0.1:1").__aenter__()
        with pytest.raises(Unreachable):
            await AsyncConsumer("127.0.0.1:1").__aenter__()

    run(story())
