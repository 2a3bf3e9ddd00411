"""Records in the pipelines' topic that no pipeline would write."""

import json

import pytest

from headrace.client.records.one_by_one import Record
from headrace.http.console.progress import read
from headrace.pipeline.progress import Progress

SOUND = Progress(pipeline="trucks", query="trucks.archive", event="batch", at_ms=1, lags={"orders-0": 3})


def test_what_a_pipeline_says_is_read() -> None:
    assert read(Record(value=SOUND.encode())) == SOUND


@pytest.mark.parametrize(
    "change",
    [
        {"at_ms": "soon"},
        {"at_ms": 10**400},
        {"at_ms": True},
        {"rows": None},
        {"lag": 1.5},
        {"rows_per_s": float("nan")},
        {"rows_per_s": "fast"},
        {"lags": "all"},
        {"lags": {"orders-0": "much"}},
        {"pipeline": ""},
        {"pipeline": 7},
        {"query": None},
        {"error": ["x"]},
        {"shared": 1},
        {"restarts": None},
        {"graph": "steps"},
        {"broken": ["orders"]},
        {"broken": {"orders": 3}},
        {"broken": {"orders": {"has an id": "many"}}},
    ],
)
def test_a_record_with_something_else_in_it_is_passed_over(change: dict[str, object]) -> None:
    value = json.dumps({**json.loads(SOUND.encode()), **change}).encode()
    assert read(Record(value=value)) is None


@pytest.mark.parametrize(
    "value", [None, b"", b"not json", b"[]", b"7", b"null", b"{}", b"\xff\xfe", b"[" * 100_000]
)
def test_whatever_else_is_there_is_passed_over(value: bytes | None) -> None:
    assert read(Record(value=value)) is None
