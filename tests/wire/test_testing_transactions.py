"""Faults of transactions: a connection is lost, or the coordinator dies, and the outcome stays as decided."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Thread
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import headrace
from headrace.testing import Broker, Cluster, Fault, Faults
from headrace.testing.faults import After
from wire.confluent import TIMEOUT_S, settings
from wire.requests import fresh_name

VALUES = [b"tea", b"coffee", b"milk"]
COMMITTED: Final = "read_committed"

Inject = Callable[[Faults], Fault]
LOST_CONNECTIONS: dict[str, Inject] = {
    "EndTxn is not served": lambda faults: faults.hang_up("EndTxn"),
    "the response to EndTxn is lost": lambda faults: faults.hang_up("EndTxn", after="append"),
    "markers are not written": lambda faults: faults.hang_up("WriteTxnMarkers", times=3),
    "responses to markers are lost": lambda faults: faults.hang_up(
        "WriteTxnMarkers", after="append", times=3
    ),
    "markers are refused": lambda faults: faults.fail(
        "WriteTxnMarkers", error="NOT_ENOUGH_REPLICAS", times=3
    ),
}
DEATHS: dict[str, Inject] = {
    "before EndTxn": lambda faults: faults.kill_broker("EndTxn", restart=True),
    "after EndTxn": lambda faults: faults.kill_broker("EndTxn", after="append", restart=True),
    "before the markers": lambda faults: faults.kill_broker("WriteTxnMarkers", restart=True),
    "after the markers": lambda faults: faults.kill_broker("WriteTxnMarkers", after="append", restart=True),
}


class Mistake(Exception):
    """What a program raises within a transaction."""


def make_mistake() -> None:
    raise Mistake


# -- two clients, the same story -------------------------------------------------------------------


class ConfluentWriter:
    """A transactional producer of confluent-kafka."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(settings(bootstrap, transactional_id=fresh_name("confluent")))
        self._producer.init_transactions(TIMEOUT_S)

    def write(
        self, topic: str, values: list[bytes], *, commit: bool, before: Callable[[], object] = lambda: None
    ) -> None:
        """Write values in a transaction, and end it after a call of `before`."""
        self._producer.begin_transaction()
        for value in values:
            self._producer.produce(topic, value)
        assert self._producer.flush(TIMEOUT_S) == 0
        before()
        if commit:
            self._producer.commit_transaction(TIMEOUT_S)
        else:
            self._producer.abort_transaction(TIMEOUT_S)

    def close(self) -> None:
        self._producer.flush(TIMEOUT_S)


