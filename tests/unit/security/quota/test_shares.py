"""Which brokers share a quota."""

from headrace.protocol.locations import Location
from headrace.security.quota.table import live_brokers_of_node


def test_the_live_brokers_of_the_node_share() -> None:
    live = {1: Location(node="m1"), 2: Location(node="m1"), 3: Location(node="m2"), 4: Location()}

    assert [live_brokers_of_node(each, live) for each in (1, 2, 3, 4)] == [2, 2, 1, 1]


def test_a_broker_counts_itself_before_it_is_registered() -> None:
    assert live_brokers_of_node(1, {}) == 1
