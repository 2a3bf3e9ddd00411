"""kill -9 of the broker, while the SDK writes to it."""

from itertools import islice

import pytest

from headrace import Consumer, DeliveryFailed, Producer, TopicPartition, Unreachable
from wire.process import BrokerProcess
from wire.sdk import QUICK, fresh, numbers, topic_of


def test_receipts_tell_what_was_acknowledged_and_flush_raises_the_rest(own_broker: BrokerProcess) -> None:
    topic = topic_of(own_broker.bootstrap, [])
    producer = Producer(own_broker.bootstrap, receipts=True, delivery_timeout_ms=1500, linger_ms=0)
    before = [producer.post(topic, value) for value in numbers(100)]
    assert before[-1].result(10).offset == 99
    own_broker.kill()
    after = [producer.post(topic, b"lost %d" % number) for number in range(20)]
    with pytest.raises(DeliveryFailed, match="20 failed") as raised:
        producer.flush()
    assert raised.value.failed == 20
    assert producer.counts == (120, 100, 20, 0)
    for receipt in after:
        with pytest.raises(Unreachable):
            receipt.result()
    own_broker.start()
    producer.close()
    with Consumer(own_broker.bootstrap, topic, **QUICK) as consumer:
        kept = [message.value for message in consumer.read(stop_at_end=True)]
    assert kept[:100] == numbers(100)


def test_a_consumer_does_not_wait_for_brokers_that_are_gone(own_broker: BrokerProcess) -> None:
    topic, group = topic_of(own_broker.bootstrap, numbers(10)), fresh("group")
    heard: list[TopicPartition] = []
    consumer = Consumer(
        own_broker.bootstrap,
        topic,
        group=group,
        auto_commit_interval_ms=100_000,
        on_revoked=heard.extend,
        **QUICK,
    )
    list(islice(consumer, 5))
    own_broker.kill()
    with pytest.raises(Unreachable, match="may be read again"):  # librdkafka would try for 45 seconds, twice
        consumer.close()
    consumer.close()
    assert heard == []
    own_broker.start()
    with Consumer(own_broker.bootstrap, topic, group=group, **QUICK) as after:
        assert [message.value for message in after.read(stop_at_end=True)][-1] == b"9"


def test_a_broker_that_comes_back_gets_every_record_once(own_broker: BrokerProcess) -> None:
    topic = topic_of(own_broker.bootstrap, [])
    values = iter(numbers(3000))
    with Producer(own_broker.bootstrap, reconnect_backoff_max_ms=100) as producer:
        for value in islice(values, 2000):
            producer.send(topic, value)
        own_broker.kill()
        for value in values:
            producer.send(topic, value)
        own_broker.start()
    assert producer.counts == (3000, 3000, 0, 0)
    with Consumer(own_broker.bootstrap, topic, **QUICK) as consumer:
        assert [message.value for message in consumer.read(stop_at_end=True)] == numbers(3000)
