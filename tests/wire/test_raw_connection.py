"""One connection: order of replies, what closes it, half-closed sockets, limits."""

import socket
import struct
import time
from pathlib import Path

import pytest

from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from support.records import make_batch
from wire.process import BrokerProcess
from wire.raw import RawClient, frame_of
from wire.requests import (
    ASK_VERSIONS,
    create_topic,
    fetch_request,
    fresh_name,
    produce,
    produce_request,
    records_in,
)

DEADLINE_S = 10


def test_pipelined_requests_are_answered_in_their_order(raw: RawClient) -> None:
    create_topic(raw, name := fresh_name("pipelined"))
    produce_one, read_all, ask_versions = produce_request(name), fetch_request(name), ASK_VERSIONS
    requests = [(produce_one, 9), (read_all, 12), (ask_versions, 3), (MetadataRequest(topics=None), 12)] * 50
    raw.socket.sendall(
        b"".join(frame_of(request, version, number) for number, (request, version) in enumerate(requests))
    )

    answers = [raw.receive_numbered(request, version) for request, version in requests]

    assert [number for number, _ in answers] == list(range(200))
    assert [answer.responses[0].partition_responses[0].base_offset for _, answer in answers[::4]] == list(
        range(50)
    )
    assert [len(records_in(answer.responses[0].partitions[0])) for _, answer in answers[1::4]] == list(
        range(1, 51)
    )


def test_a_slow_request_does_not_keep_the_next_from_being_done(raw: RawClient) -> None:
    create_topic(raw, name := fresh_name("overtaken"))
    waiting, writing = fetch_request(name, max_wait_ms=60_000), produce_request(name)
    first = raw.send(waiting, 12)
    second = raw.send(writing, 9)

    fetched_number, fetched = raw.receive_numbered(waiting, 12)
    produced_number, _ = raw.receive_numbered(writing, 9)

    assert (fetched_number, produced_number) == (first, second)
    assert len(records_in(fetched.responses[0].partitions[0])) == 1


def test_more_requests_than_may_wait_are_answered_in_the_end(broker: BrokerProcess, raw: RawClient) -> None:
    create_topic(raw, name := fresh_name("queued"))
    waiting = fetch_request(name, max_wait_ms=60_000)
    for _ in range(200):
        raw.send(waiting, 12)
    with RawClient(broker.bootstrap) as other:
        produce(other, name)

    for _ in range(200):
        assert len(records_in(raw.receive(waiting, 12).responses[0].partitions[0])) == 1


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">ihhih", 10, 99, 0, 1, -1),
        struct.pack(">ihhih", 10, 3, 99, 1, -1),
        struct.pack(">ihhih", 10, 0, 2, 1, -1),
        struct.pack(">ihhih", 10, 3, -1, 1, -1),
        struct.pack(">ihhih", 10, -1, 0, 1, -1),
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", 101 * 2**20),
        struct.pack(">ihhihB", 11, 3, 12, 1, -1, 0),
        struct.pack(">ihhih", 10, 3, 0, 1, 30_000),
        b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n",
    ],
    ids=[
        "unknown key",
        "unknown version",
        "produce v2",
        "negative version",
        "negative key",
        "negative size",
        "no size",
        "oversized",
        "no body",
        "client id too long",
        "http",
    ],
)
def test_what_is_no_request_closes_the_connection_and_no_other(
    broker: BrokerProcess, raw: RawClient, frame: bytes
) -> None:
    with RawClient(broker.bootstrap) as hostile:
        hostile.socket.sendall(frame)
        assert hostile.is_closed_by_the_broker()

    assert raw.ask(ASK_VERSIONS, 3).error_code == 0


def test_a_reply_that_is_ready_comes_before_a_broken_request_closes_the_connection(
    broker: BrokerProcess,
) -> None:
    with RawClient(broker.bootstrap) as client:
        request = ASK_VERSIONS
        client.socket.sendall(frame_of(request, 3, 1) + struct.pack(">ihhih", 10, 99, 0, 2, -1))

        assert client.receive_numbered(request, 3)[0] == 1
        assert client.is_closed_by_the_broker()


