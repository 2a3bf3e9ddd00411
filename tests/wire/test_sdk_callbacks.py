"""What goes wrong in the functions that a user gives to the SDK: it is told, and nothing is lost by it."""

import re
from collections.abc import Iterator
from itertools import islice

import pytest

from headrace import ClientError, Closed, Consumer, NoSuchTopic, Producer, TopicPartition, Unreachable
from headrace.testing import Broker
from wire.sdk import QUICK, fresh, numbers, topic_of


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Iterator[Broker]:
    yield shared
    shared.faults.clear()


class Flaky:
    """A deserialiser whose registry is away whenever it should be."""

    def __init__(self) -> None:
        self.away: set[bytes] = set()

    def __call__(self, data: bytes) -> str:
        if data in self.away:
            self.away.discard(data)
            raise Unreachable("no schema registry answers")
        return data.decode()


def rest_of(broker: Broker, topic: str, group: str) -> list[bytes]:
    with Consumer(broker.bootstrap, topic, group=group, **QUICK) as consumer:
        return [message.value for message in consumer.read(stop_at_end=True)]


# -- a registry that is away -----------------------------------------------------------------------


@pytest.mark.parametrize("on_bad", ["raise", "skip"])
def test_what_the_registry_cannot_tell_now_comes_again_from_the_same_iterator(
    broker: Broker, on_bad: str
) -> None:
    topic, group, flaky = topic_of(broker.bootstrap, numbers(20)), fresh("group"), Flaky()
    flaky.away = {b"0", b"7", b"19"}
    found: list[str] = []
    failures = 0
    with Consumer(broker.bootstrap, topic, group=group, value=flaky, on_bad=on_bad, **QUICK) as consumer:  # type: ignore[arg-type]
        messages = consumer.read(stop_at_end=True)
        while len(found) < 20:
            try:
                found.append(next(messages).value)
            except Unreachable:
                failures += 1
        consumer.commit()
    assert [*map(str, range(20))] == found
    assert failures == 3
    assert rest_of(broker, topic, group) == []


def test_a_batch_that_the_registry_cannot_tell_now_comes_again(broker: Broker) -> None:
    topic, group, flaky = topic_of(broker.bootstrap, numbers(20)), fresh("group"), Flaky()
    flaky.away = {b"3", b"11"}
    found: list[str] = []
    with Consumer(broker.bootstrap, topic, group=group, value=flaky, **QUICK) as consumer:
        for _ in range(3):
            try:
                for batch in consumer.batches(8, stop_at_end=True):
                    found.extend(batch.values())
            except Unreachable:
                continue
    assert not flaky.away
    assert list(dict.fromkeys(found)) == [*map(str, range(20))]
    assert rest_of(broker, topic, group) == []


def test_what_was_not_decoded_is_not_committed(broker: Broker) -> None:
    topic, group, flaky = topic_of(broker.bootstrap, numbers(10)), fresh("group"), Flaky()
    flaky.away = {b"4"}

    def work() -> None:
        with Consumer(broker.bootstrap, topic, group=group, value=flaky, on_bad="skip", **QUICK) as consumer:
            for _ in consumer:
                pass

    with pytest.raises(Unreachable):
        work()
    assert rest_of(broker, topic, group)[-6:] == numbers(10)[4:]


# -- callbacks that raise --------------------------------------------------------------------------


def test_a_callback_that_raises_at_the_end_loses_no_record(broker: Broker) -> None:
    topic = topic_of(broker.bootstrap, [])

    def complain(_receipt: object) -> None:
        raise LookupError("of the user's")

    def work() -> None:
        with Producer(broker.bootstrap, receipts=True, batch_num_messages=10, **QUICK) as producer:
            for number in range(60):
                producer.post(topic, b"%d" % number, on_delivery=complain)

    with pytest.raises(LookupError, match="of the user's"):
        work()
    assert len(broker.records(topic)) == 60


def test_what_hears_of_failures_may_raise(broker: Broker) -> None:
    topic = topic_of(broker.bootstrap, [])
    producer = Producer(broker.bootstrap, on_failure=lambda _error: 1 / 0, message_max_bytes=2000000, **QUICK)  # type: ignore[arg-type]
    with pytest.raises(ClientError, match="1 failed") as told, producer:
        producer.send(topic, b"x" * 1_500_000)
    assert "ZeroDivisionError" in told.value.__notes__[0]


def test_a_listener_that_raises_is_heard_also_if_there_are_no_records(broker: Broker) -> None:
    topic = topic_of(broker.bootstrap, [])

    def complain(_places: list[TopicPartition]) -> None:
        raise LookupError("of the user's")

    with (
        Consumer(broker.bootstrap, topic, group=fresh("group"), on_assigned=complain, **QUICK) as consumer,
        pytest.raises(LookupError, match="of the user's"),
    ):
        list(consumer.read(idle_s=10))


