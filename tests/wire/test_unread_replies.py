"""Replies that nobody takes: they fill a bounded part of the memory, and order is kept meanwhile."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from headrace.broker.network.connections import REPLIES_BYTES
from headrace.protocol.schema.metadata import MetadataRequest
from support.records import headers_of, make_batch
from wire.process import BrokerProcess
from wire.raw import RawClient, frame_of
from wire.requests import create_topic, fetch, fetch_request, produce, records_in

MEBIBYTE: Final = 2**20
PARTITIONS: Final = 50  # of a mebibyte each: about what one Fetch may return
LONG_MS: Final = 60_000  # a wait that a test never sees the end of
EVERYTHING: Final = frame_of(
    fetch_request("large", partitions=range(PARTITIONS), max_bytes=2**31 - 1, partition_max_bytes=2**31 - 1),
    12,
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a broker with a topic of some fifty mebibytes, and an empty one."""
    root = tmp_path_factory.mktemp("filled")
    with BrokerProcess(root) as broker, RawClient(broker.bootstrap) as client:
        create_topic(client, "empty")
        create_topic(client, "large", partitions=PARTITIONS)
        for partition in range(PARTITIONS):
            produce(client, "large", make_batch([b"x" * 500_000]), partition=partition)
            produce(client, "large", make_batch([b"x" * 500_000]), partition=partition)
        broker.stop()
    return root


@pytest.fixture
def large(filled: Path) -> Iterator[BrokerProcess]:
    """A broker that has just been started and has a lot to tell."""
    with BrokerProcess(filled) as broker:
        yield broker


def test_fetches_behind_a_long_poll_are_not_read_before_its_end(large: BrokerProcess) -> None:
    before = large.peak_rss_bytes
    waiting = fetch_request("empty", max_wait_ms=LONG_MS)
    with RawClient(large.bootstrap) as client, RawClient(large.bootstrap) as other:
        client.socket.sendall(frame_of(waiting, 12) + EVERYTHING * 30)
        assert not client.has_something_to_read(1)
        assert large.peak_rss_bytes - before < 16 * MEBIBYTE

        produce(other, "empty", make_batch([b"the end of the wait"]))

        (partition,) = client.receive(waiting, 12).responses[0].partitions
        assert len(records_in(partition)) == 1
        for _ in range(30):
            assert len(client.receive_frame()) > (PARTITIONS - 1) * MEBIBYTE * 9 // 10
    assert large.peak_rss_bytes - before < 4 * PARTITIONS * MEBIBYTE


def test_replies_parked_behind_a_long_poll_are_bounded(large: BrokerProcess) -> None:
    before = large.peak_rss_bytes
    topics = MetadataRequest(topics=None)
    with RawClient(large.bootstrap) as client, RawClient(large.bootstrap) as other:
        end = fetch(other, "empty").high_watermark
        waiting = fetch_request("empty", end, max_wait_ms=LONG_MS)
        client.socket.sendall(frame_of(waiting, 12) + frame_of(topics, 12, 2) * 2000)
        produce(other, "empty")

        assert len(client.receive(waiting, 12).responses) == 1
        for _ in range(2000):
            assert len(client.receive(topics, 12).topics) == 2
    assert large.peak_rss_bytes - before < 16 * MEBIBYTE


def test_many_clients_that_never_read_leave_the_others_small_replies(large: BrokerProcess) -> None:
    before = large.peak_rss_bytes
    with ExitStack() as stack:
        for _ in range(30):
            client = stack.enter_context(RawClient(large.bootstrap))
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.socket.sendall(EVERYTHING)
            assert client.has_something_to_read(10)
        other = stack.enter_context(RawClient(large.bootstrap))

        found = fetch(other, "large", max_bytes=MEBIBYTE * 2, partition_max_bytes=MEBIBYTE * 2)

        assert len(headers_of(found.records or b"")) == 1
        assert large.peak_rss_bytes - before < REPLIES_BYTES + 3 * PARTITIONS * MEBIBYTE

    with RawClient(large.bootstrap) as client:
        found = fetch(client, "large", max_bytes=MEBIBYTE * 2, partition_max_bytes=MEBIBYTE * 2)
        assert len(headers_of(found.records or b"")) == 2


def test_a_half_closed_connection_gets_what_it_asked_for_before(large: BrokerProcess) -> None:
    with RawClient(large.bootstrap) as client:
        small = fetch_request("large", max_bytes=1)
        client.socket.sendall(frame_of(fetch_request("empty", max_wait_ms=100), 12) + frame_of(small, 12) * 3)
        client.socket.shutdown(socket.SHUT_WR)

        client.receive_frame()
        for _ in range(3):
            assert len(client.receive(small, 12).responses) == 1
        assert client.is_closed_by_the_broker()
