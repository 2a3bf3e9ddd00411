"""Clients that begin something and do not go on with it, and more of them than there is room for."""

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.request import urlopen

import pytest

from headrace.http.serving import serve_in_thread
from http_support.asking import WAIT_S, wait_until

NO_BROKER = "127.0.0.1:1"  # none of this gets as far
MOST = 4


@pytest.fixture(scope="module")
def hasty() -> Iterator[str]:
    """A gateway that waits for nobody for long."""
    with serve_in_thread(NO_BROKER, patience_s=0.2) as served:
        yield served.url


def connect(url: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=WAIT_S)


def said(connection: socket.socket) -> bytes:
    """All of it, until the other side closes."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET /healthz HTTP/1.1\r\nHost: loc"])
def test_who_does_not_ask_is_left(hasty: str, sent: bytes) -> None:
    with connect(hasty) as connection:
        connection.sendall(sent)
        assert said(connection) == b""


def test_who_asks_a_letter_at_a_time_is_left(hasty: str) -> None:
    with connect(hasty) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: ")
        connection.settimeout(0.02)

        def is_left() -> bool:
            try:
                connection.sendall(b"x")
                return connection.recv(1) == b""
            except TimeoutError:
                return False
            except (ConnectionResetError, BrokenPipeError):
                return True

        wait_until(is_left, "it is waited for")


def test_who_asks_half_a_second_time_is_left(hasty: str) -> None:
    with connect(hasty) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(1024)
        connection.sendall(b"GET /hea")
        assert said(connection) == b""


def test_half_a_body_is_answered_with_a_refusal(hasty: str) -> None:
    head = b"POST /api/v1/topics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with connect(hasty) as connection:
        connection.sendall(head + b'Content-Length: 100\r\n\r\n{"name"')
        answer = said(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"the body has not gone on for 0.2 s"' in answer


def test_there_are_only_so_many_at_a_time_and_it_is_said_when_there_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serve_in_thread(NO_BROKER, max_connections=MOST) as served:
        with ExitStack() as stack:
            silent = [stack.enter_context(connect(served.url)) for _ in range(MOST + 1)]
            assert said(silent[-1]).startswith(b"HTTP/1.1 503 ")
            assert said(stack.enter_context(connect(served.url))).startswith(b"HTTP/1.1 503 ")
        warnings = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
        assert warnings == [f"refusing connections: there are {MOST}, which is as many as there may be"]

        def is_answered() -> bool:
            try:
                with urlopen(f"{served.url}/healthz", timeout=WAIT_S) as answer:
                    return bool(answer.status == 200)
            except OSError:
                return False

        wait_until(is_answered, "nobody is let in any more")
