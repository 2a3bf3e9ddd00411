"""Brokers of this and of the previous version in one cluster, under load: nothing acknowledged is lost."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.coordinators import Coordination
from upgrade import rolling
from upgrade.rolling import Story, on_embedded, on_zookeeper


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """The test's own ZooKeeper client complains when its server is restarted."""
    caplog.set_level(logging.ERROR, "kazoo.client")


def check(
    story: Story,
    previous: Path,
    root: Path,
    coordination: Callable[[Path, Path], Coordination] = on_embedded,
) -> None:
    outcome = rolling.play(story, previous, root, coordination)
    print(f"{story.__name__}: {outcome.records} records, {dict(outcome.figures)}")  # noqa: T201  for people
    assert outcome.problems == []


def test_brokers_are_upgraded_one_by_one_and_one_goes_back(previous: Path, tmp_path: Path) -> None:
    check(rolling.upgraded_and_one_goes_back, previous, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("story", [rolling.upgraded_and_downgraded, rolling.upgraded_and_downgraded_by_kills])
def test_brokers_are_upgraded_and_downgraded_with_the_coordinator(
    story: Story, previous: Path, tmp_path: Path
) -> None:
    check(story, previous, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("story", [rolling.upgraded_and_downgraded, rolling.upgraded_and_downgraded_by_kills])
def test_brokers_are_upgraded_and_downgraded_with_zookeeper(
    story: Story, previous: Path, tmp_path: Path
) -> None:
    check(story, previous, tmp_path, on_zookeeper)
