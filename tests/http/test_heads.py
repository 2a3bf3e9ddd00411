"""Heads of requests that are too large: refused while they come, at no cost to anybody else."""

import socket
from collections.abc import Iterator

import pytest

from headrace.gateway.connections import MAX_HEADER_BYTES, MAX_HEADER_LINES, MAX_PIPELINED, MAX_TARGET_BYTES
from headrace.gateway.serving import serve_in_thread
from http_support.asking import WAIT_S

NO_BROKER = "127.0.0.1:1"  # none of this gets as far
START = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
ENDLESS = 46 * 1024 * 1024


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with serve_in_thread(NO_BROKER) as served:
        yield served.url


def connect(url: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=WAIT_S)


def exchange(url: str, first: bytes, again: bytes = b"", most: int = 0) -> tuple[bytes, int]:
    """What is answered to `first` and to `most` bytes of `again`, and how many bytes could be sent."""
    with connect(url) as connection:
        sent = 0
        try:
            connection.sendall(first)
            while sent < most:
                connection.sendall(again)
                sent += len(again)
        except (ConnectionResetError, BrokenPipeError):
            pass  # it was refused meanwhile
        try:
            return b"".join(iter(lambda: connection.recv(65536), b"")), sent
        except ConnectionResetError:
            return b"", sent


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (START + b"a: b\r\n" * (MAX_HEADER_LINES - 2) + b"Connection: close\r\n\r\n", 200),
        (START + b"a: b\r\n" * MAX_HEADER_LINES + b"\r\n", 431),
        (START + b"Connection: close\r\na: " + b"x" * (MAX_HEADER_BYTES - 100) + b"\r\n\r\n", 200),
        (START + b"a: " + b"x" * MAX_HEADER_BYTES + b"\r\n\r\n", 431),
        (START + b"x" * MAX_HEADER_BYTES + b": a\r\n\r\n", 431),
        (b"GET /healthz?" + b"x" * MAX_TARGET_BYTES + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
    ],
    ids=["lines", "too many lines", "bytes", "too many bytes", "too long a name", "too long a target"],
)
def test_the_head_of_a_request_is_bounded(served: str, head: bytes, status: int) -> None:
    answer, _ = exchange(served, head)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]


CHUNKED = b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n"


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (START, b"a: b\r\n" * 1000),
        (START + b"a: ", b"x" * 6000),
        (START, b"x" * 6000),
        (b"GET /", b"x" * 6000),
        (CHUNKED, b"a: b\r\n" * 1000),
        (CHUNKED + b"a: ", b"x" * 6000),
        (CHUNKED[:-3] + b"5;", b"x" * 6000),
    ],
    ids=["lines", "value", "name", "target", "trailers", "trailer", "chunk extension"],
)
def test_a_head_without_an_end_is_refused_when_its_limit_is_reached(
    served: str, first: bytes, again: bytes
) -> None:
    answer, sent = exchange(served, first, again, most=ENDLESS)
    assert sent < ENDLESS  # what fits into the buffers of two sockets, and no more
    assert not answer or answer[9:12] in {b"431", b"414", b"408", b"415", b"404", b"422", b"503"}, answer[
        :200
    ]


def test_a_connection_cannot_queue_requests_without_end(served: str) -> None:
    first = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"  # which waits for a broker
    answer, _ = exchange(served, first + (START + b"\r\n") * 1000 * MAX_PIPELINED)
    assert answer.count(b"HTTP/1.1 ") <= MAX_PIPELINED + 1
