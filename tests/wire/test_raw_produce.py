"""Produce as no client of today's would send it: retries, gaps, old epochs, mixed fates, odd acks."""

from typing import Any

import pytest

from headrace.protocol.compression import Compression
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import ZERO_UUID
from headrace.protocol.records import Record, encode_batch
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.records import TIMESTAMP, headers_of, make_batch
from wire.process import BrokerProcess
from wire.raw import RawClient, frame_of
from wire.requests import create_topic, fetch, fresh_name, produce, produce_request, records_in


@pytest.fixture
def topic(raw: RawClient) -> str:
    name = fresh_name("raw-produce")
    create_topic(raw, name, partitions=2)
    return name


@pytest.fixture
def producer_id(raw: RawClient) -> int:
    answer = raw.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 5)
    assert answer.error_code == 0
    found: int = answer.producer_id
    return found


def sequenced(producer_id: int, sequence: int, count: int = 1, *, epoch: int = 0) -> bytearray:
    return make_batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def test_a_duplicate_is_answered_with_the_offset_of_the_first_write(
    raw: RawClient, topic: str, producer_id: int
) -> None:
    for sequence, base_offset in ((0, 0), (3, 3), (0, 0), (6, 6), (3, 3)):
        answer = produce(raw, topic, sequenced(producer_id, sequence, 3))
        assert (answer.error_code, answer.base_offset) == (0, base_offset)

    assert len(records_in(fetch(raw, topic))) == 9


def test_only_the_newest_five_batches_are_recognized(raw: RawClient, topic: str, producer_id: int) -> None:
    for sequence in range(6):
        assert produce(raw, topic, sequenced(producer_id, sequence)).base_offset == sequence

    assert produce(raw, topic, sequenced(producer_id, 1)).base_offset == 1
    forgotten = produce(raw, topic, sequenced(producer_id, 0))
    assert forgotten.error_code in {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    }


