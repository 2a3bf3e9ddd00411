"""Bodies that are no JSON: the refusal says what is wrong with them, wherever they were sent to."""

import gzip

import pytest

from http_support.asking import Asking, v2

NOT_UTF8 = "the body is no JSON in UTF-8: "


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b'{"records": [1}', 422, "the body is no JSON: expecting ',' delimiter at character 14"),
        (b"[" * 100_000, 400, "the body is nested too deeply"),
        (gzip.compress(b"{}", mtime=0), 400, f"{NOT_UTF8}invalid start byte at byte 1 (is it compressed?)"),
        ('{"name": "é"}'.encode("latin-1"), 400, NOT_UTF8),
    ],
)
def test_a_body_that_is_no_json_is_told_what_it_is(
    gateway: Asking, body: bytes, status: int, said: str
) -> None:
    for path, kind in (("/topics/none", v2("json")), ("/api/v1/topics", "application/json")):
        found, code, message = gateway.refused("POST", path, body, kind=kind)
        assert (found, code) == (status, status)
        assert message.startswith(said)
