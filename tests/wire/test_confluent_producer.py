"""confluent-kafka's producer against a real broker: what was sent is what is there, in order."""

import time
import zlib
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from wire.confluent import TIMEOUT_S, make_topic, read, send, sent_offsets, settings
from wire.process import BrokerProcess
from wire.requests import fresh_name

TIMESTAMP = 1_700_000_000_000


def shapes(count: int) -> list[dict[str, Any]]:
    """Messages with and without key, value and headers."""
    return [
        {
            "key": None if n % 4 == 0 else b"key-%d" % (n % 7),
            "value": None if n % 5 == 0 else b"" if n % 5 == 1 else b"value-%d" % n,
            "headers": [("n", b"%d" % n), ("empty", b""), ("null", None), ("n", b"again")]
            if n % 3 == 0
            else [],
            "timestamp": TIMESTAMP + n * 1000 - (5000 if n % 4 == 3 else 0),
            "partition": 0,
        }
        for n in range(count)
    ]


def as_sent(message: Any) -> dict[str, Any]:
    return {
        "key": message.key(),
        "value": message.value(),
        "headers": message.headers() or [],
        "timestamp": message.timestamp()[1],
        "partition": message.partition(),
    }


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_acks_and_compression_delivers_all_that_was_sent(
    broker: BrokerProcess, acks: int | str, compression: str
) -> None:
    topic = fresh_name("compressed")
    make_topic(broker.bootstrap, topic)
    messages = shapes(200)

    reports = send(broker.bootstrap, topic, messages, acks=acks, compression_type=compression)

    received = read(broker.bootstrap, topic)
    assert [as_sent(message) for message in received] == messages
    assert [message.offset() for message in received] == list(range(200))
    if acks != 0:
        assert sent_offsets(reports) == list(range(200))


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_an_idempotent_producer_writes_everything_once_and_in_order(
    broker: BrokerProcess, compression: str
) -> None:
    topic = fresh_name("idempotent")
    make_topic(broker.bootstrap, topic, partitions=3)
    messages = [{"value": b"%d" % n, "partition": n % 3} for n in range(3000)]

    reports = send(
        broker.bootstrap,
        topic,
        messages,
        enable_idempotence=True,
        compression_type=compression,
        batch_num_messages=50,
    )

    assert sorted(sent_offsets(reports)) == sorted(list(range(1000)) * 3)
    for partition in range(3):
        received = read(broker.bootstrap, topic, partitions=[partition])
        assert [message.value() for message in received] == [b"%d" % n for n in range(partition, 3000, 3)]


def test_a_topic_with_append_time_is_stamped_by_the_broker(broker: BrokerProcess) -> None:
    topic = fresh_name("stamped")
    make_topic(broker.bootstrap, topic, message_timestamp_type="LogAppendTime")

    (report,) = send(broker.bootstrap, topic, [{"value": b"x", "timestamp": 5}], acks="all")

    (message,) = read(broker.bootstrap, topic)
    kind, time_ms = message.timestamp()
    assert kind == 2
    assert time_ms > TIMESTAMP
    assert report[1].timestamp() == (kind, time_ms)


def test_keys_choose_partitions_as_the_consistent_partitioner_says(broker: BrokerProcess) -> None:
    topic = fresh_name("keyed")
    make_topic(broker.bootstrap, topic, partitions=5)
    keys = [b"key-%d" % n for n in range(100)]

    send(broker.bootstrap, topic, [{"key": key, "value": key} for key in keys], partitioner="consistent")

    received = read(broker.bootstrap, topic, partitions=range(5))
    assert {message.key(): message.partition() for message in received} == {
        key: zlib.crc32(key) % 5 for key in keys
    }


def test_a_sticky_producer_without_keys_reaches_every_partition_in_the_end(broker: BrokerProcess) -> None:
    topic = fresh_name("sticky")
    make_topic(broker.bootstrap, topic, partitions=3)

    reached: list[int] = []
    deadline = time.monotonic() + 30
    while set(reached) != {0, 1, 2}:  # it chooses by chance, every few milliseconds
        assert time.monotonic() < deadline, set(reached)
        reports = send(broker.bootstrap, topic, [{"value": b"x"}] * 300, partitioner="random")
        sent_offsets(reports)
        reached += [message.partition() for _, message in reports]

    assert len(read(broker.bootstrap, topic, partitions=range(3))) == len(reached)


