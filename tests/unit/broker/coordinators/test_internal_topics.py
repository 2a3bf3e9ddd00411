"""Internal topics: created when they are first needed, with up to three replicas on as many nodes."""

import asyncio
import logging
from collections.abc import Mapping

import pytest

from headrace.broker.coordinators.groups import Groups
from headrace.broker.coordinators.runtime import CoordinatorHost, InternalTopic
from headrace.broker.coordinators.transactions import Transactions
from headrace.broker.image import ClusterImage
from headrace.broker.peers.peer import PeerPool
from headrace.broker.settings.config import BrokerConfig
from headrace.coordination.znodes import BrokerRegistration
from headrace.storage.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC


async def _no_producer_id() -> int:
    raise AssertionError("topics need no producer id")


def _no_peers() -> PeerPool:
    raise AssertionError("topics need no other brokers")


class Cluster:
    """The internal topics of a broker, and what it has created."""

    def __init__(self, brokers: int, **given: str) -> None:
        self.created: dict[str, int] = {}
        config = BrokerConfig.load(file=None, sets=given)
        registrations = {
            each: BrokerRegistration(broker_id=each, endpoints=[], timestamp_ms=0) for each in range(brokers)
        }
        host = CoordinatorHost(
            0,
            ClusterImage("id", registrations),
            partitions={},
            ensure_lease=lambda _partition: None,
            loop=asyncio.get_running_loop,
            config=lambda: config,
            create_topic=self._create,
            new_producer_id=_no_producer_id,
            new_peer_pool=_no_peers,
            warned_of=set(),
        )
        self.topics = [
            InternalTopic(settings, host) for settings in (Groups.topic_settings, Transactions.topic_settings)
        ]

    async def _create(self, name: str, *, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
        assert partitions == 50
        assert configs["cleanup.policy"] == "compact"
        self.created[name] = replicas

    async def use(self) -> None:
        """Need every topic, as two requests at a time would."""
        await asyncio.gather(*(topic.ensure() for topic in self.topics for _ in range(2)))


def test_one_warning_says_that_there_are_too_few_nodes(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(1)
    with caplog.at_level(logging.WARNING):
        asyncio.run(cluster.use())

    assert cluster.created == {OFFSETS_TOPIC: 1, TRANSACTIONS_TOPIC: 1}
    (said,) = caplog.messages
    assert said.startswith(
        "internal topics (__consumer_offsets, __transaction_state) are created with 1 of 3 "
    )


@pytest.mark.parametrize(
    ("brokers", "given", "replicas"),
    [
        (3, {}, 3),
        (5, {}, 3),
        (
            1,
            {
                "offsets.topic.replication.factor": "1",
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
            },
            1,
        ),
    ],
)
def test_enough_nodes_and_explicit_settings_get_no_warning(
    caplog: pytest.LogCaptureFixture, brokers: int, given: dict[str, str], replicas: int
) -> None:
    cluster = Cluster(brokers, **given)
    with caplog.at_level(logging.WARNING):
        asyncio.run(cluster.use())

    assert set(cluster.created.values()) == {replicas}
    assert caplog.messages == []