@pytest.mark.parametrize("which", ["on_assigned", "on_revoked"])
def test_a_listener_that_raises_is_heard_and_no_record_is_lost(broker: Broker, which: str) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(10)), fresh("group")

    def complain(places: list[TopicPartition]) -> None:
        raise LookupError(f"{len(places)} partitions")

    def read(consumer: Consumer[bytes, bytes]) -> None:
        try:
            found.extend(message.value for message in consumer.read(stop_at_end=True))
        except LookupError as error:
            told.append(str(error))

    found: list[bytes] = []
    told: list[str] = []
    consumer = Consumer(broker.bootstrap, topic, group=group, **{which: complain}, **QUICK)  # type: ignore[arg-type]
    read(consumer)
    read(consumer)
    if which == "on_revoked":
        with pytest.raises(LookupError, match="1 partitions"):
            consumer.close()
    else:
        consumer.close()
        assert told == ["1 partitions"]
    assert found == numbers(10)


def test_an_on_commit_that_raises_is_heard(broker: Broker) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(10)), fresh("group")

    def complain(error: object, _offsets: object) -> None:
        raise LookupError(f"error {error}")

    def work() -> None:
        with Consumer(broker.bootstrap, topic, group=group, on_commit=complain, **QUICK) as consumer:
            next(iter(consumer))
            consumer.commit(wait=False)
            list(consumer.read(idle_s=2))

    with pytest.raises(LookupError, match="error None"):
        work()


def test_a_commit_is_made_after_one_that_nobody_waited_for_has_failed(broker: Broker) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(10)), fresh("group")
    with Consumer(broker.bootstrap, topic, group=group, auto_commit=False, **QUICK) as consumer:
        list(islice(consumer, 4))
        with broker.faults.fail("OffsetCommit", error="GROUP_AUTHORIZATION_FAILED", times=1) as fault:
            consumer.commit(wait=False)
            fault.wait()
        assert consumer.commit() == {TopicPartition(topic, 0): 4}
        assert consumer.committed() == {TopicPartition(topic, 0): 4}
        assert consumer.commit() == {}  # nothing is new


# -- what can be known of a partition that was moved, paused, or is not there ----------------------


@pytest.mark.parametrize("group", [None, "seekers"])
def test_lag_and_position_follow_a_seek(broker: Broker, group: str | None) -> None:
    topic = topic_of(broker.bootstrap, numbers(20))
    place = TopicPartition(topic, 0)
    group = group and fresh(group)
    with Consumer(broker.bootstrap, topic, group=group, **QUICK) as consumer:
        list(islice(consumer, 5))
        assert (consumer.lag(), consumer.position()) == ({place: 15}, {place: 5})
        consumer.seek(topic, 0, 12)
        assert (consumer.lag(), consumer.position()) == ({place: 8}, {place: 12})
        consumer.seek(topic, 0, "latest")
        assert (consumer.lag(), consumer.position()) == ({place: 0}, {place: 20})
        consumer.seek(topic, 0, "earliest")
        assert consumer.lag() == {place: 20}


def test_paused_partitions_do_not_keep_a_reader_from_its_end(broker: Broker) -> None:
    topic = topic_of(broker.bootstrap, numbers(20), partitions=2)
    with Consumer(broker.bootstrap, topic, **QUICK) as consumer:
        consumer.pause([(topic, 0)])
        assert {message.partition for message in consumer.read(stop_at_end=True)} == {1}
        consumer.resume()
        assert {message.partition for message in consumer.read(stop_at_end=True)} == {0}


def test_mistakes_of_a_consumer_are_named(broker: Broker) -> None:
    topic = topic_of(broker.bootstrap, numbers(5), partitions=2)
    with Consumer(broker.bootstrap, topic, **QUICK) as consumer:
        for wrong, said in (
            (lambda: consumer.seek(topic, 0, -7), "an offset is a number from 0 on"),
            (lambda: consumer.pause([("zzz", 0)]), "zzz-0 is not assigned to this consumer"),
            (lambda: next(consumer.batches(0)), "at least one record, not 0"),
            (
                lambda: consumer.assign([(topic, 9)]),
                f"{topic}-9 does not exist: the topic has partitions 0 to 1",
            ),
            (lambda: consumer.assign({(topic, 0): -7}), "an offset is a number from 0 on"),
        ):
            with pytest.raises(ClientError, match=re.escape(said)):
                wrong()
        with pytest.raises(NoSuchTopic):
            consumer.assign([("nowhere", 0)])
        assert len(list(consumer.read(stop_at_end=True))) == 5  # all of it has changed nothing
    for late in (consumer.lag, consumer.commit, consumer.committed, consumer.pause):
        with pytest.raises(Closed):
            late()


def test_a_consumer_without_topics_says_so(broker: Broker) -> None:
    with (
        Consumer(broker.bootstrap, **QUICK) as consumer,
        pytest.raises(ClientError, match="the consumer has no topics"),
    ):
        next(iter(consumer))


def test_a_time_before_1970_is_refused(broker: Broker) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Producer(broker.bootstrap, receipts=True, **QUICK) as producer:
        with pytest.raises(ClientError, match="milliseconds since 1970"):
            producer.send(topic, b"x", timestamp_ms=-5)
        with pytest.raises(ClientError, match="milliseconds since 1970"):
            producer.post(topic, b"x", timestamp_ms=-5)
    assert broker.records(topic) == []
