"""/api/v1: messages filtered by an expression, downloaded as files, and read byte by byte."""

import csv
import io
import json

import pyarrow.parquet as pq
import pytest
import requests

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
        for path in ("messages", "messages/download", "tail"):
            address = f"/api/v1/topics/{name}/{path}?filter={quoted('value.n >')}"
            status, _, why = gateway.refused("GET", address)
            assert status == 400
            assert "the filter is not valid: at 1:10: Syntax error" in why, path


def test_a_tail_sends_only_what_matches_an_expression(gateway: Asking, topic: str) -> None:
    matching = quoted('value.who == "alice"')
    with gateway.tail(topic, f"offset=0&limit=2&filter={matching}") as events:
        found = [each for each in events if each.kind == "message"]
    assert [each.data["value"]["n"] for each in found] == [1, 3]


def test_messages_are_downloaded_as_json(gateway: Asking, topic: str) -> None:
    answer = _download(gateway, topic, "format=json")
    assert answer.headers["content-disposition"] == f'attachment; filename="{topic}.json"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    found = answer.json()
    assert len(found["messages"]) == 6
    assert (found["stopped_by"], found["offline"]) == ("end", [])


def test_a_download_continues_over_many_pages_and_says_where_it_has_stopped(gateway: Asking) -> None:
    name = gateway.topic(partitions=1)
    for first in range(0, 2500, 500):
        gateway.write(name, *range(first, first + 500))
    every = _download(gateway, name, "format=json").json()
    assert [int(each["value"]) for each in every["messages"]] == list(range(2500))
    some = _download(gateway, name, "format=json&most=1200").json()
    assert (len(some["messages"]), some["stopped_by"], some["next"]) == (1200, "limit", "0:1200")
    newest = _download(gateway, name, "format=json&last=100000&most=2100").json()
    assert [int(each["value"]) for each in newest["messages"]] == list(range(2499, 399, -1))
    few = _download(gateway, name, "format=json&scan=1500").json()
    assert (len(few["messages"]), few["stopped_by"]) == (1500, "records")


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_a_download_that_fails_in_the_middle_does_not_look_complete(gateway: Asking, format_: str) -> None:
    name = gateway.topic(partitions=1)
    for first in range(0, 1500, 500):
        gateway.write(name, *range(first, first + 500))
    fails_later = quoted("offset < 1200 ? true : 'neither'")  # the first page is sent before
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        _download(gateway, name, f"format={format_}&filter={fails_later}")


def test_messages_are_downloaded_as_csv_without_formulas(gateway: Asking, topic: str) -> None:
    answer = _download(gateway, topic, "format=csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 6
    assert {row["value"] for row in rows} >= {'{"n": 1, "who": "alice"}', "'=HYPERLINK(1)"}
    (hostile,) = [row for row in rows if row["key"]]
    assert hostile["key"] == "'@key"
    assert json.loads(hostile["headers"]) == [{"name": "h", "value": "x", "encoding": "text"}]


def test_messages_are_downloaded_as_parquet(gateway: Asking, topic: str) -> None:
    answer = _download(gateway, topic, f"format=parquet&filter={quoted('value.n < 3')}")
    table = pq.read_table(io.BytesIO(answer.content))
    assert sorted(json.loads(each)["n"] for each in table["value"].to_pylist()) == [0, 1, 2]
    assert set(table["partition"].to_pylist()) == {0, 1}
    about = pq.ParquetFile(io.BytesIO(answer.content)).metadata.metadata
    assert (about[b"stopped_by"], about[b"offline"]) == (b"end", b"[]")


def test_a_file_without_messages_is_valid(gateway: Asking, topic: str) -> None:
    none = f"filter={quoted('offset > 1000')}"
    assert _download(gateway, topic, f"format=json&{none}").json()["messages"] == []
    assert _download(gateway, topic, f"format=csv&{none}").text.startswith("partition,offset,")
    assert (
        pq.read_table(io.BytesIO(_download(gateway, topic, f"format=parquet&{none}").content)).num_rows == 0
    )


def test_the_bytes_of_a_key_and_a_value_are_downloaded_as_they_are(gateway: Asking) -> None:
    name = gateway.topic(partitions=1)
    gateway.write(name, "/wD+", encoding="base64")
    path = f"/api/v1/topics/{name}/partitions/0/messages/0"
    answer = requests.get(f"{gateway.url}{path}/value", timeout=30)
    assert answer.content == b"\xff\x00\xfe"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "has no key" in gateway.refused("GET", f"{path}/key")[2]
    gone = gateway.refused("GET", f"/api/v1/topics/{name}/partitions/0/messages/7/value")
    assert gone == (404, 40407, f"{name}-0 has no message at offset 7, nor after it")


def _download(gateway: Asking, topic: str, query: str) -> requests.Response:
    answer = requests.get(f"{gateway.url}/api/v1/topics/{topic}/messages/download?{query}", timeout=60)
    assert answer.ok, answer.text
    return answer