def test_a_gap_in_the_sequence_is_refused_and_writes_nothing(
    raw: RawClient, topic: str, producer_id: int
) -> None:
    assert produce(raw, topic, sequenced(producer_id, 0, 2)).error_code == 0

    answer = produce(raw, topic, sequenced(producer_id, 5))

    assert (answer.error_code, answer.base_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert produce(raw, topic, sequenced(producer_id, 2)).base_offset == 2


def test_an_old_epoch_is_fenced_and_a_new_one_starts_over(
    raw: RawClient, topic: str, producer_id: int
) -> None:
    assert produce(raw, topic, sequenced(producer_id, 0, epoch=1)).error_code == 0

    assert produce(raw, topic, sequenced(producer_id, 1)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    too_far = produce(raw, topic, sequenced(producer_id, 1, epoch=2))
    assert too_far.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(raw, topic, sequenced(producer_id, 0, epoch=2)).base_offset == 1


def test_sequences_go_on_at_zero_after_the_largest(raw: RawClient, topic: str, producer_id: int) -> None:
    largest = 2**31 - 1
    assert produce(raw, topic, sequenced(producer_id, largest - 1, 2)).error_code == 0

    assert produce(raw, topic, sequenced(producer_id, 0)).base_offset == 2


def test_a_producer_that_names_an_id_gets_one_of_its_own(raw: RawClient, producer_id: int) -> None:
    claimed = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000, producer_id=producer_id, producer_epoch=0
    )

    answer = raw.ask(claimed, 5)

    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert answer.producer_id != producer_id


def test_producer_ids_are_unique_over_a_restart(own_broker: BrokerProcess) -> None:
    def ids(count: int) -> list[int]:
        with RawClient(own_broker.bootstrap) as client:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
            return [client.ask(request, 5).producer_id for _ in range(count)]

    before = ids(5)
    own_broker.kill()
    own_broker.start()
    after = ids(5)

    assert len({*before, *after}) == 10


def test_duplicates_are_recognized_after_a_crash(own_broker: BrokerProcess) -> None:
    with RawClient(own_broker.bootstrap) as client:
        create_topic(client, "t")
        assert produce(client, "t", sequenced(7, 0, 3)).base_offset == 0
        assert produce(client, "t", sequenced(7, 3, 3)).base_offset == 3
    own_broker.kill()
    own_broker.start()

    with RawClient(own_broker.bootstrap) as client:
        assert produce(client, "t", sequenced(7, 3, 3)).base_offset == 3
        assert produce(client, "t", sequenced(7, 6)).base_offset == 6


def test_every_partition_of_a_request_has_its_own_fate(raw: RawClient, topic: str) -> None:
    broken = make_batch(1)
    broken[-1] ^= 1
    request = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[
                    PartitionProduceData(index=1, records=make_batch(2)),
                    PartitionProduceData(index=0, records=broken),
                    PartitionProduceData(index=9, records=make_batch(1)),
                    PartitionProduceData(index=0, records=None),
                    PartitionProduceData(index=0, records=b""),
                ],
            ),
            TopicProduceData(
                name="never-was", partition_data=[PartitionProduceData(index=0, records=make_batch(1))]
            ),
        ],
    )

    first, second = raw.ask(request, 9).responses

    codes = [(each.index, ErrorCode(each.error_code)) for each in first.partition_responses]
    assert codes[:3] == [
        (1, ErrorCode.NONE),
        (0, ErrorCode.CORRUPT_MESSAGE),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert all(code != 0 for _, code in codes[3:])
    assert second.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(records_in(fetch(raw, topic, partitions=[1]))) == 2
    assert records_in(fetch(raw, topic)) == []


def test_without_acks_there_is_no_reply(raw: RawClient, topic: str) -> None:
    for _ in range(3):
        raw.send(produce_request(topic, acks=0), 9)
    follow_up = produce_request(topic, acks=1)
    number = raw.send(follow_up, 9)

    answered, response = raw.receive_numbered(follow_up, 9)

    assert answered == number
    assert response.responses[0].partition_responses[0].base_offset == 3


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_acks_that_mean_nothing_are_refused(raw: RawClient, topic: str, acks: int) -> None:
    (answer,) = raw.ask(produce_request(topic, acks=acks), 9).responses[0].partition_responses

    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert records_in(fetch(raw, topic)) == []


def test_topics_are_named_by_id_in_the_newest_version(raw: RawClient) -> None:
    topic_id = create_topic(raw, name := fresh_name("by-id"))

    (known,) = raw.ask(produce_request(topic_id), 13).responses
    (unknown,) = raw.ask(produce_request(b"\x11" * 16), 13).responses
    (none,) = raw.ask(produce_request(ZERO_UUID), 13).responses

    assert known.topic_id == topic_id
    assert known.partition_responses[0].error_code == 0
    assert unknown.topic_id == b"\x11" * 16
    assert unknown.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert none.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert len(records_in(fetch(raw, name))) == 1


def damaged(at: int, value: int) -> bytearray:
    batch = make_batch(1)
    batch[at] = value
    return batch


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (make_batch(1) + make_batch(1), ErrorCode.INVALID_RECORD),
        (make_batch(1)[:-1], ErrorCode.CORRUPT_MESSAGE),
        (damaged(16, 1), ErrorCode.INVALID_RECORD),
        (damaged(16, 3), ErrorCode.CORRUPT_MESSAGE),
        (make_batch(1, base_offset=5), ErrorCode.INVALID_RECORD),
        (b"\x00" * 10, ErrorCode.CORRUPT_MESSAGE),
    ],
    ids=["two batches", "cut short", "magic 1", "magic 3", "offset 5", "ten zeros"],
)
def test_what_is_no_batch_is_refused_and_says_why(
    raw: RawClient, topic: str, records: bytearray, code: ErrorCode
) -> None:
    answer = produce(raw, topic, records)

    assert ErrorCode(answer.error_code) == code
    assert answer.error_message
    assert records_in(fetch(raw, topic)) == []


@pytest.mark.parametrize("compression", Compression)
def test_what_is_fetched_is_byte_for_byte_what_was_produced(
    raw: RawClient, topic: str, compression: Compression
) -> None:
    batch = make_batch(50, compression=compression)

    assert produce(raw, topic, bytearray(batch)).error_code == 0

    fetched = bytes(fetch(raw, topic).records or b"")
    assert fetched[17:] == bytes(batch)[17:]  # before that are the offset and the leader epoch
    assert headers_of(fetched)[0].base_offset == 0


