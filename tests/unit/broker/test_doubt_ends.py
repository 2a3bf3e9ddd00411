"""When a broker that may have lost records is past doubt: once the controller knows, before it is in sync."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.between_brokers.update_metadata import FULL, UpdateMetadataRequest
from headrace.protocol.errors import ErrorCode
from headrace.storage.checks.losses import BOOT
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity

THIS_LIFE, EARLIER_LIFE = 7, 5  # as the controller knows them


def opened(path: Path) -> LogDirectory:
    identity = Identity(1, "our-cluster")
    return LogDirectory.open(path, identity, config_of=lambda _topic: LogConfig(), now_ms=lambda: 0)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """One that is registered, and has not been told anything yet."""
    broker = Broker(BrokerConfig.of({"broker.id": "1"}))
    broker.logs = opened(tmp_path)
    broker.lease.broker_epoch = THIS_LIFE
    yield broker
    broker.logs.release()


def told(broker: Broker, broker_epoch: int) -> ErrorCode:
    update = UpdateMetadataRequest(
        controller_id=2,
        type=FULL,
        controller_epoch=1,
        broker_epoch=broker_epoch,
        topic_states=[],
        live_brokers=[],
    )
    return asyncio.run(broker.replicas.take(update))


def is_in_doubt_after_a_kill(broker: Broker) -> bool:
    broker.logs.release()
    broker.logs = opened(broker.logs.path)
    return broker.logs.losses.everywhere


def test_a_broker_that_the_controller_has_told_is_past_doubt_although_it_has_not_started_yet(
    broker: Broker,
) -> None:
    assert broker.logs.losses.everywhere

    assert told(broker, THIS_LIFE) == ErrorCode.NONE

    assert not is_in_doubt_after_a_kill(broker)


def test_a_word_to_an_earlier_life_ends_no_doubt(broker: Broker) -> None:
    assert told(broker, EARLIER_LIFE) == ErrorCode.STALE_BROKER_EPOCH

    assert is_in_doubt_after_a_kill(broker)


def test_a_broker_that_cannot_note_that_it_is_past_doubt_takes_on_nothing(broker: Broker) -> None:
    (broker.logs.path / BOOT).unlink()
    (broker.logs.path / BOOT).mkdir()  # no file can take its place

    assert told(broker, THIS_LIFE) == ErrorCode.KAFKA_STORAGE_ERROR

    assert not broker.ready.is_set()
