"""All quotas of a cluster, and which of them applies to a client.

A quota of Kafka applies to each broker, and a node with several brokers counts as one: each of its live
brokers enforces an equal share. A client that uses only some of them gets only their shares.
"""

from collections.abc import Mapping
from typing import NamedTuple

from headrace.protocol.locations import Locations, node_of
from headrace.security.quota.entities import DEFAULT, QuotaEntity, QuotaKey, normalized_ip

SHARED = frozenset(QuotaKey) - {QuotaKey.CONTROLLER_MUTATION_RATE}
"""The quotas that each broker enforces; the mutation rate is enforced by the controller alone."""


class Applied(NamedTuple):
    """The quota of a client. Clients for which `user` and `client_id` are equal share it."""

    limit: float
    user: str | None
    client_id: str | None


class QuotaTable:
    """The quotas of every entity that has some, and the limits with which this broker enforces them.

    A limit is the quota divided by `brokers`, the number of live brokers of this broker's node.
    """

    def __init__(self) -> None:
        self.brokers = 1
        self.entities: dict[QuotaEntity, Mapping[QuotaKey, float]] = {}
        self._limits: dict[QuotaKey, dict[QuotaEntity, float]] = {key: {} for key in QuotaKey}

    def put(self, entity: QuotaEntity, quotas: Mapping[QuotaKey, float]) -> None:
        """Replace the quotas of an entity, which has none if `quotas` is empty."""
        if quotas:
            self.entities[entity] = dict(quotas)
        else:
            self.entities.pop(entity, None)
        if entity.ip is not None:
            entity = QuotaEntity(ip=normalized_ip(entity.ip) or entity.ip)
        for key, limits in self._limits.items():
            if key in quotas:
                limits[entity] = quotas[key]
            else:
                limits.pop(entity, None)

    def has(self, key: QuotaKey) -> bool:
        return bool(self._limits[key])

    def applied(self, key: QuotaKey, user: str, client_id: str) -> Applied | None:
        """Return the quota that applies to a client, by Kafka's order of precedence.

        Each client id shares nothing with others, unless the quota is the user's.
        """
        limits = self._limits[key]
        if not limits:
            return None
        for of_user, of_client in (
            (user, client_id),
            (user, DEFAULT),
            (user, None),
            (DEFAULT, client_id),
            (DEFAULT, DEFAULT),
            (DEFAULT, None),
            (None, client_id),
            (None, DEFAULT),
        ):
            limit = limits.get(QuotaEntity(of_user, of_client))
            if limit is not None:
                return Applied(
                    limit / self.brokers if key in SHARED else limit,
                    None if of_user is None else user,
                    None if of_client is None else client_id,
                )
        return None

    def connection_rate(self, address: str) -> float | None:
        """Return the connection_creation_rate of an IP address; None if it has none."""
        limits = self._limits[QuotaKey.CONNECTION_CREATION_RATE]
        limit = limits.get(QuotaEntity(ip=address))
        if limit is None:
            limit = limits.get(QuotaEntity(ip=DEFAULT))
        return None if limit is None else limit / self.brokers


def live_brokers_of_node(broker_id: int, live: Locations) -> int:
    """Return the number of live brokers on the node of a broker, which counts itself."""
    node = node_of(broker_id, live)
    return 1 + sum(each != broker_id and node_of(each, live) == node for each in live)
