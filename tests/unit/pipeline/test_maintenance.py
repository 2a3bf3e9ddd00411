"""Scheduled maintenance: when a table is due, and what is done to it. On a real table, without Spark."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from headrace.pipeline import Delta, Maintenance, PipelineError, maintenance
from headrace.pipeline.maintenance import Caretaker, interval

DAY_S = 24 * 3600
LONG_AGO = 1_000_000_000
PLAN = Maintenance(every="1 day", vacuum_after="7 days")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def target(tmp_path: Path) -> Delta:
    path = tmp_path / "table"
    for n in range(3):
        write_deltalake(path, pa.table({"id": [n]}), mode="append")
    (path / "part-lost.parquet").touch()
    os.utime(path / "part-lost.parquet", (LONG_AGO, LONG_AGO))
    return Delta(str(path), maintenance=PLAN)


def test_a_table_is_maintained_once_in_an_interval_also_over_restarts(target: Delta, tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "maintenance.json"
    assert Caretaker({"archive": target}, file, clock).run_due() == [], "the first interval begins"
    clock.now = DAY_S - 1
    assert Caretaker({"archive": target}, file, clock).run_due() == []

    clock.now = DAY_S
    caretaker = Caretaker({"archive": target}, file, clock)
    assert caretaker.run_due() == [
        f"Delta table {target.path}: optimize: 3 files became 1",
        f"Delta table {target.path}: vacuum: 1 files removed",
    ]
    assert caretaker.run_due() == []
    assert sorted(DeltaTable(target.path).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]
    assert not (Path(target.path) / "part-lost.parquet").exists()


def test_a_step_that_fails_is_logged_and_the_others_are_done(
    target: Delta, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    broken = replace(target, maintenance=replace(PLAN, expire_after="5 days"))
    caretaker = Caretaker({"archive": broken}, tmp_path / "maintenance.json", clock)
    caretaker.run_due()
    clock.now = DAY_S

    assert len(caretaker.run_due()) == 2
    assert "expire failed: " in caplog.text
    assert "no snapshots to expire" in caplog.text


def test_tables_are_maintained_beside_a_running_pipeline(
    target: Delta, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "POLL_S", 0.01)
    clock, done = Clock(), threading.Event()

    class Watched(Caretaker):
        def run_due(self) -> list[str]:
            clock.now += DAY_S
            told = super().run_due()
            if told:
                done.set()
            return told

    with Watched({"archive": target}, tmp_path / "maintenance.json", clock).at_work(to_the_end=False):
        assert done.wait(120)
    assert len(DeltaTable(target.path).file_uris()) == 1


def test_a_run_to_the_end_maintains_tables_after_it(target: Delta, tmp_path: Path) -> None:
    clock = Clock()
    caretaker = Caretaker({"archive": target}, tmp_path / "maintenance.json", clock)
    with caretaker.at_work(to_the_end=True):
        pass
    clock.now = DAY_S
    with caretaker.at_work(to_the_end=True):
        assert len(DeltaTable(target.path).file_uris()) == 3
    assert len(DeltaTable(target.path).file_uris()) == 1


def test_intervals_are_sparks() -> None:
    assert interval("7 days").total_seconds() == 7 * DAY_S
    assert interval("1 Hour").total_seconds() == 3600


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"every": "often"}, "'often' is not an interval"),
        ({"vacuum_after": "5 hours"}, "is too short: younger files may belong to a batch"),
        ({"keep_snapshots": 0}, "expected at least 1"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence):
        Maintenance(**settings)  # type: ignore[arg-type]
