"""Everything that acts for one user: clients of the cluster, and what requests of this user share.

Without authentication there is one such object, which has the gateway's own connection.
"""

from headrace.client.wire.security import Security
from headrace.gateway.admin.tail import ClusterCheck
from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.console.state import Console
from headrace.gateway.metrics.counters import Counters
from headrace.gateway.pipelines import Pipelines
from headrace.gateway.reach import Reach
from headrace.gateway.registry.registry import SchemaRegistry
from headrace.gateway.registry.rights import SubjectRights
from headrace.gateway.rest.hub import Hub, SharedLimits


class Clients:
    """The clients of one user. None of them connects to a broker before it is used."""

    def __init__(
        self, reach: Reach, registry: SchemaRegistry, limits: SharedLimits, rights: SubjectRights
    ) -> None:
        self.reach = reach
        self.registry = registry
        self.rights = rights
        self.hub = Hub(reach, registry, limits, rights)
        self.cluster_check = ClusterCheck(reach)
        self.console = Console()
        self.pipelines = Pipelines(reach.connection)
        self.counters = Counters(reach, self.pipelines)
        reach.at_close(self.counters.close)

    def end_streams(self) -> None:
        self.hub.end_streams()

    def close(self) -> None:
        """Close all connections; it waits for consumers to leave their groups, so it is for a thread."""
        self.reach.close()


class ClientsFactory:
    """Makes the clients of users, or of everyone; they share one registry and one set of limits."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._limits = SharedLimits()
        self.own = Reach(settings)
        self.registry = SchemaRegistry(self.own)

    def for_everyone(self) -> Clients:
        """Return clients with the gateway's own connection, for a gateway without authentication."""
        return Clients(self.own, self.registry, self._limits, SubjectRights(self.registry))

    def for_user(self, security: Security) -> Clients:
        reach = Reach(self._settings, security)
        return Clients(reach, self.registry, self._limits, SubjectRights(self.registry, reach.brokers))

    def close(self) -> None:
        self.own.close()
        self._limits.close()
