"""headrace.Consumer on a real broker: iterating, committing, moving about."""

from itertools import islice
from typing import Any

import pytest

from headrace import (
    JSON,
    STRING,
    Admin,
    BadSetting,
    ClientError,
    Closed,
    Consumer,
    NoSuchTopic,
    NotReadable,
    Producer,
    TopicPartition,
)
from headrace.testing import Broker as EmbeddedBroker
from wire.process import BrokerProcess
from wire.sdk import QUICK, fresh, numbers, topic_of


def read(bootstrap: str, topic: str, group: str) -> list[bytes]:
    """What a member of the group would still get; nothing is committed."""
    with Consumer(bootstrap, topic, group=group, auto_commit=False, **QUICK) as consumer:
        return [message.value for message in consumer.read(stop_at_end=True)]


def test_without_a_group_all_partitions_are_read_from_their_start(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(1000), partitions=3)
    with Consumer(broker.bootstrap, topic, **QUICK) as consumer:
        assert consumer.assignment == [TopicPartition(topic, index) for index in range(3)]
        found = [message.value for message in consumer.read(stop_at_end=True)]
        assert consumer.position() == {
            TopicPartition(topic, 0): 334,
            TopicPartition(topic, 1): 333,
            TopicPartition(topic, 2): 333,
        }
        assert list(consumer.read(stop_at_end=True)) == []  # it is still at the end
        with pytest.raises(ClientError, match="group=NAME"):
            consumer.commit()
    assert sorted(found, key=int) == numbers(1000)


def test_a_group_goes_on_where_it_was(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(700)), fresh("group")
    with Consumer(broker.bootstrap, topic, group=group, **QUICK) as consumer:
        first = [message.value for message in islice(consumer, 601)]
    rest = read(broker.bootstrap, topic, group)
    assert first == numbers(601)
    assert rest == numbers(700)[600:]  # the last one was in work when the loop was left


def test_what_fails_in_the_loop_comes_again(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(50)), fresh("group")

    def work() -> None:
        with Consumer(broker.bootstrap, topic, group=group, **QUICK) as consumer:
            for message in consumer:
                1 / (int(message.value) - 20)

    with pytest.raises(ZeroDivisionError):
        work()
    assert read(broker.bootstrap, topic, group) == numbers(50)[20:]


@pytest.mark.parametrize("batches", [False, True])
def test_what_fails_in_the_loop_comes_again_to_the_next_loop(broker: BrokerProcess, batches: bool) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(50)), fresh("group")
    done: list[str] = []
    failures = iter([20, 20, 33])
    failing = next(failures)

    def work(consumer: Consumer[str, str]) -> None:
        nonlocal failing
        read = consumer.batches(7, stop_at_end=True) if batches else zip(consumer.read(stop_at_end=True))
        for some in read:
            if any(message.offset == failing for message in some):
                failing = next(failures, -1)
                raise ArithmeticError
            done.extend(message.value for message in some)

    with Consumer(broker.bootstrap, topic, group=group, value=STRING, **QUICK) as consumer:
        for _ in range(3):
            with pytest.raises(ArithmeticError):
                work(consumer)
        work(consumer)
    assert done == [str(number) for number in range(50)]
    assert read(broker.bootstrap, topic, group) == []


