"""headrace.Producer on a real broker."""

import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import murmur2

from headrace import (
    JSON,
    STRING,
    Admin,
    BadSetting,
    ClientError,
    Closed,
    Consumer,
    Delivered,
    DeliveryFailed,
    NotSerializable,
    Producer,
    Receipt,
    Unreachable,
)
from headrace.client.producer.partitioning import FRESH_S
from headrace.testing import Broker
from wire.process import BrokerProcess
from wire.sdk import QUICK, fresh, numbers, topic_of


def everything(bootstrap: str, topic: str, **options: object) -> list[tuple[int, object, object]]:
    with Consumer(bootstrap, topic, **{**QUICK, **options}) as consumer:
        return [(each.partition, each.key, each.value) for each in consumer.read(stop_at_end=True)]


def test_leaving_the_block_waits_for_all_acknowledgements(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Producer(broker.bootstrap) as producer:
        for value in numbers(3000):
            producer.send(topic, value)
    assert producer.counts == (3000, 3000, 0, 0)
    assert [value for _, _, value in everything(broker.bootstrap, topic)] == numbers(3000)


def test_records_without_a_key_are_spread_evenly(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(90), partitions=6)
    found = Counter(partition for partition, _, _ in everything(broker.bootstrap, topic))
    assert found == dict.fromkeys(range(6), 15)


@pytest.mark.parametrize("flushes", [True, False])
def test_partitions_that_were_added_are_used_after_a_minute(broker: BrokerProcess, flushes: bool) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Producer(broker.bootstrap) as producer:
        producer.send(topic, b"")
        producer.flush()
        with Admin(broker.bootstrap) as admin:
            admin.add_partitions(topic, 3)
        turns = producer._records.turns
        turns._now_s = lambda: time.monotonic() + FRESH_S
        if flushes:
            producer.flush()
        for _ in range(3 if flushes else 128):
            producer.send(topic, b"")
    assert {partition for partition, _, _ in everything(broker.bootstrap, topic)} == {0, 1, 2}


def test_a_key_goes_where_java_s_client_sends_it(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [], partitions=5)
    with Producer(broker.bootstrap, key=STRING) as producer:
        for number in range(50):
            producer.send(topic, b"", key=f"key-{number}")
    for partition, key, _ in everything(broker.bootstrap, topic):
        assert isinstance(key, bytes)
        assert partition == murmur2(key, 5)


def test_a_function_may_choose_the_partition(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [], partitions=4)

    def by_size(_topic: str, _key: object, value: dict[str, int], partitions: int) -> int:
        return value["size"] % partitions

    with Producer(broker.bootstrap, value=JSON, partitioner=by_size) as producer:
        for size in range(20):
            producer.send(topic, {"size": size})
        producer.send(topic, {"size": 0}, partition=3)  # who says where has the last word
    found = everything(broker.bootstrap, topic, value=JSON)
    assert len(found) == 21
    assert sum(partition != value["size"] % 4 for partition, _, value in found) == 1  # type: ignore[index]


def test_an_error_of_the_function_that_chooses_is_let_through(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [], partitions=4)

    def by_length(_topic: str, key: Any, _value: object, _partitions: int) -> int:
        return len(key)

    with Producer(broker.bootstrap, value=JSON, partitioner=by_length) as producer:
        with pytest.raises(TypeError, match="has no len"):
            producer.send(topic, {"no": "key"})
        assert producer.counts.sent == 0


def test_a_record_has_all_that_it_was_sent_with(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [], partitions=2)
    with Producer(broker.bootstrap, key=STRING, value=JSON, compression="zstd") as producer:
        headers = [("trace", b"1"), ("trace", None)]
        producer.send(topic, {"ä": [1, None]}, "k", headers=headers, partition=1, timestamp_ms=1234)
        producer.send(topic, None, "k", partition=1)
    with Consumer(broker.bootstrap, topic, key=STRING, value=JSON, **QUICK) as consumer:
        record, tombstone = consumer.read(stop_at_end=True)
    assert (record.topic, record.partition, record.offset) == (topic, 1, 0)
    assert (record.key, record.value, record.timestamp_ms) == ("k", {"ä": [1, None]}, 1234)
    assert record.headers == [("trace", b"1"), ("trace", None)]
    assert (tombstone.key, tombstone.value, tombstone.headers) == ("k", None, [])


def test_receipts_say_where_each_record_is(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    heard: list[Receipt] = []
    with Producer(broker.bootstrap, receipts=True) as producer:
        receipts = [producer.post(topic, value, on_delivery=heard.append) for value in numbers(200)]
        producer.send(topic, b"without")
        assert [receipt.result(10).offset for receipt in receipts] == list(range(200))
        assert producer.flush() == (201, 201, 0, 0)
    assert heard == receipts


def test_with_acks_0_nobody_knows_the_offset(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Producer(broker.bootstrap, acks=0, receipts=True) as producer:
        found = producer.post(topic, b"", partition=0).result(10)
    assert isinstance(found, Delivered)
    assert found.offset is None


def test_receipts_are_for_those_who_ask_for_them(broker: BrokerProcess) -> None:
    with Producer(broker.bootstrap) as producer, pytest.raises(ClientError, match="receipts=True"):
        producer.post("any")


def test_a_full_buffer_is_waited_for(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Producer(broker.bootstrap, queue_buffering_max_messages=10) as producer:
        for value in numbers(500):
            producer.send(topic, value)
    assert producer.counts.acknowledged == 500


def test_many_values_may_be_sent_at_once(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [], partitions=3)
    with Producer(broker.bootstrap, queue_buffering_max_messages=50) as producer:
        assert producer.send_all(topic, iter(numbers(300))) == 300
        with pytest.raises(NotSerializable):
            producer.send_all(topic, [b"before", 5, b"after"])
        assert producer.flush() == (301, 301, 0, 0)
    with Producer(broker.bootstrap, value=JSON) as formatted:
        assert formatted.send_all(topic, [{}, {}]) == 2
    found = everything(broker.bootstrap, topic)
    assert len(found) == 303
    assert sorted(Counter(partition for partition, _, _ in found).values()) == [100, 101, 102]


def test_threads_may_share_a_producer(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [], partitions=3)
    with Producer(broker.bootstrap) as producer:

        def work() -> None:
            for value in numbers(2000):
                producer.send(topic, value)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert producer.flush() == (8000, 8000, 0, 0)


@pytest.mark.parametrize("receipts", [False, True])
@pytest.mark.parametrize("at_once", [False, True])
def test_a_flush_ends_while_other_threads_go_on_sending(receipts: bool, at_once: bool) -> None:
    with Broker(topics={"busy": 4}) as own, Producer(own.bootstrap, receipts=receipts) as producer:
        stop = threading.Event()

        def endless() -> Iterator[bytes]:
            while not stop.wait(0.001):
                yield b"more"

        def work() -> None:
            if at_once:
                producer.send_all("busy", endless())
            else:
                for value in endless():
                    producer.send("busy", value)

        producer.send("busy", b"first")
        thread = threading.Thread(target=work)
        with own.faults.delay("Produce", seconds=0.05):  # so that something waits at any time
            thread.start()
            try:
                for _ in range(3):
                    counts = producer.flush(15)
                    assert counts.sent == counts.acknowledged
                assert thread.is_alive()
            finally:
                stop.set()
                thread.join()
        producer.flush()
        assert len(own.records("busy")) == producer.counts.sent


def test_what_the_broker_refuses_is_raised_at_flush(broker: BrokerProcess) -> None:
    topic = fresh("small")
    with Admin(broker.bootstrap) as admin:
        admin.create_topic(topic, partitions=1, configs={"max.message.bytes": "1000"})
    heard: list[ClientError] = []
    producer = Producer(broker.bootstrap, on_failure=heard.append, linger_ms=0)
    producer.send(topic, b"small")
    producer.flush()
    producer.send(topic, b"x" * 5000)
    with pytest.raises(DeliveryFailed, match=r"1 failed \(1 MSG_SIZE_TOO_LARGE") as raised:
        producer.flush()
    assert (raised.value.failed, raised.value.sent, len(heard)) == (1, 2, 1)
    producer.close()
    assert producer.counts == (2, 1, 1, 0)


def test_an_error_in_the_block_is_not_hidden_by_what_was_not_delivered(broker: BrokerProcess) -> None:
    topic = fresh("small")
    with Admin(broker.bootstrap) as admin:
        admin.create_topic(topic, partitions=1, configs={"max.message.bytes": "1000"})
    producer = Producer(broker.bootstrap)
    producer.send(topic, b"x" * 5000)
    mine = KeyError("mine")
    producer.__exit__(KeyError, mine, None)
    assert "not all are acknowledged" in mine.__notes__[0]


def test_what_cannot_be_written_is_refused_and_nothing_is_sent(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Producer(broker.bootstrap) as producer:
        with pytest.raises(NotSerializable, match=f"the value for topic {topic}.*value=JSON"):
            producer.send(topic, {"a": 1})
        with pytest.raises(NotSerializable, match="the key"):
            producer.send(topic, b"", 5)
        with pytest.raises(ClientError, match=r"2,000,000 bytes .* message_max_bytes"):
            producer.send(topic, b"x" * 2_000_000)
    with Producer(broker.bootstrap, key=STRING, value=JSON) as formatted:
        with pytest.raises(NotSerializable, match=r"the value .* not JSON serializable"):
            formatted.send(topic, object())
        with pytest.raises(NotSerializable, match=r"the key .* not a str"):
            formatted.send(topic, None, 5)
    assert producer.counts.sent == formatted.counts.sent == 0


def test_a_closed_producer_says_so(broker: BrokerProcess) -> None:
    producer = Producer(broker.bootstrap)
    producer.close()
    producer.close()
    with pytest.raises(Closed):
        producer.send("any", b"")


@pytest.mark.parametrize("receipts", [False, True])
def test_a_producer_says_that_it_is_the_parent_s(broker: BrokerProcess, receipts: bool) -> None:
    topic = topic_of(broker.bootstrap, [])

    def work() -> None:
        with producer:  # and the block can be left
            for call in (lambda: producer.send(topic, b""), producer.flush, lambda: producer.counts):
                with pytest.raises(ClientError, match="make one in the child"):
                    call()

    with Producer(broker.bootstrap, receipts=receipts) as producer:
        producer.send(topic, b"before")
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        child.join(30)
        code = child.exitcode
        child.kill()
        assert code == 0
        producer.send(topic, b"after")
    assert producer.counts == (2, 2, 0, 0)


def test_a_producer_that_is_forgotten_with_records_in_it_warns(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    producer = Producer(broker.bootstrap, linger_ms=10_000)
    producer.send(topic, b"")
    with pytest.warns(ResourceWarning, match="1 records in flight"):
        producer.__del__()
    producer.close()


def test_bad_settings_and_places_without_a_broker_are_told_at_once(broker: BrokerProcess) -> None:
    with pytest.raises(BadSetting, match=r"no setting liner\.ms"):
        Producer(broker.bootstrap, liner_ms=5)
    with pytest.raises(BadSetting, match="is not a format"):
        Producer(broker.bootstrap, value=5)
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        Producer("127.0.0.1:1")


def test_confluent_s_settings_are_taken_as_they_are(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Producer({"bootstrap.servers": broker.bootstrap, "acks": 1, "linger.ms": 1}) as producer:
        producer.send(topic, b"1")
    assert producer.counts.acknowledged == 1
