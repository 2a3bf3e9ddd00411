"""HEAD is answered as GET is, without the body."""

import pytest

from http_support.asking import Asking


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/ui/", "/subjects", "/api/v1/topics", "/nowhere"])
def test_head_is_answered_as_get_is(gateway: Asking, path: str) -> None:
    got, head = gateway("GET", path), gateway("HEAD", path)

    assert head.status_code == got.status_code
    assert head.headers["content-type"] == got.headers["content-type"]
    assert "content-length" in head.headers
    assert head.content == b""


def test_a_stream_is_ended_at_once(gateway: Asking) -> None:
    topic = gateway.topic()
    head = gateway("HEAD", f"/api/v1/topics/{topic}/tail")

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")
    assert gateway("GET", "/healthz").ok  # on the same connection


def test_no_record_is_taken_by_head(gateway: Asking) -> None:
    assert gateway("HEAD", "/consumers/g/instances/i/records").status_code == 405