def test_a_key_that_was_read_is_read_again(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Producer(broker.bootstrap, key=JSON) as producer:
        producer.send(topic, b"", {"id": 1})
    with Consumer(broker.bootstrap, topic, key=JSON, **QUICK) as consumer:
        for _ in range(2):
            message = next(iter(consumer))
            assert (message.key, message.raw.key()) == ({"id": 1}, b'{"id":1}')


def test_what_was_committed_does_not_come_again(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(50)), fresh("group")
    with Consumer(broker.bootstrap, topic, group=group, **QUICK) as consumer:
        assert [message.offset for message in islice(consumer, 3)] == [0, 1, 2]
        consumer.commit()
        in_work = list(islice(consumer, 3))
        consumer.commit(in_work[1])
        assert [message.offset for message in islice(consumer, 3)] == [5, 6, 7]
        batch = next(consumer.batches(5))
        assert [message.offset for message in batch] == [7, 8, 9, 10, 11]
        consumer.commit(batch[2])
        assert next(iter(consumer)).offset == 10


def test_a_record_of_a_paused_partition_comes_again_when_that_goes_on(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(50))
    with Consumer(broker.bootstrap, topic, **QUICK) as consumer:
        assert next(iter(consumer)).offset == 0
        consumer.pause()
        assert list(consumer.read(idle_s=0.1)) == []
        consumer.resume()
        assert [message.offset for message in consumer.read(stop_at_end=True)] == list(range(50))


def test_a_pause_does_not_undo_what_was_done(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(50))
    with Consumer(broker.bootstrap, topic, **QUICK) as consumer:
        messages = consumer.read(idle_s=1)
        list(islice(messages, 12))
        consumer.pause()
        assert list(messages) == []
        assert consumer.position() == {TopicPartition(topic, 0): 12}


class Interrupted:
    """A client of librdkafka's whose user presses Ctrl-C once, when it has just fetched something."""

    def __init__(self, client: Any, where: str) -> None:
        self._client, self._where = client, where

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._client, name)
        return self._interrupt if name == self._where else function

    def _interrupt(self, *arguments: Any, **named: Any) -> Any:
        found = getattr(self._client, self._where)(*arguments, **named)
        if not found or (self._where == "poll" and found.error()):
            return found
        self._where = ""
        raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["poll", "consume"])
@pytest.mark.parametrize("begin", ["start", "committed", "assigned", "sought"])
def test_an_interrupt_in_the_first_fetch_loses_nothing(broker: BrokerProcess, where: str, begin: str) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(50)), fresh("group")
    if begin == "committed":
        with Admin(broker.bootstrap) as admin:
            admin.set_group_offsets(group, {(topic, 0): 10})
    topics, named = ((), None) if begin == "assigned" else (topic, group if begin != "sought" else None)
    with Consumer(broker.bootstrap, topics, group=named, **QUICK) as consumer:
        if begin == "assigned":
            consumer.assign({(topic, 0): 10})
        elif begin == "sought":
            consumer.seek(topic, 0, 10)
        consumer._source.client = Interrupted(consumer._source.client, where)
        with pytest.raises(KeyboardInterrupt):
            next(iter(consumer))
        found = [message.offset for message in consumer.read(stop_at_end=True)]
    assert found == list(range(0 if begin == "start" else 10, 50))


def test_what_is_read_to_the_end_is_done(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(50), partitions=2), fresh("group")
    with Consumer(broker.bootstrap, topic, group=group, **QUICK) as consumer:
        assert len(list(consumer.read(stop_at_end=True))) == 50
    assert read(broker.bootstrap, topic, group) == []


def test_without_auto_commit_only_commit_commits(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(50)), fresh("group")
    place = TopicPartition(topic, 0)
    with Consumer(broker.bootstrap, topic, group=group, auto_commit=False, **QUICK) as consumer:
        messages = list(islice(consumer, 10))
        assert consumer.committed() == {place: None}
        assert consumer.commit(messages[3]) == {place: 4}
        assert consumer.committed() == {place: 4}
        assert consumer.commit() == {place: 10}  # what was handed out, not what was fetched
        assert consumer.commit() == {}
        list(islice(consumer, 10))
    assert read(broker.bootstrap, topic, group) == numbers(50)[10:]


def test_a_commit_that_nobody_waits_for_tells_a_function(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(5)), fresh("group")
    heard: list[tuple[object, list[int]]] = []
    with Consumer(
        broker.bootstrap,
        topic,
        group=group,
        auto_commit=False,
        on_commit=lambda error, places: heard.append((error, [place.offset for place in places])),
        **QUICK,
    ) as consumer:
        list(islice(consumer, 3))
        assert consumer.commit(wait=False) == {}
        list(consumer.read(stop_at_end=True))
    assert heard == [(None, [3])]


def test_an_explicit_commit_is_not_undone_when_the_block_is_left(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(50)), fresh("group")
    with Consumer(broker.bootstrap, topic, group=group, **QUICK) as consumer:
        for message in consumer:
            if message.offset == 7:
                consumer.commit()
                break
    assert read(broker.bootstrap, topic, group) == numbers(50)[8:]


