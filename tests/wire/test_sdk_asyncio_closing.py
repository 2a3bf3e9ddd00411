"""Twins that are closed, cancelled on the way, or used where they do not belong."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

import pytest

from headrace import AsyncConsumer, AsyncProducer, ClientError, Closed, DeliveryFailed
from headrace.testing import Broker
from wire.process import BrokerProcess
from wire.sdk import QUICK, fresh, numbers, topic_of

T = TypeVar("T")


def run(story: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(story, 60))


def test_a_consumer_that_is_closed_says_so(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(1))

    async def story() -> None:
        async with AsyncConsumer(broker.bootstrap, topic, group=fresh("group")) as consumer:
            pass
        await consumer.close()
        for call in (consumer.commit, consumer.lag, consumer.pause, consumer.__aenter__):
            with pytest.raises(Closed):
                await call()
        with pytest.raises(Closed):
            await anext(aiter(consumer))

    run(story())


def test_a_producer_that_is_closed_is_not_opened_again(broker: BrokerProcess) -> None:
    async def story() -> None:
        async with AsyncProducer(broker.bootstrap) as producer:
            pass
        await producer.close()
        with pytest.raises(Closed):
            await producer.__aenter__()

    run(story())


def test_closing_a_consumer_ends_its_loops(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])

    async def story() -> None:
        async with AsyncConsumer(broker.bootstrap, topic, **QUICK) as consumer:
            waiting = asyncio.ensure_future(anext(aiter(consumer)))
            await asyncio.sleep(0)  # it has begun
        with pytest.raises(Closed):
            await waiting

    run(story())


def test_a_close_that_nobody_waits_for_any_more_goes_on() -> None:
    async def story(broker: Broker) -> None:
        producer = await AsyncProducer(broker.bootstrap).__aenter__()
        with broker.faults.delay("Produce", seconds=1) as slow:
            receipt = await producer.post("orders", b"tea")
            closing = asyncio.ensure_future(producer.close())
            await asyncio.to_thread(slow.wait)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
        await producer.close()  # waits for the same end
        assert producer.counts == (1, 1, 0, 0)
        assert receipt.result().offset == 0

    with Broker(topics=["orders"]) as broker:
        run(story(broker))


class Watched:
    """A format that notices when its consumer is closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def connect(self, _registry: object) -> "Watched":
        return self

    def serialize(self, value: bytes, *_about: object) -> bytes:
        return value

    def deserialize(self, data: bytes, *_about: object) -> bytes:
        return data

    def close(self) -> None:
        self.closed.set()


def test_a_consumer_that_nobody_waits_for_any_more_is_closed(broker: BrokerProcess) -> None:
    topic, watched = topic_of(broker.bootstrap, []), Watched()

    async def story() -> None:
        opening = asyncio.ensure_future(AsyncConsumer(broker.bootstrap, topic, value=watched).__aenter__())
        await asyncio.sleep(0)  # it has begun
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    run(story())
    assert watched.closed.wait(30)


def test_a_producer_stays_with_its_event_loop(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    producer = AsyncProducer(broker.bootstrap)

    async def post_and_go() -> None:
        await producer.__aenter__()
        for number in numbers(100):
            await producer.post(topic, number)

    async def elsewhere() -> None:
        with pytest.raises(ClientError, match="the event loop that it was opened in"):
            await producer.send(topic, b"x")
        with pytest.raises(ClientError, match="the event loop that it was opened in"):
            await producer.flush()
        await producer.close()

    run(post_and_go())
    run(elsewhere())
    assert producer.counts == (100, 100, 0, 0)


def test_a_callback_that_raises_does_not_end_the_reports() -> None:
    def refuse(_error: ClientError) -> NoReturn:
        raise ValueError("mine")

    async def story(broker: Broker) -> None:
        producer = await AsyncProducer(broker.bootstrap, on_failure=refuse).__aenter__()
        too_large = broker.faults.fail("Produce", error="MESSAGE_TOO_LARGE")
        with too_large, pytest.raises(ClientError, match="make the records smaller"):
            await producer.send("orders", b"x")
        assert (await producer.send("orders", b"y")).offset == 0
        with pytest.raises(DeliveryFailed) as raised:
            await producer.close()
        assert raised.value.failed == 1
        assert any("mine" in note for note in raised.value.__notes__)

    with Broker(topics=["orders"]) as broker:
        run(story(broker))
