"""The table of coordinators: what the broker knows about any of them."""

from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.between_brokers.broker_metrics import Family
from headrace.storage.topics import INTERNAL_TOPICS


def test_every_internal_topic_has_one_coordinator() -> None:
    coordinators = Broker(BrokerConfig.of({"broker.id": "1"})).coordinators

    assert set(coordinators.by_topic) == INTERNAL_TOPICS
    assert [topic for topic, each in coordinators.by_topic.items() if each.topic.name != topic] == []
    assert len({coordinator.key_type for coordinator in coordinators}) == len(INTERNAL_TOPICS)


def test_the_metrics_of_coordinators_have_the_prefix_by_which_they_are_selected() -> None:
    coordinators = Broker(BrokerConfig.of({"broker.id": "1"})).coordinators
    families: list[Family] = [family for coordinator in coordinators for family in coordinator.metrics()]

    assert families
    assert [family.name for family in families if not family.name.startswith("headrace_")] == []
