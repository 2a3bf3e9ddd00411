"""Fetch as clients rarely send it: limits, positions inside batches, leader epochs, topic ids, long polls."""

import time
from typing import Any

import pytest

from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.delete_topics import DeleteTopicsRequest
from support.records import headers_of, make_batch
from wire.process import BrokerProcess
from wire.raw import RawClient, frame_of
from wire.requests import create_topic, fetch, fetch_request, fresh_name, produce, produce_request, records_in

DEADLINE_S = 10
LONG_MS = 60_000  # a wait that a test never sees the end of


@pytest.fixture
def topic(raw: RawClient) -> str:
    name = fresh_name("raw-fetch")
    create_topic(raw, name, partitions=3)
    return name


def test_a_fetch_inside_a_batch_gets_the_whole_batch(raw: RawClient, topic: str) -> None:
    produce(raw, topic, make_batch(10))
    produce(raw, topic, make_batch(5))

    found = records_in(fetch(raw, topic, 7))

    assert [record.offset for record in found] == list(range(15))


@pytest.mark.parametrize("limits", [{"max_bytes": 1}, {"partition_max_bytes": 1}, {"max_bytes": 0}])
def test_the_first_batch_comes_whatever_its_size(raw: RawClient, topic: str, limits: dict[str, int]) -> None:
    produce(raw, topic, make_batch([b"x" * 5000]))
    produce(raw, topic, make_batch([b"y" * 5000]))

    assert len(headers_of(fetch(raw, topic, **limits).records or b"")) == 1


def test_no_more_bytes_come_than_were_asked_for(raw: RawClient, topic: str) -> None:
    for _ in range(20):
        produce(raw, topic, make_batch([b"x" * 1000]))

    size = len(make_batch([b"x" * 1000]))
    assert len(fetch(raw, topic, max_bytes=size * 3 + 10).records or b"") == size * 3
    assert len(fetch(raw, topic, partition_max_bytes=size * 7).records or b"") == size * 7


def test_the_limit_of_a_request_is_shared_by_its_partitions_in_order(raw: RawClient, topic: str) -> None:
    for partition in range(3):
        produce(raw, topic, make_batch([b"x" * 1000]), partition=partition)
    size = len(make_batch([b"x" * 1000]))

    answer = raw.ask(fetch_request(topic, partitions=(2, 0, 1), max_bytes=2 * size + 1), 12)

    partitions = answer.responses[0].partitions
    assert [(each.partition_index, len(each.records)) for each in partitions] == [
        (2, size),
        (0, size),
        (1, 0),
    ]


def test_offsets_outside_of_the_log_are_errors_of_their_partition(raw: RawClient, topic: str) -> None:
    produce(raw, topic, make_batch(3))

    assert [fetch(raw, topic, offset).error_code for offset in (0, 3, 4, -1)] == [
        0,
        0,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    ]
    assert fetch(raw, topic, partitions=[7]).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(raw, "never-was").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_another_leader_epoch_than_ours_is_an_error(raw: RawClient, topic: str) -> None:
    produce(raw, topic)

    assert fetch(raw, topic, leader_epoch=0).error_code == 0
    assert fetch(raw, topic, leader_epoch=5).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_topics_are_named_by_id_in_the_newest_versions(raw: RawClient) -> None:
    topic_id = create_topic(raw, name := fresh_name("by-id"))
    produce(raw, name)

    (known,) = raw.ask(fetch_request(topic_id), 13).responses
    (unknown,) = raw.ask(fetch_request(b"\x11" * 16), 13).responses

    assert known.topic_id == topic_id
    assert len(records_in(known.partitions[0])) == 1
    assert unknown.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_watermarks_stand_beside_the_records(raw: RawClient, topic: str, isolation_level: int) -> None:
    produce(raw, topic, make_batch(4))

    found = fetch(raw, topic, isolation_level=isolation_level)

    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (4, 4, 0)
    assert (found.aborted_transactions is None) == (isolation_level == 0)


def test_a_partition_that_is_named_many_times_is_read_once(raw: RawClient, topic: str) -> None:
    produce(raw, topic, make_batch(2))

    answer = raw.ask(fetch_request(topic, partitions=[0] * 1000), 12)

    (partition,) = answer.responses[0].partitions
    assert len(records_in(partition)) == 2


def test_partitions_that_find_no_room_in_a_reply_cost_no_memory(own_broker: BrokerProcess) -> None:
    with RawClient(own_broker.bootstrap) as client:
        create_topic(client, "t", partitions=200)
        for partition in range(200):
            produce(client, "t", make_batch([b"x" * 900_000]), partition=partition)
        before = own_broker.peak_rss_bytes

        answer = client.ask(fetch_request("t", partitions=range(200), max_bytes=1_700_000), 12)

    sizes = [len(partition.records) > 0 for partition in answer.responses[0].partitions]
    assert sizes == [True] + [False] * 199
    assert own_broker.peak_rss_bytes - before < 20 * 2**20