def test_batches_are_done_as_one(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(300)), fresh("group")
    done: list[bytes] = []

    def work() -> None:
        with Consumer(broker.bootstrap, topic, group=group, **QUICK) as consumer:
            for batch in consumer.batches(7):
                assert len(batch) <= 7
                assert batch.values() == [message.value for message in batch]
                assert batch[-1].offset == len(done) + len(batch) - 1
                1 / (len(done) < 140)
                done.extend(batch.values())

    with pytest.raises(ZeroDivisionError):
        work()
    assert done == numbers(300)[: len(done)]
    assert read(broker.bootstrap, topic, group) == numbers(300)[len(done) :]


def test_seek_goes_to_and_fro(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(100))
    with Consumer(broker.bootstrap, topic, **QUICK) as consumer:
        consumer.seek(topic, 0, 90)  # before the first fetch
        assert [message.offset for message in islice(consumer, 3)] == [90, 91, 92]
        consumer.seek(topic, 0, 5)
        assert [message.offset for message in islice(consumer, 3)] == [5, 6, 7]
        consumer.seek(topic, 0, "latest")
        assert list(consumer.read(stop_at_end=True)) == []
        consumer.seek(topic, 0, "earliest")
        assert len(list(consumer.read(stop_at_end=True))) == 100
        consumer.seek(topic, 0, "latest")
        with Producer(broker.bootstrap, **QUICK) as producer:
            producer.send(topic, value=b"later")
        assert [message.value for message in islice(consumer, 1)] == [b"later"]
        with pytest.raises(ClientError, match="is not assigned to this consumer"):
            consumer.seek(topic, 9, 0)


@pytest.mark.parametrize("group", [None, "movers"])
def test_a_seek_holds_while_librdkafka_still_asks_where_to_begin(group: str | None) -> None:
    with EmbeddedBroker() as broker:
        topic = topic_of(broker.bootstrap, numbers(100))

        def begin_at_90(places: list[TopicPartition]) -> None:
            for place in places:
                consumer.seek(*place, 90)

        with (
            broker.faults.delay("ListOffsets", seconds=0.2),
            Consumer(broker.bootstrap, topic, group=group, on_assigned=begin_at_90, **QUICK) as consumer,
        ):
            if group is None:
                begin_at_90(consumer.assignment)
            first = [message.offset for message in consumer.read(idle_s=2)]
            consumer.seek(topic, 0, "earliest")
            consumer.seek(topic, 0, 95)
            again = [message.offset for message in consumer.read(idle_s=1)]
    assert (first, again) == ([*range(90, 100)], [*range(95, 100)])


def test_latest_without_a_group_is_where_a_partition_ended_when_the_consumer_was_made(
    broker: BrokerProcess,
) -> None:
    topic = topic_of(broker.bootstrap, numbers(10))
    with Consumer(broker.bootstrap, topic, start="latest", **QUICK) as consumer:
        with Producer(broker.bootstrap, **QUICK) as producer:
            producer.send(topic, value=b"later")
        assert consumer.lag() == {TopicPartition(topic, 0): 1}
        assert [message.value for message in consumer.read(stop_at_end=True)] == [b"later"]


def test_a_paused_partition_goes_on_where_it_was(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(200), partitions=2)
    zero = TopicPartition(topic, 0)
    with Consumer(broker.bootstrap, topic, **QUICK) as consumer:
        messages = consumer.read(idle_s=1)
        before = [next(messages)]
        while before[-1].partition != 0:
            before.append(next(messages))
        consumer.pause([zero])
        while consumer.position().get(TopicPartition(topic, 1)) != 100:
            before.append(next(messages))
        assert list(messages) == []
        consumer.resume([zero])
        after = list(consumer.read(stop_at_end=True))
    assert [each.offset for each in [*before, *after] if each.partition == 0] == list(range(100))
    assert [each.offset for each in [*before, *after] if each.partition == 1] == list(range(100))


def test_lag_is_what_was_not_handed_out(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(100)), fresh("group")
    with Consumer(broker.bootstrap, topic, group=group, **QUICK) as consumer:
        list(islice(consumer, 30))
        assert consumer.lag() == {TopicPartition(topic, 0): 70}
        list(consumer.read(stop_at_end=True))
        assert consumer.lag() == {TopicPartition(topic, 0): 0}
    with Admin(broker.bootstrap) as admin:
        assert admin.lag(group) == {TopicPartition(topic, 0): 0}


