"""How the Spark sink's producer writes batches to leaders that refuse, move, hang up or answer late."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any, Final

import pytest

from cluster.waiting import until
from headrace.client.errors import ClientError
from headrace.protocol.batch import HEADER_SIZE
from headrace.protocol.compression import Compression, compress
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import Record, encode_batch
from headrace.protocol.schema.index import ApiKey
from headrace.spark.errors import SparkError
from headrace.spark.producer import MOST_IN_FLIGHT, WAITING_BYTES, BatchProducer, ProducerId
from headrace.tables.reader.cluster import ClusterConnections
from wire.confluent import make_topic, read
from wire.process import BrokerProcess
from wire.requests import fresh_name
from wire.scripted_broker import FINE, PRODUCER_ID, TOPIC, Fate, ScriptedBrokers, refused

NOW_MS: Final = 1_700_000_000_000
HERE: Final = TopicPartition(TOPIC, 0)
PASSING: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.CORRUPT_MESSAGE,
)
LOST: Final = Fate(appends=False, hangs_up=True)
LOST_AFTER_THE_APPEND: Final = Fate(hangs_up=True)


@contextmanager
def producing(bootstrap: str, **options: Any) -> Iterator[BatchProducer]:
    cluster = ClusterConnections(bootstrap)
    try:
        found = BatchProducer(cluster, **options)
        try:
            yield found
        finally:
            found.close()
    finally:
        cluster.close()


def add(target: BatchProducer, values: Sequence[bytes | None], place: TopicPartition = HERE) -> None:
    """A batch of these values."""
    body = encode_batch([Record(None, value) for value in values])[HEADER_SIZE:]
    target.add(place, compress(target._compression, body), len(values), NOW_MS)


def add_pairs(target: BatchProducer, batches: int, place: TopicPartition = HERE) -> list[bytes | None]:
    """Batches of two values each, and the values."""
    values: list[bytes | None] = [b"%d" % n for n in range(2 * batches)]
    for n in range(0, len(values), 2):
        add(target, values[n : n + 2], place)
    return values


def test_batches_are_written_in_order_and_where_they_are_is_told() -> None:
    with ScriptedBrokers(partitions=3) as brokers, producing(brokers.bootstrap) as target:
        values = [add_pairs(target, 4 * n, TopicPartition(TOPIC, n)) for n in range(3)]
        offsets = target.flush()

        assert target.producer == ProducerId(id=PRODUCER_ID, epoch=0)
        assert [each.values for each in brokers.partitions] == values
        assert offsets == {TopicPartition(TOPIC, 1): (0, 7), TopicPartition(TOPIC, 2): (0, 15)}


@pytest.mark.parametrize("code", PASSING)
def test_what_passes_is_tried_again(code: ErrorCode) -> None:
    with ScriptedBrokers([refused(code)]) as brokers, producing(brokers.bootstrap) as target:
        values = add_pairs(target, 6)

        assert target.flush() == {HERE: (0, 11)}
        assert brokers.partitions[0].values == values
        assert brokers.asked[ApiKey.PRODUCE] == 7


def test_a_new_leader_is_found() -> None:
    with (
        ScriptedBrokers([FINE, FINE, Fate(new_leader=1)], brokers=2) as brokers,
        producing(brokers.bootstrap) as target,
    ):
        values = add_pairs(target, 8)

        assert target.flush() == {HERE: (0, 15)}
        assert brokers.partitions[0].values == values


@pytest.mark.parametrize(
    "fate",
    [LOST_AFTER_THE_APPEND, Fate(code=ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND), Fate(says_nothing=True)],
    ids=["the answer is lost", "too few replicas have it", "the answer says nothing"],
)
@pytest.mark.parametrize("at", [0, 1, 4])
def test_what_had_arrived_is_not_written_twice(fate: Fate, at: int) -> None:
    with ScriptedBrokers([*repeat(FINE, at), fate]) as brokers, producing(brokers.bootstrap) as target:
        values = add_pairs(target, 6)

        assert target.flush() == {HERE: (0, 11)}, "offsets are those of the first time"
        assert brokers.partitions[0].values == values
        assert brokers.asked[ApiKey.PRODUCE] > 6


@pytest.mark.parametrize("late", [Fate(held_for=4), refused(ErrorCode.NOT_ENOUGH_REPLICAS, held_for=4)])
def test_five_are_on_their_way_and_keep_their_order_also_if_one_is_refused(late: Fate) -> None:
    with ScriptedBrokers([FINE, FINE, late]) as brokers, producing(brokers.bootstrap) as target:
        values = add_pairs(target, 12)

        assert target.flush() == {HERE: (0, 23)}
        assert brokers.partitions[0].values == values
        assert brokers.most_unanswered == MOST_IN_FLIGHT


def test_the_first_batch_travels_alone() -> None:
    """A leader takes an unknown producer's batch at any number: here, the second one for the first."""
    first = refused(ErrorCode.NOT_ENOUGH_REPLICAS)
    with ScriptedBrokers([first]) as brokers, producing(brokers.bootstrap) as target:
        values = add_pairs(target, 3)
        target.flush()

        assert brokers.partitions[0].values == values


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_every_batch_is_there_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    kinds = [
        FINE,
        LOST,
        LOST_AFTER_THE_APPEND,
        *map(refused, PASSING[:3]),
        Fate(new_leader=0),
        Fate(new_leader=1),
    ]
    fates = [chance.choice([FINE, *kinds]) for _ in range(12)]
    with ScriptedBrokers(fates, brokers=2, partitions=2) as brokers, producing(brokers.bootstrap) as target:
        values = [add_pairs(target, 10, TopicPartition(TOPIC, n)) for n in range(2)]
        offsets = target.flush()

        assert [each.values for each in brokers.partitions] == values, fates
        assert offsets == {TopicPartition(TOPIC, 0): (0, 19), TopicPartition(TOPIC, 1): (0, 19)}


