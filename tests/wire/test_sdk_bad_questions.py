"""What a consumer cannot be told or asked: the sentence says why, and it reads on."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from headrace import AsyncProducer, BadSetting, ClientError, Consumer, NoSuchTopic, Producer
from wire.process import BrokerProcess
from wire.sdk import QUICK, fresh, numbers, topic_of


def test_a_consumer_says_what_is_wrong_and_reads_on(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(10))
    with Consumer(broker.bootstrap, topic, group=fresh("group"), **QUICK) as consumer:
        bad: Any = consumer
        messages = consumer.read(stop_at_end=True)
        first = next(messages)
        wrong: list[tuple[Callable[[], object], type[ClientError], str]] = [
            (lambda: bad.pause(topic), BadSetting, "a list of pairs"),
            (lambda: bad.resume((topic, 0)), BadSetting, "a list of pairs"),
            (lambda: bad.committed([(topic, "0")]), BadSetting, "a list of pairs"),
            (lambda: bad.seek(topic, "0", 1), BadSetting, "a list of pairs"),
            (lambda: bad.seek(topic, 0, [1]), BadSetting, "an offset is a number"),
            (lambda: bad.seek(topic, 0, 2**70), BadSetting, "an offset is a number"),
            (lambda: bad.commit([first]), BadSetting, "commit takes a message that was read"),
            (lambda: bad.commit(first.offset), BadSetting, "commit takes a message that was read"),
            (lambda: bad.subscribe([]), BadSetting, "no topic is given to subscribe to"),
            (lambda: bad.subscribe(b"orders"), NoSuchTopic, "named by a str, not by bytes"),
        ]
        for ask, kind, said in wrong:
            with pytest.raises(kind, match=re.escape(said)):
                ask()
        assert [int(message.value) for message in messages] == list(range(1, 10))
        assert consumer.commit(first) == {(topic, 0): 1}


def test_what_is_called_back_has_to_be_a_function(broker: BrokerProcess) -> None:
    function: Any = 5
    for name in ("on_assigned", "on_revoked", "on_lost"):
        with pytest.raises(BadSetting, match=f"{name} has to be a function, not 5"):
            Consumer(broker.bootstrap, **{name: function})
    with pytest.raises(BadSetting, match="on_failure has to be a function, not 5"):
        Producer(broker.bootstrap, on_failure=function)


def test_a_receipt_s_callback_is_looked_at_before_anything_is_sent(broker: BrokerProcess) -> None:
    function: Any = 5
    with Producer(broker.bootstrap, receipts=True) as producer:
        with pytest.raises(BadSetting, match="on_delivery has to be a function, not 5"):
            producer.post("orders", b"x", on_delivery=function)
        assert producer.counts.sent == 0


@pytest.mark.parametrize("values", ["abc", 5, None])
def test_many_values_are_not_one_for_a_twin_either(broker: BrokerProcess, values: Any) -> None:
    async def story() -> None:
        async with AsyncProducer(broker.bootstrap, value=str) as producer:
            with pytest.raises(BadSetting, match="send_all takes many values"):
                await producer.send_all("orders", values)
            with pytest.raises(NoSuchTopic, match="there can be no topic"):
                await producer.send_all("bad topic/!", [])
            assert producer.counts.sent == 0

    asyncio.run(story())


def test_settings_are_a_mapping(broker: BrokerProcess) -> None:
    settings: Any = ["linger.ms"]
    with pytest.raises(BadSetting, match="settings are a dict"):
        Producer(broker.bootstrap, settings=settings)


def test_time_is_a_number_of_seconds(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(3))
    with Producer(broker.bootstrap, receipts=True) as producer:
        bad: Any = producer
        receipt: Any = producer.post(topic, b"3")
        for wait in (bad.flush, bad.close, bad.poll, receipt.result):
            with pytest.raises(BadSetting, match="timeout_s='a': it is a number of seconds"):
                wait("a")
        assert producer.flush(30).acknowledged == 1
    with Consumer(broker.bootstrap, topic, **QUICK) as consumer:
        reading: Any = consumer
        for read in (reading.read, reading.batches):
            with pytest.raises(BadSetting, match="idle_s='x': it is a number of seconds"):
                next(read(idle_s="x"))
            with pytest.raises(BadSetting, match="limit_s='x': it is a number of seconds"):
                next(read(limit_s="x"))
        assert len(list(consumer.read(stop_at_end=True))) == 4


def test_a_twin_that_was_to_be_closed_within_no_time_goes_on(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])

    async def story() -> None:
        async with AsyncProducer(broker.bootstrap) as producer:
            bad: Any = producer
            for wait in (bad.flush, bad.close):
                with pytest.raises(BadSetting, match="it is a number of seconds"):
                    await wait("a")
            assert (await producer.send(topic, b"x")).offset == 0

    asyncio.run(story())


def test_a_producer_with_transactions_needs_all_acknowledgements(broker: BrokerProcess) -> None:
    with pytest.raises(BadSetting, match="needs acks='all', not 1"):
        Producer(broker.bootstrap, transactional_id="x", acks=1)
    with pytest.raises(BadSetting, match="timeout"):
        Producer(broker.bootstrap, transactional_id="x", delivery_timeout_ms=90_000)
