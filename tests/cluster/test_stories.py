"""A cluster of real processes under faults: nothing acknowledged is lost, and all go on by themselves.

The few stories that show the most; `make cluster-matrix` plays all of them.
"""

import logging
from pathlib import Path

import pytest

from cluster.catalogue import LONG, SHORT, Entry


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """The test's own ZooKeeper client complains of what the stories do to it."""
    caplog.set_level(logging.ERROR, "kazoo.client")


@pytest.mark.parametrize(
    ("entry", "coordination"),
    [
        pytest.param(
            entry,
            coordination,
            id=f"{entry.name}-{coordination}",
            marks=pytest.mark.long if entry.story in LONG else [],
        )
        for entry, coordination in SHORT
    ],
)
def test_nothing_is_lost_when(entry: Entry, coordination: str, tmp_path: Path) -> None:
    reason = entry.why_not()
    if reason is not None:
        pytest.skip(reason)
    outcome = entry.play(coordination, tmp_path)
    print(f"{entry.name}: {outcome.records} records, {dict(outcome.figures)}")  # noqa: T201  for people
    assert outcome.problems == []
