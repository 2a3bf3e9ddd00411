"""/api/v1: messages filtered by an expression, and read byte by byte."""

import base64
import json

import pytest

from http_support.asking import Asking, quoted


@pytest.fixture(scope="module")
def topic(gateway: Asking) -> str:
    """Six messages in two partitions, one of them hostile."""
    name = gateway.topic(partitions=2)
    for number in range(5):
        gateway.write(name, {"n": number, "who": "alice" if number % 2 else "bob"}, partition=number % 2)
    gateway.write(name, "=HYPERLINK(1)", partition=1, key="@key", headers=[{"name": "h", "value": "x"}])
    return name


def test_an_expression_selects_messages(gateway: Asking, topic: str) -> None:
    matching = quoted('value.n >= 1 && value.who == "alice"')
    assert [each["n"] for each in gateway.values(topic, f"filter={matching}")] == [1, 3]
    newest = gateway.get(f"/api/v1/topics/{topic}/messages?last=10&filter={matching}")
    assert [each["value"]["n"] for each in newest["messages"]] == [3, 1]
    assert newest["scanned"]["messages"] == 6
    assert (
        newest["filter_error"] == "no such overload: the operation is not defined for the given operand types"
    )
    by_key = quoted('key.startsWith("@")')  # five messages have no key
    assert gateway.values(topic, f"filter={by_key}") == ["=HYPERLINK(1)"]
    by_header = quoted('headers["h"] == "x" && key == "@key"')
    assert gateway.values(topic, f"filter={by_header}") == ["=HYPERLINK(1)"]


def test_an_invalid_expression_is_refused_with_a_sentence(gateway: Asking, topic: str) -> None:
    empty = gateway.topic(partitions=1)
    for name in (topic, empty):
        for path in ("messages", "tail"):
            address = f"/api/v1/topics/{name}/{path}?filter={quoted('value.n >')}"
            status, _, why = gateway.refused("GET", address)
            assert status == 400
            assert "the filter is not valid: at 1:10: Syntax error" in why, path


def test_a_tail_sends_only_what_matches_an_expression(gateway: Asking, topic: str) -> None:
    matching = quoted('value.who == "alice"')
    with gateway.tail(topic, f"offset=0&limit=2&filter={matching}") as events:
        found = [each for each in events if each.kind == "message"]
    assert [each.data["value"]["n"] for each in found] == [1, 3]


def test_the_bytes_of_a_message_are_returned_as_they_are(gateway: Asking) -> None:
    name = gateway.topic(partitions=1)
    gateway.write(name, {"n": 1}, key="k")
    (message,) = gateway.get(f"/api/v1/topics/{name}/messages?raw=true")["messages"]
    assert (base64.b64decode(message["key"]), message["key_encoding"]) == (b"k", "base64")
    assert json.loads(base64.b64decode(message["value"])) == {"n": 1}
