"""What the gateway keeps of the topic of pipelines: totals, and nothing that no pipeline would write."""

import json
from dataclasses import replace
from typing import ClassVar, Self

import pytest

from headrace.client.errors import Unreachable
from headrace.client.records.one_by_one import Record
from headrace.gateway import pipelines
from headrace.gateway.pipelines import (
    MAX_EXPECTATIONS,
    MAX_QUERIES,
    MAX_RECORD_BYTES,
    Pipelines,
    Totals,
    read,
)
from headrace.pipeline.progress import RETENTION_MS, Progress

SOUND = Progress(pipeline="trucks", query="trucks.archive", event="batch", at_ms=1, lags={"orders-0": 3})


def test_what_a_pipeline_says_is_read() -> None:
    assert read(Record(value=SOUND.encode())) == SOUND
    smile = replace(SOUND, error="\U0001f600")  # a pair of surrogates in JSON
    assert read(Record(value=smile.encode())) == smile


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
        {"broken": {"orders": {"\ud800": 1}}},
        {"late_rows": "x"},
        {"pipeline": "p\ud800"},
        {"pipeline": "p" * 501},
        {"query": "q" * 501},
        {"error": "e" * MAX_RECORD_BYTES},
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


def event(query: str, event: str = "batch", at_ms: int = 1, rows: int = 0) -> Progress:
    return Progress(pipeline=query.partition(".")[0], query=query, event=event, at_ms=at_ms, rows=rows)


def test_totals_are_those_since_the_start_of_a_query() -> None:
    totals = Totals()
    for each in (
        event("trucks.speeds", rows=5),
        event("trucks.speeds", "started"),
        event("trucks.speeds", rows=2),
        event("trucks.archive", rows=4),
        event("trucks.speeds", rows=3),
        event("orders.totals", rows=1),
    ):
        totals.add(each)

    found = totals.by_pipeline(now_ms=2)
    assert {name: [(each.query, each.rows) for each in queries] for name, queries in found.items()} == {
        "orders": [("orders.totals", 1)],
        "trucks": [("trucks.archive", 4), ("trucks.speeds", 5)],
    }


def test_a_query_that_has_not_reported_for_the_retention_of_the_topic_is_gone() -> None:
    totals = Totals()
    totals.add(event("trucks.speeds", at_ms=1))
    assert totals.by_pipeline(now_ms=RETENTION_MS)
    assert not totals.by_pipeline(now_ms=RETENTION_MS + 1)


def test_the_queries_that_reported_last_are_kept() -> None:
    totals = Totals()
    for number in range(MAX_QUERIES):
        totals.add(event(f"p.q{number}"))
    totals.add(event("p.q0"))
    totals.add(event("p.new"))

    (queries,) = totals.by_pipeline(now_ms=2).values()
    names = {each.query for each in queries}
    assert len(names) == MAX_QUERIES
    assert {"p.q0", "p.new", "p.q2"} <= names
    assert "p.q1" not in names


def test_what_is_returned_does_not_change() -> None:
    totals = Totals()
    totals.add(event("trucks.speeds", rows=5))
    ((before,),) = totals.by_pipeline(now_ms=2).values()
    totals.add(event("trucks.speeds", rows=5))
    assert before.rows == 5


def test_the_expectations_of_a_query_are_bounded() -> None:
    totals = Totals()
    for number in range(2 * MAX_EXPECTATIONS):
        totals.add(replace(event("trucks.speeds"), broken={"orders": {f"rule {number}": 1}}))
    ((found,),) = totals.by_pipeline(now_ms=2).values()
    assert list(found.broken) == [f"orders: rule {number}" for number in range(MAX_EXPECTATIONS)]


class OneRecordAtATime:
    """A follower of four records, whose third step fails once."""

    failures = 0
    ends: ClassVar = {0: 4}

    def __init__(self, *_: object, positions: dict[int, int]) -> None:
        self.positions = {0: positions.get(0, 0)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def at_end(self) -> bool:
        return self.positions[0] == 4

    def step(self, _timeout_s: float) -> list[Record]:
        if self.positions[0] == 2 and not OneRecordAtATime.failures:
            OneRecordAtATime.failures += 1
            raise Unreachable("gone")
        self.positions[0] += 1
        return [Record(value=event("trucks.speeds", rows=10).encode())]


def test_records_are_counted_once_although_a_read_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "Follower", OneRecordAtATime)
    known = Pipelines("nowhere:1")
    with pytest.raises(Unreachable):
        known.totals(now_ms=2)
    ((found,),) = known.totals(now_ms=2).values()
    assert found.rows == 40
    assert len(known.progress()) == 4
