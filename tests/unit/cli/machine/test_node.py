"""What a node finds in its log directories before it starts."""

import logging
from pathlib import Path

import pytest

from headrace.broker.settings.config import BrokerConfig
from headrace.cli.machine.node import check_directories
from headrace.cli.machine.node_settings import node_configs
from headrace.cli.support.process import CommandFailed
from headrace.storage.identity import Identity, claim


def brokers(count: int, *log_dirs: Path) -> list[BrokerConfig]:
    """The brokers 1, 2, … of a node."""
    directories = ",".join(map(str, log_dirs))
    config = BrokerConfig.of({"broker.id": "1", "headrace.brokers": str(count), "log.dirs": directories})
    return node_configs(config, count)


def start_once(configs: list[BrokerConfig]) -> None:
    for each in configs:
        each.log_dir.mkdir(parents=True)
        claim(each.log_dir, Identity(each.broker_id, "cluster"))


def check(configs: list[BrokerConfig], *log_dirs: Path) -> None:
    check_directories(map(str, log_dirs), configs)


def test_new_directories_and_those_of_the_last_start_are_fine(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    check(brokers(4, a, b), a, b)
    start_once(brokers(4, a, b))
    check(brokers(4, a, b), a, b)
    check(brokers(6, a, b), a, b)


def test_a_directory_that_changes_the_turns_is_refused(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    start_once(brokers(2, a))
    with pytest.raises(
        CommandFailed, match=r"broker 2 has its logs in .*/a/brokers/2, .* it would use .*/b: move them there"
    ):
        check(brokers(2, a, b), a, b)


def test_a_broker_that_is_left_out_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    a = tmp_path / "a"
    start_once(brokers(3, a))
    with caplog.at_level(logging.WARNING, "headrace"):
        check(brokers(2, a), a)
    assert "a/brokers/3 has the logs of broker 3, which this node does not run" in caplog.text


def test_a_disk_that_cannot_be_read_is_left_to_its_brokers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a = tmp_path / "a"
    a.write_text("no directory")
    with caplog.at_level(logging.WARNING, "headrace"):
        check(brokers(2, a), a)
    assert "a cannot be read" in caplog.text