def test_a_half_closed_connection_still_gets_its_answers_and_is_closed(broker: BrokerProcess) -> None:
    with RawClient(broker.bootstrap) as client:
        create_topic(client, name := fresh_name("half-closed"))
        requests = [(produce_request(name, make_batch(2)), 9), (fetch_request(name, max_wait_ms=50), 12)]
        requests += [(fetch_request(name, 2, max_wait_ms=50), 12)]
        for request, version in requests:
            client.send(request, version)
        client.socket.shutdown(socket.SHUT_WR)

        answers = [client.receive(request, version) for request, version in requests]

        assert len(records_in(answers[1].responses[0].partitions[0])) == 2
        assert client.is_closed_by_the_broker()


def test_a_half_closed_connection_does_not_wait_for_ever(broker: BrokerProcess) -> None:
    with RawClient(broker.bootstrap) as client:
        create_topic(client, name := fresh_name("half-closed"))
        client.send(fetch_request(name, max_wait_ms=60_000), 12)
        client.socket.shutdown(socket.SHUT_WR)

        assert client.is_closed_by_the_broker()


def test_a_frame_may_come_byte_by_byte(raw: RawClient) -> None:
    request = MetadataRequest(topics=None)
    for byte in frame_of(request, 12):
        raw.socket.sendall(bytes([byte]))

    assert raw.receive(request, 12).brokers[0].node_id == 1


def test_a_client_that_does_not_read_is_not_read_from_and_goes_on_when_it_does(
    own_broker: BrokerProcess,
) -> None:
    with RawClient(own_broker.bootstrap) as writer:
        create_topic(writer, "t", max_message_bytes="2000000")
        produce(writer, "t", make_batch([b"x" * 1_000_000]))
    before = own_broker.rss_bytes
    with RawClient(own_broker.bootstrap) as client:
        request = fetch_request("t", max_bytes=2_000_000, partition_max_bytes=2_000_000)
        for number in range(300):
            client.socket.sendall(frame_of(request, 12, number))

        assert own_broker.rss_bytes - before < 64 * 2**20
        for number in range(300):
            assert client.receive_numbered(request, 12)[0] == number
    assert own_broker.peak_rss_bytes - before < 64 * 2**20


def test_connections_beyond_the_limit_are_refused_until_others_leave(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, {"max.connections.per.ip": "3"}) as broker:
        clients = [RawClient(broker.bootstrap) for _ in range(3)]
        for client in clients:
            assert client.ask(ASK_VERSIONS, 3).error_code == 0
        with RawClient(broker.bootstrap) as refused:
            assert refused.is_closed_by_the_broker()
        clients.pop().close()

        assert _gets_in(broker)
        for client in clients:
            client.close()


def _gets_in(broker: BrokerProcess) -> bool:
    """Whether a newcomer is let in soon: the broker has to notice first that another has left."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        with RawClient(broker.bootstrap) as client:
            try:
                return bool(client.ask(ASK_VERSIONS, 3).error_code == 0)
            except (ConnectionError, BrokenPipeError):
                continue
    return False


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(tmp_path: Path) -> None:
    with (
        BrokerProcess(tmp_path, {"connections.max.idle.ms": "300"}) as broker,
        RawClient(broker.bootstrap) as idle,
        RawClient(broker.bootstrap) as busy,
    ):
        deadline = time.monotonic() + 2 * DEADLINE_S
        while not idle.has_something_to_read(0.05) and time.monotonic() < deadline:
            busy.ask(ASK_VERSIONS, 3)
            if _at_end(idle):
                break

        assert _at_end(idle)
        assert busy.ask(ASK_VERSIONS, 3).error_code == 0


def _at_end(client: RawClient) -> bool:
    client.socket.settimeout(0.05)
    try:
        return client.socket.recv(1, socket.MSG_PEEK) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_a_name_nobody_has_is_created_by_the_first_to_ask_and_by_no_one_else(broker: BrokerProcess) -> None:
    name = fresh_name("together")
    clients = [RawClient(broker.bootstrap) for _ in range(10)]
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    for client in clients:
        client.send(request, 12)

    topics = [client.receive(request, 12).topics[0] for client in clients]

    assert [topic.error_code for topic in topics] == [0] * 10
    assert len({topic.topic_id for topic in topics}) == 1
    for client in clients:
        client.close()
