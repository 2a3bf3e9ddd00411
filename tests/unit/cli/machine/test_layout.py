"""The settings that `headrace up` gives its brokers."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.broker.settings.config import BrokerConfig
from headrace.cli.machine.directory import DataDirectory
from headrace.cli.machine.layout import EMBEDDED, Layout


@pytest.mark.parametrize(("brokers", "replicas"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_a_topic_has_as_many_replicas_as_there_are_brokers_up_to_three(brokers: int, replicas: int) -> None:
    assert _config(brokers, {}).integer("default.replication.factor") == replicas


def test_who_says_how_many_replicas_gets_so_many() -> None:
    assert _config(3, {"default.replication.factor": "2"}).integer("default.replication.factor") == 2


def test_how_many_have_to_be_in_sync_is_as_kafka_has_it() -> None:
    assert _config(3, {}).integer("min.insync.replicas") == 1


def _config(brokers: int, given: Mapping[str, str]) -> BrokerConfig:
    layout = Layout(
        directory=DataDirectory(Path("data")),
        brokers=brokers,
        host="127.0.0.1",
        port=9092,
        http=False,
        http_port=None,
        zookeeper=EMBEDDED,
        racks=[],
        given=given,
    )
    return BrokerConfig.of(layout.broker(1, 9092, "127.0.0.1:2181"))