REFUSALS: Final[dict[str, tuple[Fate, int, str]]] = {
    "a large record": (
        refused(ErrorCode.MESSAGE_TOO_LARGE),
        1,
        (
            "scripted-0: MESSAGE_TOO_LARGE: a record is larger than the topic's max.message.bytes allows; "
            "raise that, or set kafka.compression.type"
        ),
    ),
    "a large batch": (
        refused(ErrorCode.MESSAGE_TOO_LARGE, "too much"),
        2,
        (
            "scripted-0: too much: batches of 75 bytes are larger than the topic's max.message.bytes allows; "
            "raise that, or set kafka.batch.size to less"
        ),
    ),
    "a record without a key": (
        refused(ErrorCode.INVALID_RECORD),
        1,
        (
            "scripted-0: INVALID_RECORD: the topic refuses these records; a compacted topic wants every "
            "record to have a key"
        ),
    ),
    "a stranger": (
        refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        1,
        "scripted-0: TOPIC_AUTHORIZATION_FAILED: this user may not write there",
    ),
    "anything else": (refused(ErrorCode.POLICY_VIOLATION, "no."), 1, "scripted-0: the broker says no."),
}


@pytest.mark.parametrize(("fate", "records", "sentence"), REFUSALS.values(), ids=REFUSALS.keys())
def test_what_does_not_pass_is_said(fate: Fate, records: int, sentence: str) -> None:
    with ScriptedBrokers([fate]) as brokers, producing(brokers.bootstrap) as target:
        add(target, [b""] * records)
        with pytest.raises(SparkError) as refusal:
            target.flush()
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("fate", "why"),
    [
        (refused(ErrorCode.NOT_ENOUGH_REPLICAS), "NOT_ENOUGH_REPLICAS"),
        (LOST, "the broker closed the connection"),
    ],
)
def test_what_does_not_pass_in_time_is_said_with_the_reason(fate: Fate, why: str) -> None:
    with ScriptedBrokers(repeat(fate, 50)) as brokers, producing(brokers.bootstrap, timeout_s=0.5) as target:
        add(target, [b""])
        with pytest.raises(SparkError, match=r"scripted-0: not written for 0.5 s: ") as refusal:
            target.flush()
    assert str(refusal.value).endswith(why)


