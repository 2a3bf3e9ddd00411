"""Transactions of the SDK on a real broker: commit, abort, fencing, and each record exactly once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Thread
from typing import Any

import pytest

from headrace import (
    Admin,
    AsyncConsumer,
    AsyncProducer,
    BadSetting,
    ClientError,
    Consumer,
    DeliveryFailed,
    Fenced,
    Producer,
    TransactionAborted,
)
from wire.process import BrokerProcess
from wire.sdk import QUICK, fresh, numbers, topic_of

COUNT = 40
BATCH = 7


class Mistake(Exception):
    """Raised by the code of a user."""


def values(bootstrap: str, topic: str, **options: Any) -> list[Any]:
    with Consumer(bootstrap, topic, **QUICK, **options) as consumer:
        return [message.value for message in consumer.read(stop_at_end=True)]


def transactional(broker: BrokerProcess, **options: Any) -> Producer:
    return Producer(broker.bootstrap, transactional_id=fresh("id"), **options)


def crash(*, when: bool = True) -> None:
    if when:
        raise Mistake


@contextmanager
def aborted(
    producer: Producer, kind: type[Exception] = Mistake, match: str | None = None, **options: Any
) -> Iterator[list[Exception]]:
    """A transaction whose block raises this; the list has the error afterwards."""
    found: list[Exception] = []
    with pytest.raises(kind, match=match) as raised, producer.transaction(**options):
        yield found
    found.append(raised.value)


@asynccontextmanager
async def aborted_too(producer: AsyncProducer, kind: type[Exception]) -> AsyncIterator[None]:
    with pytest.raises(kind):
        async with producer.transaction():
            yield


@pytest.fixture
def topic(broker: BrokerProcess) -> str:
    return topic_of(broker.bootstrap, [])


# -- commit and abort ------------------------------------------------------------------------------


def test_the_end_of_the_block_commits_what_was_sent_to_several_topics(
    broker: BrokerProcess, topic: str
) -> None:
    audit = topic_of(broker.bootstrap, [], partitions=3)
    with transactional(broker) as producer:
        with producer.transaction():
            producer.send(topic, b"bill")
            producer.send_all(audit, numbers(COUNT))
            producer.flush()
            assert values(broker.bootstrap, topic) == []
        assert values(broker.bootstrap, topic) == [b"bill"]
        assert sorted(values(broker.bootstrap, audit)) == sorted(numbers(COUNT))
        with producer.transaction():
            producer.send(topic, b"another")
    assert values(broker.bootstrap, topic) == [b"bill", b"another"]
    assert producer.counts == (COUNT + 2, COUNT + 2, 0, 0)


def test_a_block_that_raises_is_aborted_and_the_next_one_is_not(broker: BrokerProcess, topic: str) -> None:
    failures: list[ClientError] = []
    with transactional(broker, on_failure=failures.append, linger_ms=5_000) as producer:
        with aborted(producer):
            producer.send(topic, b"purged")
            crash()
        with aborted(producer):
            producer.send(topic, b"written")
            producer.flush()
            crash()
        producer.flush()
        with producer.transaction():
            producer.send(topic, b"good")
    assert not failures
    assert values(broker.bootstrap, topic) == [b"good"]
    assert values(broker.bootstrap, topic, isolation_level="read_uncommitted") == [b"written", b"good"]


def test_an_empty_transaction_can_be_committed_and_aborted(broker: BrokerProcess) -> None:
    with transactional(broker) as producer:
        with producer.transaction():
            pass
        with aborted(producer):
            crash()


def test_receipts_of_aborted_records_say_so(broker: BrokerProcess, topic: str) -> None:
    told: list[ClientError | None] = []
    with transactional(broker, receipts=True) as producer:
        with aborted(producer):
            written = producer.post(topic, b"written")
            assert written.result(timeout_s=30).offset == 0
            purged = producer.post(topic, b"purged", on_delivery=lambda receipt: told.append(receipt.error))
            crash()
        for receipt in (written, purged):
            with pytest.raises(TransactionAborted, match="the transaction of the record is aborted"):
                receipt.result()
        with producer.transaction():
            good = producer.post(topic, b"good")
        assert good.result().offset is not None
    assert len(told) == 1
    assert isinstance(told[0], TransactionAborted)


def test_a_failed_record_aborts_the_transaction(broker: BrokerProcess, topic: str) -> None:
    small = fresh("small")
    with Admin(broker.bootstrap) as admin:
        admin.create_topic(small, partitions=1, configs={"max.message.bytes": "200"})
    with transactional(broker) as producer:
        with aborted(producer, DeliveryFailed, "MSG_SIZE_TOO_LARGE"):
            producer.send(topic, b"good")
            producer.send(small, bytes(1000))
        producer.flush()
        with aborted(producer, DeliveryFailed, "MSG_SIZE_TOO_LARGE") as raised:
            producer.send(small, bytes(1000))
            for _ in range(10_000):  # until librdkafka refuses records, as the transaction has failed
                producer.send(topic, b"more")
                producer.poll(0.01)
        assert isinstance(raised[0].__cause__, TransactionAborted)
        with producer.transaction():
            producer.send(topic, b"again")
    assert values(broker.bootstrap, topic) == [b"again"]
    assert values(broker.bootstrap, small) == []


def test_a_record_that_is_refused_at_once_aborts_the_transaction(broker: BrokerProcess, topic: str) -> None:
    with transactional(broker) as producer:
        with aborted(producer, ClientError, "give the producer a format"):
            producer.send(topic, b"good")
            producer.send(topic, {"a": "dict"})
        with producer.transaction():
            producer.send(topic, b"again")
    assert values(broker.bootstrap, topic) == [b"again"]


def test_threads_send_within_one_transaction(broker: BrokerProcess, topic: str) -> None:
    with transactional(broker) as producer, producer.transaction():
        threads = [Thread(target=producer.send_all, args=(topic, numbers(COUNT))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(values(broker.bootstrap, topic)) == sorted(numbers(COUNT) * 3)


# -- fencing ---------------------------------------------------------------------------------------


def test_a_newer_producer_fences_the_older_one(broker: BrokerProcess, topic: str) -> None:
    name = fresh("id")
    with Producer(broker.bootstrap, transactional_id=name) as older:
        with aborted(older, Fenced, "PRODUCER_FENCED"):
            older.send(topic, b"older")
            older.flush()
            newer = Producer(broker.bootstrap, settings={"transactional.id": name})
            with newer, newer.transaction():
                newer.send(topic, b"newer")
            older.send(topic, b"older again")
        with pytest.raises(Fenced, match="make another one"), older.transaction():
            pass
    assert values(broker.bootstrap, topic) == [b"newer"]


def test_a_producer_whose_id_is_refused_is_not_made(broker: BrokerProcess) -> None:
    with pytest.raises(ClientError, match="INVALID_TRANSACTION_TIMEOUT"):
        transactional(broker, transaction_timeout_ms=2_000_000_000)


def test_the_error_of_a_user_is_not_hidden_by_fencing(broker: BrokerProcess, topic: str) -> None:
    name = fresh("id")
    with Producer(broker.bootstrap, transactional_id=name) as older, aborted(older):
        older.send(topic, b"older")
        older.flush()
        Producer(broker.bootstrap, transactional_id=name).close()
        crash()


# -- read, process, write --------------------------------------------------------------------------


def reader(broker: BrokerProcess, source: str, group: str, **options: Any) -> Consumer[Any, Any]:
    return Consumer(broker.bootstrap, source, group=group, auto_commit=False, **QUICK, **options)


def by_batches(consumer: Consumer[Any, Any]) -> Iterator[list[bytes]]:
    for batch in consumer.batches(BATCH, stop_at_end=True):
        yield [message.value for message in batch]


def one_by_one(consumer: Consumer[Any, Any]) -> Iterator[list[bytes]]:
    for message in consumer.read(stop_at_end=True):
        yield [message.value]


@pytest.mark.parametrize("steps", [by_batches, one_by_one])
@pytest.mark.parametrize("partitions", [1, 3])
def test_each_record_is_processed_once_despite_aborts_within_the_loop(
    broker: BrokerProcess,
    topic: str,
    steps: Callable[[Consumer[Any, Any]], Iterator[list[bytes]]],
    partitions: int,
) -> None:
    source, group = topic_of(broker.bootstrap, numbers(COUNT), partitions=partitions), fresh("group")
    with transactional(broker) as producer, reader(broker, source, group) as consumer:
        for number, batch in enumerate(steps(consumer)):
            try:
                with producer.transaction(offsets_of=consumer):
                    producer.send_all(topic, batch)
                    crash(when=number in {0, 2, 3})
            except Mistake:
                continue
    assert sorted(values(broker.bootstrap, topic)) == sorted(numbers(COUNT))
    assert values(broker.bootstrap, source, group=group) == []


def test_a_transaction_over_several_batches_is_read_again_as_a_whole(
    broker: BrokerProcess, topic: str
) -> None:
    source, group = topic_of(broker.bootstrap, numbers(COUNT)), fresh("group")
    with transactional(broker) as producer, reader(broker, source, group) as consumer:
        for crashes in (True, True, False):
            try:
                with producer.transaction(offsets_of=consumer):
                    for batch in by_batches(consumer):
                        producer.send_all(topic, batch)
                    crash(when=crashes)
            except Mistake:
                continue
    assert values(broker.bootstrap, topic) == numbers(COUNT)
    assert values(broker.bootstrap, source, group=group) == []


def test_a_consumer_that_starts_at_the_end_loses_nothing_by_an_abort(
    broker: BrokerProcess, topic: str
) -> None:
    source = topic_of(broker.bootstrap, numbers(3))
    with (
        transactional(broker) as producer,
        reader(broker, source, fresh("group"), start="latest") as consumer,
    ):
        assert list(consumer.read(stop_at_end=True)) == []
        with Producer(broker.bootstrap) as plain:
            plain.send(source, b"new")
        for crashes in (True, False):
            try:
                with producer.transaction(offsets_of=consumer):
                    for message in consumer.read(stop_at_end=True):
                        producer.send(topic, message.value)
                    crash(when=crashes)
            except Mistake:
                continue
    assert values(broker.bootstrap, topic) == [b"new"]


def test_another_process_continues_after_the_last_committed_transaction(
    broker: BrokerProcess, topic: str
) -> None:
    source, group, name = topic_of(broker.bootstrap, numbers(COUNT)), fresh("group"), fresh("id")
    for _ in range(2):
        with (
            Producer(broker.bootstrap, transactional_id=name) as producer,
            reader(broker, source, group) as consumer,
        ):
            try:
                for number, batch in enumerate(by_batches(consumer)):
                    with producer.transaction(offsets_of=consumer):
                        producer.send_all(topic, batch)
                        crash(when=number == 2)
            except Mistake:
                continue
    last = Producer(broker.bootstrap, transactional_id=name)
    with last, reader(broker, source, group) as consumer:
        for batch in by_batches(consumer):
            with last.transaction(offsets_of=consumer):
                last.send_all(topic, batch)
    assert values(broker.bootstrap, topic) == numbers(COUNT)


def test_a_rebalance_during_a_transaction_aborts_it(broker: BrokerProcess, topic: str) -> None:
    source, group = topic_of(broker.bootstrap, numbers(COUNT), partitions=2), fresh("group")
    with (
        transactional(broker) as producer,
        reader(broker, source, group) as consumer,
        aborted(producer, TransactionAborted, "REBALANCE_IN_PROGRESS", offsets_of=consumer),
    ):
        for message in consumer.read(stop_at_end=True):
            producer.send(topic, message.value)
        consumer.subscribe(topic)  # gives all partitions back
        list(consumer.read(stop_at_end=True))
    assert values(broker.bootstrap, topic) == []


# -- misuse ----------------------------------------------------------------------------------------


def test_records_outside_a_transaction_are_refused(broker: BrokerProcess, topic: str) -> None:
    with transactional(broker, receipts=True) as producer:
        for send in (producer.send, producer.post):
            with pytest.raises(ClientError, match="within a transaction only"):
                send(topic, b"x")
        with pytest.raises(ClientError, match="within a transaction only"):
            producer.send_all(topic, [b"x"])
        with producer.transaction():
            pass
        with pytest.raises(ClientError, match="within a transaction only"):
            producer.send(topic, b"x")
    assert values(broker.bootstrap, topic, isolation_level="read_uncommitted") == []


def test_transactions_cannot_be_nested(broker: BrokerProcess, topic: str) -> None:
    with transactional(broker) as producer, producer.transaction():
        with pytest.raises(ClientError, match="cannot be nested"), producer.transaction():
            pass
        producer.send(topic, b"x")
    assert values(broker.bootstrap, topic) == [b"x"]


def test_a_producer_without_an_id_has_no_transactions(broker: BrokerProcess) -> None:
    why = "make it with transactional_id=NAME"
    with Producer(broker.bootstrap) as producer, pytest.raises(ClientError, match=why):
        producer.transaction()


def test_offsets_are_of_a_consumer_with_a_group_that_does_not_commit_by_itself(
    broker: BrokerProcess, topic: str
) -> None:
    with transactional(broker) as producer:
        for group in (None, fresh("group")):
            consumer = Consumer(broker.bootstrap, topic, group=group)
            refused = pytest.raises(BadSetting, match="auto_commit=False")
            with consumer, refused, producer.transaction(offsets_of=consumer):
                pass
        billing: Any = "billing"
        with (
            pytest.raises(BadSetting, match="offsets_of is a Consumer"),
            producer.transaction(offsets_of=billing),
        ):
            pass
        with producer.transaction():
            producer.send(topic, b"x")


# -- asyncio ---------------------------------------------------------------------------------------


def test_with_asyncio_each_record_is_processed_once(broker: BrokerProcess, topic: str) -> None:
    source, group = topic_of(broker.bootstrap, numbers(COUNT), partitions=3), fresh("group")

    async def story() -> None:
        consumer = AsyncConsumer(broker.bootstrap, source, group=group, auto_commit=False, **QUICK)
        async with AsyncProducer(broker.bootstrap, transactional_id=fresh("id")) as producer, consumer:
            number = 0
            async for batch in consumer.batches(BATCH, stop_at_end=True):
                try:
                    async with producer.transaction(offsets_of=consumer):
                        await producer.send_all(topic, batch.values())
                        number += 1
                        crash(when=number in {1, 3})
                except Mistake:
                    continue

    asyncio.run(story())
    assert sorted(values(broker.bootstrap, topic)) == sorted(numbers(COUNT))
    assert values(broker.bootstrap, source, group=group) == []


def test_with_asyncio_each_record_is_processed_once_one_by_one(broker: BrokerProcess, topic: str) -> None:
    source, group = topic_of(broker.bootstrap, numbers(COUNT)), fresh("group")

    async def story() -> None:
        consumer = AsyncConsumer(broker.bootstrap, source, group=group, auto_commit=False, **QUICK)
        async with AsyncProducer(broker.bootstrap, transactional_id=fresh("id")) as producer, consumer:
            crashes = iter([False, False, True, False, True])
            async for message in consumer.read(stop_at_end=True):
                try:
                    async with producer.transaction(offsets_of=consumer):
                        await producer.send(topic, message.value)
                        crash(when=next(crashes, False))
                except Mistake:
                    continue

    asyncio.run(story())
    assert values(broker.bootstrap, topic) == numbers(COUNT)


def test_with_asyncio_a_cancelled_block_is_aborted(broker: BrokerProcess, topic: str) -> None:
    async def story() -> None:
        async with AsyncProducer(broker.bootstrap, transactional_id=fresh("id"), linger_ms=5) as producer:
            sent = asyncio.Event()

            async def work() -> None:
                async with producer.transaction():
                    await producer.send(topic, b"cancelled")
                    sent.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await sent.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with aborted_too(producer, Mistake):
                posted = await producer.post(topic, b"purged or written")
                crash()
            await asyncio.wait([posted])
            with pytest.raises(ClientError, match="within a transaction only"):
                await producer.post(topic, b"x")
            async with producer.transaction():
                with pytest.raises(ClientError, match="cannot be nested"):
                    async with producer.transaction():
                        pass
                await producer.send(topic, b"good")

    asyncio.run(story())
    assert values(broker.bootstrap, topic) == [b"good"]


def test_with_asyncio_a_newer_producer_fences_the_older_one(broker: BrokerProcess, topic: str) -> None:
    name = fresh("id")

    async def story() -> None:
        older = AsyncProducer(broker.bootstrap, transactional_id=name)
        async with older, aborted_too(older, Fenced):
            await older.send(topic, b"older")
            newer = AsyncProducer(broker.bootstrap, transactional_id=name)
            async with newer, newer.transaction():
                await newer.send(topic, b"newer")
            await older.post(topic, b"older again")

    asyncio.run(story())
    assert values(broker.bootstrap, topic) == [b"newer"]
