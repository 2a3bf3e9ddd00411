"""Clients that begin something and do not go on with it, and more of them than there is room for."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from headrace.gateway.serving import serve_in_thread
from http_support.asking import WAIT_S, wait_until

NO_BROKER = "127.0.0.1:1"  # none of this gets as far
MOST = 4


@pytest.fixture(scope="module")
def hasty() -> Iterator[str]:
    """A gateway that waits for nobody for long."""
    with serve_in_thread(NO_BROKER, read_timeout_s=0.2) as served:
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
    assert b'"the body has paused for 0.2 s"' in answer


def ask(connection: socket.socket, path: str = "/healthz") -> None:
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: loc"])
def test_an_idle_connection_is_closed_if_there_are_too_many(sent: bytes) -> None:
    with serve_in_thread(NO_BROKER, max_connections=MOST) as served, ExitStack() as stack:
        idle = [stack.enter_context(connect(served.url)) for _ in range(10 * MOST)]
        for each in idle[-MOST:]:  # the earlier ones are closed
            each.sendall(sent)
        with connect(served.url) as whole:
            ask(whole)
            assert said(whole).startswith(b"HTTP/1.1 200 ")
        assert idle[0].recv(1) == b""


def test_a_connection_is_idle_again_after_a_response() -> None:
    with serve_in_thread(NO_BROKER, max_connections=1) as served, connect(served.url) as kept:
        kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert kept.recv(1024).startswith(b"HTTP/1.1 200 ")
        with connect(served.url) as whole:
            ask(whole)
            assert said(whole).startswith(b"HTTP/1.1 200 ")


def test_connections_are_refused_while_all_have_requests(caplog: pytest.LogCaptureFixture) -> None:
    with serve_in_thread(NO_BROKER, max_connections=MOST) as served, ExitStack() as stack:
        busy = [stack.enter_context(connect(served.url)) for _ in range(MOST)]
        for each in busy:
            each.sendall(b"POST /api/v1/topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n")
            each.sendall(b"Expect: 100-continue\r\n\r\n")
            assert each.recv(1024).startswith(b"HTTP/1.1 100 ")
        for _ in range(MOST):
            with connect(served.url) as beyond:
                refused = said(beyond)
            assert refused.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nretry-after: 1\r\n" in refused
        busy[0].close()

        def is_served() -> bool:
            with connect(served.url) as whole:
                try:
                    ask(whole)
                    return said(whole).startswith(b"HTTP/1.1 200 ")
                except (ConnectionResetError, BrokenPipeError):
                    return False

        wait_until(is_served, "there is no room")
    warnings = [each.getMessage() for each in caplog.records if each.name == "headrace.gateway.connections"]
    assert len(warnings) == 1, warnings
    assert warnings[0].startswith(f"all {MOST} connections are open (max_connections)")
