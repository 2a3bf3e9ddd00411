"""How the brokers of a node share a quota. Pure.

A quota of Kafka applies to each broker, and a node with several brokers counts as one: each of its live
brokers enforces an equal share. A client that uses only some of them gets only their shares.
"""

from headrace.protocol.locations import Locations, node_of
from headrace.security.quota.entities import QuotaKey

SHARED = frozenset(QuotaKey) - {QuotaKey.CONTROLLER_MUTATION_RATE}
"""The quotas that each broker enforces; the mutation rate is enforced by the controller alone."""


def live_brokers_of_node(broker_id: int, live: Locations) -> int:
    """Return the number of live brokers on the node of a broker, which counts itself."""
    node = node_of(broker_id, live)
    return 1 + sum(each != broker_id and node_of(each, live) == node for each in live)
