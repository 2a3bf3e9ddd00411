"""Reading to the end, again and again, as a job does that looks for what is new now and then."""

import asyncio
import time
from typing import Any

import pytest

from headrace import AsyncConsumer, Consumer, Producer
from wire.process import BrokerProcess
from wire.sdk import QUICK, fresh, numbers, topic_of

DEADLINE_S = 60.0


@pytest.mark.parametrize("grouped", [True, False])
def test_what_was_written_since_is_before_the_end(broker: BrokerProcess, *, grouped: bool) -> None:
    topic, group = topic_of(broker.bootstrap, [], partitions=2), fresh("group") if grouped else None
    with (
        Consumer(broker.bootstrap, topic, group=group, **QUICK) as consumer,
        Producer(broker.bootstrap) as producer,
    ):
        assert list(consumer.read(stop_at_end=True)) == []
        for value in numbers(4):
            producer.send(topic, value)
            producer.flush()
            assert [message.value for message in consumer.read(stop_at_end=True)] == [value]
        assert list(consumer.read(stop_at_end=True)) == []
        producer.send(topic, b"batch")
        producer.flush()
        assert [batch.values() for batch in consumer.batches(stop_at_end=True)] == [[b"batch"]]


def test_a_paused_partition_is_no_reason_to_wait(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Consumer(broker.bootstrap, topic, **QUICK) as consumer, Producer(broker.bootstrap) as producer:
        assert list(consumer.read(stop_at_end=True)) == []
        consumer.pause()
        producer.send(topic, b"x")
        producer.flush()
        assert list(consumer.read(stop_at_end=True)) == []
        consumer.resume()
        assert [message.value for message in consumer.read(stop_at_end=True)] == [b"x"]


def test_a_member_that_is_at_the_end_takes_part_in_rebalances(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [], partitions=2)
    named: dict[str, Any] = {"group": fresh("group"), "heartbeat_interval_ms": 100, **QUICK}
    with Consumer(broker.bootstrap, topic, **named) as first:
        assert list(first.read(stop_at_end=True)) == []
        with Consumer(broker.bootstrap, topic, **named) as second:
            deadline_s = time.monotonic() + DEADLINE_S
            while not (first.assignment and second.assignment) and time.monotonic() < deadline_s:
                assert list(first.read(stop_at_end=True, limit_s=1)) == []
                assert list(second.read(limit_s=0.1)) == []
            assert len(first.assignment) == len(second.assignment) == 1


def test_it_is_the_same_for_a_twin(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])

    async def story() -> None:
        async with AsyncConsumer(broker.bootstrap, topic, **QUICK) as consumer:
            assert [message async for message in consumer.read(stop_at_end=True)] == []
            with Producer(broker.bootstrap) as producer:
                producer.send(topic, b"x")
            assert [message.value async for message in consumer.read(stop_at_end=True)] == [b"x"]

    asyncio.run(story())