# -- who does not wait for all -----------------------------------------------------------------


def test_the_leaders_word_is_enough_if_asked_for() -> None:
    with (
        ScriptedBrokers([FINE, refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)]) as brokers,
        producing(brokers.bootstrap, acks=1, idempotent=False) as target,
    ):
        add(target, [b"0", b"1"])
        target.flush()
        add(target, [b"2"])

        assert target.flush() == {HERE: (0, 2)}
        assert target.producer == ProducerId()
        assert brokers.asked[ApiKey.INIT_PRODUCER_ID] == 0
        assert brokers.partitions[0].values == [b"0", b"1", b"2"]


def test_nobody_is_waited_for_if_asked_for() -> None:
    with (
        ScriptedBrokers(partitions=2) as brokers,
        producing(brokers.bootstrap, acks=0, idempotent=False) as target,
    ):
        values = [add_pairs(target, 8, TopicPartition(TOPIC, n)) for n in range(2)]

        assert target.flush() == {TopicPartition(TOPIC, 0): (-1, -1), TopicPartition(TOPIC, 1): (-1, -1)}
        until("it has arrived", lambda: [each.values for each in brokers.partitions] == values)


# -- producer ids ------------------------------------------------------------------------------


def test_a_producer_id_is_asked_for_again() -> None:
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    with ScriptedBrokers(introductions=codes) as brokers, producing(brokers.bootstrap) as target:
        assert target.producer.id == PRODUCER_ID


def test_who_may_not_have_a_producer_id_is_told() -> None:
    codes = [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    with (
        ScriptedBrokers(introductions=codes) as brokers,
        pytest.raises(ClientError, match="no producer id: CLUSTER_AUTHORIZATION_FAILED"),
        producing(brokers.bootstrap),
    ):
        pass


# -- a real broker -----------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Compression)
def test_a_broker_takes_every_codec(broker: BrokerProcess, codec: Compression) -> None:
    topic = fresh_name("sunk")
    make_topic(broker.bootstrap, topic)
    with producing(broker.bootstrap, compression=codec) as target:
        values = add_pairs(target, 20, TopicPartition(topic, 0))

        assert target.flush() == {TopicPartition(topic, 0): (0, 39)}
    found = read(broker.bootstrap, topic)
    assert [each.value() for each in found] == values
    assert {each.timestamp()[1] for each in found} == {NOW_MS}


def test_a_broker_that_dies_and_returns_has_everything_once(own_broker: BrokerProcess) -> None:
    make_topic(own_broker.bootstrap, "returning")
    place = TopicPartition("returning", 0)
    values = [b"%d " % n + bytes(200_000) for n in range(80)]
    with producing(own_broker.bootstrap) as target:
        for value in values[:40]:
            add(target, [value], place)
        assert target._waiting_bytes, "something is on its way"
        own_broker.kill()
        own_broker.start()
        for value in values[40:]:
            add(target, [value], place)

        assert target.flush() == {place: (0, 79)}
    assert [each.value() for each in read(own_broker.bootstrap, "returning")] == values


def test_no_more_waits_than_may() -> None:
    with ScriptedBrokers(partitions=2) as brokers, producing(brokers.bootstrap) as target:
        waiting = []
        for n in range(120):
            add(target, [bytes(500_000)], TopicPartition(TOPIC, n % 2))
            waiting.append(target._waiting_bytes)
        target.flush()

        assert max(waiting) < WAITING_BYTES
        assert sum(len(each.values) for each in brokers.partitions) == 120