class SdkWriter:
    """A transactional producer of the SDK."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = headrace.Producer(bootstrap, transactional_id=fresh_name("sdk"))

    def write(
        self, topic: str, values: list[bytes], *, commit: bool, before: Callable[[], object] = lambda: None
    ) -> None:
        try:
            with self._producer.transaction():
                self._producer.send_all(topic, values)
                self._producer.flush()
                before()
                if not commit:
                    make_mistake()
        except Mistake:
            assert not commit

    def close(self) -> None:
        self._producer.close()


Writer = type[ConfluentWriter] | type[SdkWriter]
BOTH_CLIENTS = pytest.mark.parametrize("writer", [ConfluentWriter, SdkWriter])
BOTH_OUTCOMES = pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
CLIENTS_AND_OUTCOMES = pytest.mark.parametrize(
    ("writer", "commit"), [(ConfluentWriter, True), (SdkWriter, False)], ids=["commit", "abort"]
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def served(shared: Broker) -> Iterator[Broker]:
    yield shared
    shared.faults.clear()


@pytest.fixture
def topic(served: Broker) -> str:
    served.create_topic(name := fresh_name("transactional"))
    return name


def seen(brokers: Broker | Cluster, topic: str, count: int = 0) -> list[bytes | None]:
    """Values for readers with read_committed, once there are `count`."""
    records = brokers.records(topic, count=count, timeout_s=30, isolation_level=COMMITTED)
    return [record.value for record in records]


@contextmanager
def consumer_of(bootstrap: str, topic: str) -> Iterator[Consumer]:
    """A consumer of confluent-kafka with read_committed."""
    consumer = Consumer(
        settings(
            bootstrap,
            group_id=fresh_name("reader"),
            auto_offset_reset="earliest",
            isolation_level=COMMITTED,
            enable_partition_eof=True,
        )
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Consumer) -> list[bytes]:
    """Values up to the last stable offset."""
    found: list[bytes] = []
    while True:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, found
        if message.error():
            return found
        found.append(message.value())


# -- a lost connection, and a dead coordinator -----------------------------------------------------


@CLIENTS_AND_OUTCOMES
@pytest.mark.parametrize("inject", LOST_CONNECTIONS.values(), ids=LOST_CONNECTIONS)
def test_a_lost_connection_does_not_change_the_outcome(
    served: Broker, topic: str, writer: Writer, inject: Inject, *, commit: bool
) -> None:
    before: list[list[bytes | None]] = []
    with closing(writer(served.bootstrap)) as client:
        with inject(served.faults) as fault:
            client.write(topic, VALUES, commit=commit, before=lambda: before.append(seen(served, topic)))
            fault.wait()
        client.write(topic, [b"next"], commit=True)  # is seen only if the first transaction has ended

    expected = [*VALUES, b"next"] if commit else [b"next"]
    assert before == [[]]
    assert seen(served, topic, len(expected)) == expected
    with consumer_of(served.bootstrap, topic) as consumer:
        assert read(consumer) == expected


@CLIENTS_AND_OUTCOMES
@pytest.mark.parametrize("inject", DEATHS.values(), ids=DEATHS)
def test_a_coordinator_that_dies_and_starts_again_keeps_the_outcome(
    writer: Writer, inject: Inject, *, commit: bool
) -> None:
    before: list[list[bytes | None]] = []
    with Broker(topics=["orders"]) as broker, closing(writer(broker.bootstrap)) as client:
        fault = inject(broker.faults)
        client.write("orders", VALUES, commit=commit, before=lambda: before.append(seen(broker, "orders")))
        fault.wait()

        client.write("orders", [b"next"], commit=True)
        expected = [*VALUES, b"next"] if commit else [b"next"]
        assert before == [[]]
        assert seen(broker, "orders", len(expected)) == expected
        with consumer_of(broker.bootstrap, "orders") as consumer:
            assert read(consumer) == expected
        assert [hit.broker_id for hit in fault.hits] == [1]


@BOTH_CLIENTS
@BOTH_OUTCOMES
def test_nothing_is_seen_before_the_markers_and_everything_once_after(
    served: Broker, topic: str, writer: Writer, *, commit: bool
) -> None:
    with consumer_of(served.bootstrap, topic) as consumer, closing(writer(served.bootstrap)) as client:
        with served.faults.hang_up("WriteTxnMarkers", times=None) as fault:
            client.write(topic, VALUES, commit=commit)
            fault.wait(hits=3)
            assert read(consumer) == []
            assert len(served.records(topic)) == len(VALUES)
            assert seen(served, topic) == []

        expected = [*VALUES, b"next"] if commit else [b"next"]
        client.write(topic, [b"next"], commit=True)
        assert seen(served, topic, len(expected)) == expected
        found: list[bytes] = []
        while len(found) < len(expected):  # the consumer has reported an end before, and continues
            found += read(consumer)
        assert found == expected


@pytest.mark.parametrize("after", ["before", "append"])
def test_a_broker_that_was_killed_at_the_markers_completes_the_transaction_after_its_restart(
    after: After,
) -> None:
    with Broker(topics=["orders"]) as broker:
        client = ConfluentWriter(broker.bootstrap)
        fault = broker.faults.kill_broker("WriteTxnMarkers", after=after)
        writing = Thread(target=client.write, args=("orders", VALUES), kwargs={"commit": True})
        writing.start()
        fault.wait()
        broker.restart()
        writing.join()

        assert seen(broker, "orders", len(VALUES)) == VALUES
        assert len(broker.records("orders")) == len(VALUES)


@BOTH_OUTCOMES
@pytest.mark.parametrize("after", ["before", "append"])
def test_another_broker_completes_the_transaction_of_a_coordinator_that_died(
    after: After, *, commit: bool
) -> None:
    with Cluster(topics=["orders"]) as cluster:
        client = ConfluentWriter(cluster.bootstrap)
        with cluster.faults.kill_broker("WriteTxnMarkers", after=after) as fault:
            client.write("orders", VALUES, commit=commit)
            fault.wait()
        (hit,) = fault.hits
        client.write("orders", [b"next"], commit=True)

        expected = [*VALUES, b"next"] if commit else [b"next"]
        assert seen(cluster, "orders", len(expected)) == expected
        assert cluster.leader_of("__transaction_state") != hit.broker_id
        assert (hit.api, hit.client_id) == ("WriteTxnMarkers", f"broker-{hit.broker_id}")


def test_markers_of_one_topic_can_fail_alone(served: Broker) -> None:
    for name in (late := fresh_name("late"), early := fresh_name("early")):
        served.create_topic(name)
    producer = headrace.Producer(served.bootstrap, transactional_id=fresh_name("two-topics"))
    with producer, served.faults.fail("WriteTxnMarkers", error="REQUEST_TIMED_OUT", topic=late) as fault:
        with producer.transaction():
            producer.send(late, b"late")
            producer.send(early, b"early")
        assert seen(served, early, 1) == [b"early"]
        fault.wait(hits=2)
        assert seen(served, late) == []

    assert seen(served, late, 1) == [b"late"]
    assert all(late in hit.topics for hit in fault.hits)
    assert fault.hits[-1].topics == (late,)  # the marker of the other topic is written and not sent again


def test_a_fault_of_markers_is_for_a_coordinator_in_a_cluster_once() -> None:
    """The leader that gets the request of another broker does not apply the fault again."""
    with Cluster(2, topics={"orders": 4}) as cluster:
        producer = headrace.Producer(cluster.bootstrap, transactional_id="orders-1")
        with producer, cluster.faults.delay("WriteTxnMarkers", seconds=0) as fault:
            with producer.transaction():
                for number in range(40):
                    producer.send("orders", b"%d" % number)
            assert len(seen(cluster, "orders", 40)) == 40
        coordinator = cluster.leader_of("__transaction_state")
    assert {hit.broker_id for hit in fault.hits} == {coordinator}
    assert len(fault.hits) == 2  # one request to each leader


def test_a_fault_that_names_a_client_does_not_affect_markers(served: Broker, topic: str) -> None:
    client = ConfluentWriter(served.bootstrap)
    with served.faults.hang_up("WriteTxnMarkers", client_id="billing") as fault:
        client.write(topic, VALUES, commit=True)
        assert seen(served, topic, len(VALUES)) == VALUES
    assert fault.hits == []


# -- killing at other requests ---------------------------------------------------------------------


@pytest.mark.parametrize("after", ["before", "append"])
def test_a_broker_dies_at_a_produce_and_the_record_is_there_once(after: After) -> None:
    with Broker(topics=["orders"]) as broker:
        producer = Producer(settings(broker.bootstrap, enable_idempotence=True))
        fault = broker.faults.kill_broker("Produce", after=after, restart=True)
        producer.produce("orders", b"tea")
        assert producer.flush(TIMEOUT_S) == 0
        fault.wait()

        assert [record.value for record in broker.records("orders")] == [b"tea"]


def test_a_kill_happens_once_and_names_its_moment(served: Broker) -> None:
    with pytest.raises(ValueError, match="expected 'append'"):
        served.faults.kill_broker("EndTxn", after="later")  # type: ignore[arg-type]
    with served.faults.kill_broker("EndTxn", after="append") as fault:
        assert repr(fault) == "<kill the broker after it has served EndTxn: 0 hits>"


# -- what a reader sees ----------------------------------------------------------------------------


def test_records_of_open_and_aborted_transactions_are_left_out(served: Broker, topic: str) -> None:
    client, other = ConfluentWriter(served.bootstrap), ConfluentWriter(served.bootstrap)
    for number in range(6):
        client.write(topic, [b"%d" % number], commit=number % 2 == 0)
        if number == 3:
            other.write(
                topic, [b"x"], commit=False, before=lambda: client.write(topic, [b"between"], commit=True)
            )
    expected = [b"0", b"2", b"between", b"4"]
    assert seen(served, topic, len(expected)) == expected
    assert len(served.records(topic)) == 8

    open_: list[list[bytes | None]] = []
    client.write(topic, VALUES, commit=True, before=lambda: open_.append(seen(served, topic)))
    assert open_ == [expected]


def test_an_unknown_isolation_level_is_refused(served: Broker, topic: str) -> None:
    with pytest.raises(ValueError, match="expected 'read_committed'"):
        served.records(topic, isolation_level="committed")  # type: ignore[arg-type]