# -- long polls ------------------------------------------------------------------------------------


def test_a_fetch_that_waits_is_woken_by_an_append(broker: BrokerProcess, raw: RawClient, topic: str) -> None:
    waiting = fetch_request(topic, max_wait_ms=LONG_MS)
    raw.send(waiting, 12)
    assert not raw.has_something_to_read(0.05)

    with RawClient(broker.bootstrap) as other:
        produce(other, topic, make_batch(2))

    assert len(records_in(raw.receive(waiting, 12).responses[0].partitions[0])) == 2


def test_a_fetch_waits_for_min_bytes_over_all_its_partitions(
    broker: BrokerProcess, raw: RawClient, topic: str
) -> None:
    size = len(make_batch([b"x" * 100]))
    waiting = fetch_request(topic, partitions=(0, 1, 2), max_wait_ms=LONG_MS, min_bytes=3 * size)
    raw.send(waiting, 12)

    with RawClient(broker.bootstrap) as other:
        produce(other, topic, make_batch([b"x" * 100]), partition=0)
        produce(other, topic, make_batch([b"x" * 100]), partition=1)
        assert not raw.has_something_to_read(0.05)
        produce(other, topic, make_batch([b"x" * 100]), partition=1)

    found = raw.receive(waiting, 12).responses[0].partitions
    assert [len(records_in(each)) for each in found] == [1, 2, 0]


def test_a_fetch_that_waits_in_vain_is_answered_in_the_end(raw: RawClient, topic: str) -> None:
    found = fetch(raw, topic, max_wait_ms=50)

    assert (found.error_code, bytes(found.records or b"")) == (0, b"")


def test_min_bytes_beyond_max_bytes_do_not_make_a_fetch_wait(raw: RawClient, topic: str) -> None:
    produce(raw, topic, make_batch([b"x" * 1000]))
    produce(raw, topic, make_batch([b"x" * 1000]))

    found = fetch(raw, topic, max_wait_ms=LONG_MS, min_bytes=10_000, max_bytes=1200)

    assert len(records_in(found)) == 1


def test_the_end_of_a_segment_does_not_make_a_fetch_wait(raw: RawClient) -> None:
    create_topic(raw, name := fresh_name("segments"), segment_bytes="1500")
    for _ in range(3):
        produce(raw, name, make_batch([b"x" * 1000]))

    found = fetch(raw, name, max_wait_ms=LONG_MS, min_bytes=2500)

    assert len(records_in(found)) == 1


def test_an_append_right_behind_a_fetch_wakes_it(raw: RawClient, topic: str) -> None:
    reading, writing = fetch_request(topic, max_wait_ms=LONG_MS), produce_request(topic)
    raw.socket.sendall(frame_of(reading, 12, 1) + frame_of(writing, 9, 2))  # both in one packet

    number, fetched = raw.receive_numbered(reading, 12)

    assert number == 1
    assert len(records_in(fetched.responses[0].partitions[0])) == 1


def test_an_error_in_one_partition_ends_the_wait_for_all(raw: RawClient, topic: str) -> None:
    answer = raw.ask(fetch_request(topic, partitions=(0, 9), max_wait_ms=LONG_MS), 12)

    codes = [each.error_code for each in answer.responses[0].partitions]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_fetch_that_waits_learns_that_its_topic_is_deleted(
    broker: BrokerProcess, raw: RawClient, topic: str
) -> None:
    waiting = fetch_request(topic, max_wait_ms=LONG_MS)
    raw.send(waiting, 12)
    assert not raw.has_something_to_read(0.05)

    with RawClient(broker.bootstrap) as other:
        other.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 5)

    (partition,) = raw.receive(waiting, 12).responses[0].partitions
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_many_waiting_fetches_are_all_woken_by_one_append(broker: BrokerProcess, topic: str) -> None:
    waiting = fetch_request(topic, max_wait_ms=LONG_MS)
    clients = [RawClient(broker.bootstrap) for _ in range(20)]
    for client in clients:
        client.send(waiting, 12)

    with RawClient(broker.bootstrap) as other:
        produce(other, topic)

    for client in clients:
        assert len(records_in(client.receive(waiting, 12).responses[0].partitions[0])) == 1
        client.close()


def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind(own_broker: BrokerProcess) -> None:
    with RawClient(own_broker.bootstrap) as client:
        create_topic(client, "t")
        quiet = own_broker.open_sockets
        for _ in range(50):
            with RawClient(own_broker.bootstrap) as visitor:
                visitor.send(fetch_request("t", max_wait_ms=LONG_MS), 12)
        answers: list[Any] = [produce(client, "t") for _ in range(20)]

    assert [answer.error_code for answer in answers] == [0] * 20
    deadline = time.monotonic() + DEADLINE_S
    while own_broker.open_sockets > quiet and time.monotonic() < deadline:
        time.sleep(0.01)
    assert own_broker.open_sockets <= quiet
    assert own_broker.complaints() == []