def test_partitions_may_be_assigned_with_offsets(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(100), partitions=2)
    with Consumer(broker.bootstrap, **QUICK) as consumer:
        consumer.assign({(topic, 1): 48})
        assert [message.value for message in consumer.read(stop_at_end=True)] == [b"97", b"99"]
        consumer.assign([(topic, 0)])
        assert len(list(consumer.read(stop_at_end=True))) == 50


def test_start_latest_reads_what_comes_from_now_on(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(10))
    with Consumer(broker.bootstrap, topic, start="latest", **QUICK) as consumer:
        assert list(consumer.read(stop_at_end=True)) == []
        with Producer(broker.bootstrap) as producer:
            producer.send(topic, b"new")
        assert next(iter(consumer)).value == b"new"


def test_reading_ends_when_its_time_is_over(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(10))
    with Consumer(broker.bootstrap, topic, **QUICK) as consumer:
        assert len(list(consumer.read(limit_s=0.5))) == 10
        assert list(consumer.read(limit_s=0)) == []


def test_bad_records_are_raised_where_they_stand_and_the_others_are_read(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, [b"1", b"{", b"3"]), fresh("group")
    with Consumer(broker.bootstrap, topic, group=group, value=JSON, **QUICK) as consumer:
        messages = iter(consumer)
        assert next(messages).value == 1
        with pytest.raises(NotReadable, match=f"the value of {topic}-0 at offset 1") as raised:
            next(messages)
        assert (raised.value.offset, raised.value.raw.value()) == (1, b"{")
        assert next(messages).value == 3
    bad = Consumer(broker.bootstrap, topic, group=f"{group}-2", value=JSON, **QUICK)
    with pytest.raises(NotReadable), bad:
        list(bad)
    assert read(broker.bootstrap, topic, f"{group}-2") == [b"{", b"3"]


def test_bad_records_in_a_batch_are_raised_after_what_came_before(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [b"1", b"2", b"{", b"4"])
    with Consumer(broker.bootstrap, topic, value=JSON, **QUICK) as consumer:
        found: list[int] = []
        with pytest.raises(NotReadable):
            found.extend(value for batch in consumer.batches() for value in batch.values())
        found.extend(value for batch in consumer.batches(stop_at_end=True) for value in batch.values())
    assert found == [1, 2, 4]


def test_bad_records_may_be_skipped_or_handed_over(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [b"1", b"{", b"3"])
    with Consumer(broker.bootstrap, topic, value=JSON, on_bad="skip", **QUICK) as consumer:
        assert [message.value for message in consumer.read(stop_at_end=True)] == [1, 3]
    bad: list[NotReadable] = []
    with Consumer(broker.bootstrap, topic, value=JSON, on_bad=bad.append, **QUICK) as consumer:
        assert [message.value for message in consumer.read(stop_at_end=True)] == [1, 3]
    assert [each.offset for each in bad] == [1]


def test_a_function_is_a_format(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(5))
    with Consumer(broker.bootstrap, topic, value=int, key=STRING, **QUICK) as consumer:
        assert [message.value for message in consumer.read(stop_at_end=True)] == [0, 1, 2, 3, 4]


def test_mistakes_are_told_in_words(broker: BrokerProcess) -> None:
    with pytest.raises(NoSuchTopic, match="there is no topic no-such"):
        Consumer(broker.bootstrap, "no-such")
    with pytest.raises(BadSetting, match="a group needs a name"):
        Consumer(broker.bootstrap, group="")
    with pytest.raises(BadSetting, match="needs a group"):
        Consumer(broker.bootstrap, auto_commit=True)
    with pytest.raises(BadSetting, match="no setting fetch"):
        Consumer(broker.bootstrap, fetch_everything=True)
    with pytest.raises(BadSetting, match="on_bad"):
        Consumer(broker.bootstrap, on_bad="ignore")  # type: ignore[arg-type]
    with Consumer(broker.bootstrap) as consumer:
        pass
    with pytest.raises(Closed):
        next(iter(consumer))