def test_a_topic_of_one_replica_is_not_asked_for_two_in_sync(raw: RawClient) -> None:
    create_topic(raw, name := fresh_name("two-in-sync"), min_insync_replicas="2")

    def code(acks: int) -> Any:
        return raw.ask(produce_request(name, acks=acks), 9).responses[0].partition_responses[0].error_code

    assert code(-1) == 0
    assert code(1) == 0


def test_an_error_without_acks_closes_the_connection(raw: RawClient) -> None:
    raw.send(produce_request("never-was", acks=0), 9)

    assert raw.is_closed_by_the_broker()


def test_a_request_may_name_more_partitions_than_are_handled_at_once(raw: RawClient, topic: str) -> None:
    """Those that there are get their batch, in order, and every other one is answered."""
    indexes = [0, 0, *range(2, 2000), 0]
    request = ProduceRequest(
        acks=1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[PartitionProduceData(index=each, records=make_batch(1)) for each in indexes],
            )
        ],
    )

    replies = raw.ask(request, 9).responses[0].partition_responses

    assert [each.index for each in replies] == indexes
    assert [each.base_offset for each in replies if not each.error_code] == [0, 1, 2]
    assert {each.error_code for each in replies[2:-1]} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


# -- topics whose records the broker reads -------------------------------------------------------


def keyless(*places: int, of: int, compression: Compression) -> bytearray:
    """A batch of so many records, those at `places` without a key."""
    records = [Record(None if number in places else b"k", b"v", (), TIMESTAMP) for number in range(of)]
    return encode_batch(records, compression=compression)


@pytest.mark.parametrize("compression", Compression)
def test_every_record_without_a_key_is_named_to_whoever_writes_to_a_compacted_topic(
    raw: RawClient, compression: Compression
) -> None:
    name = fresh_name("compacted")
    create_topic(raw, name, cleanup_policy="compact")

    answer = produce(raw, name, keyless(1, 2, 4, of=6, compression=compression))

    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [1, 2, 4]
    assert {each.batch_index_error_message for each in answer.record_errors} == {
        "a compacted topic cannot accept a record without a key"
    }
    assert fetch(raw, name).high_watermark == 0


def test_a_batch_that_is_wrong_as_a_whole_names_no_record(raw: RawClient, topic: str) -> None:
    """Clients take that to be about all of them."""
    answer = produce(raw, topic, make_batch(2) + make_batch(1))

    assert (answer.error_code, list(answer.record_errors)) == (ErrorCode.INVALID_RECORD, [])
    assert "one batch" in answer.error_message


@pytest.mark.parametrize("acks", [1, -1])
def test_pipelined_batches_keep_their_order_whether_their_records_are_read_or_not(
    raw: RawClient, producer_id: int, acks: int
) -> None:
    name = fresh_name("compacted")
    create_topic(raw, name, cleanup_policy="compact")
    requests = []
    for number in range(20):
        packed = Compression.ZSTD if number % 3 == 0 else Compression.NONE  # small plain ones need no thread
        batch = make_batch(
            2, producer_id=producer_id, producer_epoch=0, base_sequence=2 * number, compression=packed
        )
        requests.append(produce_request(name, batch, acks=acks))
    raw.socket.sendall(b"".join(frame_of(each, 9, number) for number, each in enumerate(requests)))

    answers = [raw.receive_numbered(requests[0], 9) for _ in requests]

    assert [number for number, _ in answers] == list(range(20))
    replies = [answer.responses[0].partition_responses[0] for _, answer in answers]
    assert [(each.error_code, each.base_offset) for each in replies] == [(0, 2 * n) for n in range(20)]


def test_without_acks_a_batch_with_an_invalid_record_closes_the_connection(
    broker: BrokerProcess, raw: RawClient
) -> None:
    name = fresh_name("compacted")
    create_topic(raw, name, cleanup_policy="compact")
    with RawClient(broker.bootstrap) as other:
        other.send(produce_request(name, make_batch(1, compression=Compression.GZIP), acks=0), 9)
        other.send(produce_request(name, keyless(0, of=1, compression=Compression.GZIP), acks=0), 9)

        assert other.is_closed_by_the_broker()
    assert fetch(raw, name).high_watermark == 1
