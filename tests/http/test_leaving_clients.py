"""Clients that go in the middle of what they send."""

import logging
import socket
from urllib.parse import urlsplit

import pytest

from http_support.asking import WAIT_S, Asking, wait_until

RECORD = b'{"value": {"type": "JSON", "data": 1}}'


def begin(gateway: Asking, path: str, sent: bytes, *headers: str) -> socket.socket:
    """A connection, on which a request for `path` has come as far as `sent`."""
    at = urlsplit(gateway.url)
    connection = socket.create_connection((at.hostname, at.port), timeout=WAIT_S)
    head = [f"POST {path} HTTP/1.1", f"Host: {at.netloc}", "Content-Type: application/json", *headers]
    connection.sendall("\r\n".join([*head, "", ""]).encode() + sent)
    return connection


def until_it_is_logged(caplog: pytest.LogCaptureFixture, path: str) -> None:
    """A request is logged when it is over."""
    wait_until(lambda: any(f"POST {path} " in said for said in caplog.messages), "it is not over")
    failures = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert failures == []


def records_of(gateway: Asking, topic: str) -> str:
    (cluster,) = gateway.get("/v3/clusters")["data"]
    return f"/v3/clusters/{cluster['cluster_id']}/topics/{topic}/records"


def test_who_leaves_a_stream_has_written_what_was_whole(
    gateway: Asking, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headrace.http.access")
    topic = gateway.topic()
    path = records_of(gateway, topic)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in (RECORD, RECORD[:9]))
    with begin(gateway, path, chunks, "Transfer-Encoding: chunked") as connection:
        assert connection.recv(1024).startswith(b"HTTP/1.1 200 ")
    until_it_is_logged(caplog, path)
    assert gateway.values(topic) == ["1"]


def test_half_a_body_of_somebody_who_has_left_is_no_failure_of_ours(
    gateway: Asking, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headrace.http.access")
    topic = gateway.topic()
    for path in (records_of(gateway, topic), f"/topics/{topic}", "/subjects/left/versions"):
        with begin(gateway, path, RECORD, "Content-Length: 1000"):
            pass
        until_it_is_logged(caplog, path)
    assert gateway.values(topic) == []
