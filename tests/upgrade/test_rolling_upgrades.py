"""Brokers of this and of the previous version in one cluster, under load: nothing acknowledged is lost."""

import logging
from pathlib import Path

import pytest

from cluster.stage import Outcome
from upgrade import rolling
from upgrade.rolling import Story, on_zookeeper, play


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """The test's own ZooKeeper client complains when its server is restarted."""
    caplog.set_level(logging.ERROR, "kazoo.client")


def check(outcome: Outcome) -> None:
    print(f"{outcome.records} records, {dict(outcome.figures)}")  # noqa: T201  for people
    assert outcome.problems == []


def test_brokers_are_upgraded_one_by_one_and_one_goes_back(previous: Path, tmp_path: Path) -> None:
    check(play(rolling.upgraded_and_one_goes_back, previous, tmp_path))


THERE_AND_BACK = pytest.mark.parametrize(
    "story", [rolling.upgraded_and_downgraded, rolling.upgraded_and_downgraded_by_kills]
)


@pytest.mark.long
@THERE_AND_BACK
def test_brokers_are_upgraded_and_downgraded_with_the_coordinator(
    story: Story, previous: Path, tmp_path: Path
) -> None:
    check(play(story, previous, tmp_path))


@pytest.mark.long
@THERE_AND_BACK
def test_brokers_are_upgraded_and_downgraded_with_zookeeper(
    story: Story, previous: Path, tmp_path: Path
) -> None:
    check(play(story, previous, tmp_path, on_zookeeper))


@pytest.mark.long
def test_brokers_that_authenticate_to_one_another_are_upgraded_and_downgraded(
    previous: Path, tmp_path: Path
) -> None:
    check(play(rolling.upgraded_and_downgraded, previous, tmp_path, secured=True))
