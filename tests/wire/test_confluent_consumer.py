"""confluent-kafka's consumer without a group: from every kind of position, and what it can ask."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, Consumer, KafkaError, Producer, TopicPartition

from wire.confluent import READER, TIMEOUT_S, make_topic, read, send, settings
from wire.process import BrokerProcess
from wire.requests import fresh_name

TIMESTAMP = 1_700_000_000_000


@pytest.fixture(scope="module")
def topic(broker: BrokerProcess) -> str:
    """Two partitions; in the first, 100 messages a second apart, in batches of ten."""
    name = fresh_name("readable")
    make_topic(broker.bootstrap, name, partitions=2)
    messages = [{"value": b"%d" % n, "timestamp": TIMESTAMP + 1000 * n, "partition": 0} for n in range(100)]
    send(broker.bootstrap, name, messages, batch_num_messages=10)
    return name


@pytest.fixture
def consumer(broker: BrokerProcess) -> Iterator[Any]:
    consumer = Consumer(settings(broker.bootstrap, group_id="nobody", enable_auto_commit=False))
    try:
        yield consumer
    finally:
        consumer.close()


def values(messages: list[Any]) -> list[int]:
    return [int(message.value()) for message in messages]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("start", [0, 1, 37, 99, 100])
def test_reading_starts_at_the_offset_asked_for_even_inside_a_batch(
    broker: BrokerProcess, topic: str, start: int, isolation: str
) -> None:
    assert values(read(broker.bootstrap, topic, start=start, isolation_level=isolation)) == list(
        range(start, 100)
    )


@pytest.mark.parametrize("limit", [1, 100, 5000])
def test_small_fetches_get_everything_in_the_end(broker: BrokerProcess, topic: str, limit: int) -> None:
    received = read(broker.bootstrap, topic, fetch_message_max_bytes=limit, fetch_max_bytes=1_000_000)

    assert values(received) == list(range(100))


def test_an_offset_past_the_end_is_reset_as_the_client_wishes(broker: BrokerProcess, topic: str) -> None:
    assert values(read(broker.bootstrap, topic, start=5000, auto_offset_reset="earliest")) == list(range(100))

    with pytest.raises(AssertionError, match="_AUTO_OFFSET_RESET"):
        read(broker.bootstrap, topic, start=5000, auto_offset_reset="error")


def test_a_reader_at_the_end_gets_what_comes_after(broker: BrokerProcess) -> None:
    name = fresh_name("tail")
    make_topic(broker.bootstrap, name)
    send(broker.bootstrap, name, [{"value": b"before"}])
    consumer = Consumer(settings(broker.bootstrap, **READER))
    consumer.assign([TopicPartition(name, 0, OFFSET_END)])
    assert consumer.poll(TIMEOUT_S).error().code() == KafkaError._PARTITION_EOF

    send(broker.bootstrap, name, [{"value": b"after"}])

    message = consumer.poll(TIMEOUT_S)
    assert (message.value(), message.offset()) == (b"after", 1)
    consumer.close()


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (TIMESTAMP - 1, 0),
        (TIMESTAMP, 0),
        (TIMESTAMP + 1, 1),
        (TIMESTAMP + 41_500, 42),
        (TIMESTAMP + 99_000, 99),
    ],
)
def test_a_time_is_found_at_the_first_message_that_is_not_older(
    consumer: Any, topic: str, asked: int, found: int
) -> None:
    (answer,) = consumer.offsets_for_times([TopicPartition(topic, 0, asked)], timeout=TIMEOUT_S)

    assert answer.offset == found


def test_a_time_after_the_last_message_is_found_at_the_end(consumer: Any, topic: str) -> None:
    late = TIMESTAMP + 99_001
    answers = consumer.offsets_for_times(
        [TopicPartition(topic, 0, late), TopicPartition(topic, 1, late)], timeout=TIMEOUT_S
    )

    assert [answer.offset for answer in answers] == [OFFSET_END, OFFSET_END]


def test_watermarks_are_where_a_partition_starts_and_ends(consumer: Any, topic: str) -> None:
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S) == (0, 100)
    assert consumer.get_watermark_offsets(TopicPartition(topic, 1), timeout=TIMEOUT_S) == (0, 0)


def test_seeking_goes_back_and_forth(consumer: Any, topic: str) -> None:
    consumer.assign([TopicPartition(topic, 0, 90)])
    assert int(consumer.poll(TIMEOUT_S).value()) == 90

    consumer.seek(TopicPartition(topic, 0, 3))
    back = int(consumer.poll(TIMEOUT_S).value())
    consumer.seek(TopicPartition(topic, 0, 95))
    forth = int(consumer.poll(TIMEOUT_S).value())

    assert (back, forth) == (3, 95)


def test_many_partitions_are_read_side_by_side_each_in_order(broker: BrokerProcess) -> None:
    name = fresh_name("wide")
    make_topic(broker.bootstrap, name, partitions=40)
    sent = [{"value": b"%d" % n, "partition": n % 40} for n in range(4000)]
    send(broker.bootstrap, name, sent)

    received = read(broker.bootstrap, name, partitions=range(40))

    for partition in range(40):
        own = [message for message in received if message.partition() == partition]
        assert values(own) == list(range(partition, 4000, 40))
        assert [message.offset() for message in own] == list(range(100))


def test_a_group_is_told_to_try_again_while_there_is_no_coordinator(
    broker: BrokerProcess, consumer: Any, topic: str
) -> None:
    consumer.subscribe([topic])

    assert consumer.poll(0.3) is None
    assert Producer(settings(broker.bootstrap)).list_topics(timeout=TIMEOUT_S).topics
