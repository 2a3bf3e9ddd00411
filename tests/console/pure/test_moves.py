"""Moves of partitions: what one waits for."""

from headrace.client.cluster.moves import Reassignment
from headrace.gateway.console.views.cluster import missing_brokers


def test_a_move_waits_for_brokers_that_are_not_registered() -> None:
    move = Reassignment(topic="orders", partition=0, replicas=(3, 2, 1), adding=(3,), removing=(1,))
    assert missing_brokers(move, {1, 2, 3}) == ""
    assert missing_brokers(move, {1, 2}) == "broker 3"
    assert missing_brokers(move, {2, 3}) == "", "broker 2 has the records, and broker 1 is to be removed"
    assert missing_brokers(move, {3}) == "brokers 2, 1"
