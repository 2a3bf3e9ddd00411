"""The table of coordinators: what the broker knows about any of them."""

from headrace.broker.metrics import families
from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.storage.topics import INTERNAL_TOPICS


def test_every_internal_topic_has_one_coordinator() -> None:
    coordinators = Broker(BrokerConfig.of({"broker.id": "1"})).coordinators

    assert set(coordinators.by_topic) == INTERNAL_TOPICS
    assert [topic for topic, each in coordinators.by_topic.items() if each.topic.name != topic] == []
    assert len({coordinator.key_type for coordinator in coordinators}) == len(INTERNAL_TOPICS)


def test_the_metrics_of_all_coordinators_are_those_of_the_broker() -> None:
    broker = Broker(BrokerConfig.of({"broker.id": "1"}))

    names = {family.name for family in families(broker, ["headrace_transaction"])}

    assert names == {family.name for coordinator in broker.coordinators for family in coordinator.metrics()}
    assert names
