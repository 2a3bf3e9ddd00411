"""Records that nobody can send: the sentence says why, nothing is sent, and the producer goes on."""

import asyncio
import re
from typing import Any

import pytest

from headrace import (
    JSON,
    AsyncProducer,
    BadSetting,
    ClientError,
    Consumer,
    DeliveryFailed,
    NoSuchTopic,
    NotSerializable,
    Producer,
)
from wire.process import BrokerProcess
from wire.sdk import QUICK, topic_of

BAD: list[tuple[dict[str, Any], type[ClientError], str]] = [
    ({"partition": "0"}, BadSetting, "partition='0': it is an int from 0 on, or None for any"),
    ({"partition": 2**40}, BadSetting, "it is an int from 0 on"),
    ({"timestamp_ms": 1.5}, BadSetting, "timestamp_ms=1.5: it is an int, of milliseconds since 1970"),
    ({"headers": {b"a": b"x"}}, NotSerializable, "a name is a str"),
    ({"headers": "ab"}, NotSerializable, "they are a dict, or pairs (name, value)"),
    ({"headers": {"a": "\udc80"}}, NotSerializable, "the headers for topic"),
    ({"key": "\udc80"}, NotSerializable, "the key for topic"),
    ({"key": 5}, NotSerializable, "the key for topic"),
    ({"key": bytearray(b"x")}, NotSerializable, "give bytes(key)"),
    ({"topic": ["orders"]}, NoSuchTopic, "a topic is named by a str, not by list"),
    ({"topic": "a\0b", "key": b"k"}, NoSuchTopic, "there can be no topic"),
]


@pytest.mark.parametrize("value", [None, JSON])
@pytest.mark.parametrize("receipts", [False, True])
def test_a_producer_says_what_is_wrong_and_goes_on(
    broker: BrokerProcess, *, value: Any, receipts: bool
) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Producer(broker.bootstrap, value=value, receipts=receipts) as producer:
        send: Any = producer.post if receipts else producer.send
        for bad, kind, said in BAD:
            with pytest.raises(kind, match=re.escape(said)):
                send(**{"topic": topic, "value": "0", **bad})
        send(topic, "1", headers=(("a", b"x"), ("a", None)))
    assert producer.counts == (1, 1, 0, 0)
    with Consumer(broker.bootstrap, topic, value=value, **QUICK) as consumer:
        (message,) = consumer.read(stop_at_end=True)
    assert message.value == ("1" if value else b"1")
    assert message.headers == [("a", b"x"), ("a", None)]


def test_so_does_its_twin(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])

    async def story() -> None:
        async with AsyncProducer(broker.bootstrap) as producer:
            for bad, kind, said in BAD:
                arguments: dict[str, Any] = {"topic": topic, "value": b"0", **bad}
                with pytest.raises(kind, match=re.escape(said)):
                    await producer.send(**arguments)
            await producer.send(topic, b"1")
            assert producer.counts == (1, 1, 0, 0)

    asyncio.run(story())


@pytest.mark.parametrize("values", ["tea", 5, None])
def test_one_value_is_not_many(broker: BrokerProcess, values: Any) -> None:
    with Producer(broker.bootstrap) as producer:
        with pytest.raises(BadSetting, match="`send` takes one"):
            producer.send_all("orders", values)
        with pytest.raises(NoSuchTopic):
            producer.send_all(["orders"], [b"x"])  # type: ignore[arg-type]
    assert producer.counts.sent == 0


def test_what_no_topic_can_be_called_is_not_to_be_tried_again(broker: BrokerProcess) -> None:
    with Producer(broker.bootstrap) as producer:
        producer.send("a b", b"x", key=b"k")
        with pytest.raises(DeliveryFailed, match="a topic with a valid name") as raised:
            producer.flush()
    assert "again" not in str(raised.value)