def test_a_batch_up_to_max_message_bytes_is_taken_and_a_larger_one_refused(broker: BrokerProcess) -> None:
    topic = fresh_name("limited")
    make_topic(broker.bootstrap, topic, max_message_bytes="100000")
    overhead = 61 + 11  # a batch's header, and a record's own lengths, deltas and attributes

    just_fits = send(broker.bootstrap, topic, [{"value": b"x" * (100_000 - overhead)}], acks="all")
    too_large = send(broker.bootstrap, topic, [{"value": b"x" * (100_000 - overhead + 1)}], acks="all")

    assert sent_offsets(just_fits) == [0]
    assert too_large[0][0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert [len(message.value()) for message in read(broker.bootstrap, topic)] == [100_000 - overhead]


def test_a_message_of_many_megabytes_arrives_whole(broker: BrokerProcess) -> None:
    topic = fresh_name("large")
    make_topic(broker.bootstrap, topic, max_message_bytes=str(32 * 2**20))
    value = bytes(range(256)) * (20 * 2**12)

    sent_offsets(send(broker.bootstrap, topic, [{"value": value}], message_max_bytes=32 * 2**20))

    (message,) = read(broker.bootstrap, topic, fetch_message_max_bytes=1000)
    assert message.value() == value


def test_records_that_a_compacted_topic_cannot_take_are_refused(broker: BrokerProcess) -> None:
    topic = fresh_name("compacted")
    make_topic(broker.bootstrap, topic, cleanup_policy="compact")

    reports = send(broker.bootstrap, topic, [{"value": b"no key"}])

    assert reports[0][0].code() == KafkaError.INVALID_RECORD


def test_an_unknown_topic_is_created_when_somebody_writes_to_it(broker: BrokerProcess) -> None:
    topic = fresh_name("new")

    assert sent_offsets(send(broker.bootstrap, topic, [{"value": b"first"}])) == [0]

    assert [message.value() for message in read(broker.bootstrap, topic)] == [b"first"]


def test_an_unknown_topic_is_an_error_where_topics_are_not_created_by_themselves(tmp_path: Any) -> None:
    with BrokerProcess(tmp_path, {"auto.create.topics.enable": "false"}) as strict:
        producer = Producer(settings(strict.bootstrap, message_timeout_ms=1000))
        reports: list[Any] = []
        producer.produce("nowhere", b"x", on_delivery=lambda error, _: reports.append(error.code()))
        producer.flush(TIMEOUT_S)

        assert reports in (
            [KafkaError._UNKNOWN_TOPIC],
            [KafkaError.UNKNOWN_TOPIC_OR_PART],
            [KafkaError._MSG_TIMED_OUT],
        )
        assert producer.list_topics(timeout=TIMEOUT_S).topics == {}


def test_a_topic_name_that_cannot_be_is_an_error_at_once(broker: BrokerProcess) -> None:
    producer = Producer(settings(broker.bootstrap))

    found = producer.list_topics("no/such", timeout=TIMEOUT_S).topics["no/such"]

    assert found.error.code() == KafkaError.TOPIC_EXCEPTION


def test_every_invalid_record_of_a_batch_is_reported_as_such(broker: BrokerProcess) -> None:
    """The other records of the batch get an error of their own, by which an application can retry them."""
    topic = fresh_name("compacted")
    make_topic(broker.bootstrap, topic, cleanup_policy="compact")
    messages = [{"key": b"k" if n % 3 else None, "value": b"%d" % n} for n in range(9)]

    reports = send(broker.bootstrap, topic, messages, linger_ms=500, batch_num_messages=9)

    codes = {int(message.value()): error.code() for error, message in reports}
    assert codes == {
        n: KafkaError._INVALID_DIFFERENT_RECORD if n % 3 else KafkaError.INVALID_RECORD for n in range(9)
    }
