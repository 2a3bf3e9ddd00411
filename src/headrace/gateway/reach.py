"""The clients by which routes reach the cluster: made once for each user, shared by its requests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Annotated, Final

from fastapi import Depends, Request

from headrace.client.admin.acls import AclAdmin
from headrace.client.admin.admin import Admin
from headrace.client.admin.documented import DocumentedConfigs
from headrace.client.admin.quotas import QuotaAdmin
from headrace.client.admin.topics import TopicAdmin
from headrace.client.admin.users import UserAdmin
from headrace.client.cluster.cluster import Cluster
from headrace.client.groups.admin import GroupAdmin
from headrace.client.transactions.admin import TransactionAdmin
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.security import Security
from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.current import clients_of
from headrace.protocol.schema.metadata import MetadataResponse

SILENCE_S: Final = 3.0  # after which a broker counts as hung, and another is tried
CLIENT_ID: Final = "headrace-gateway"


class Reach:
    """The clients of one user, or of the gateway itself.

    They block, so they are for routes that are a plain `def`, in threads.
    """

    def __init__(self, settings: GatewaySettings, security: Security | None = None) -> None:
        """`security` has the credentials of a user; without it, connections have the gateway's own."""
        self.settings = settings
        self._security = settings.security if security is None else security
        made = ConnectionSettings(settings.bootstrap, self._security)
        self.brokers = Brokers(made, answer_s=SILENCE_S, client_id=CLIENT_ID)
        self.topics = TopicAdmin(self.brokers)
        self.documented = DocumentedConfigs(self.brokers)
        self.groups = GroupAdmin(self.brokers)
        self.transactions = TransactionAdmin(self.brokers)
        self.users = UserAdmin(self.brokers)
        self.acls = AclAdmin(self.brokers)
        self.quotas = QuotaAdmin(self.brokers)
        self._lock = Lock()
        self._admin: Admin | None = None
        self._at_close: list[Callable[[], None]] = []

    @property
    def bootstrap(self) -> str:
        """The configured brokers and those learned from metadata since: the configured ones may be gone."""
        known = map(str, self.brokers.addresses)
        return ",".join(dict.fromkeys([*self.settings.bootstrap.split(","), *known]))

    @property
    def connection(self) -> ConnectionSettings:
        return ConnectionSettings(self.bootstrap, self._security)

    def check(self) -> None:
        """Raise Unreachable if no broker answers; librdkafka would keep trying for half a minute."""
        self.brokers.any_metadata(within_s=SILENCE_S)

    def metadata(self) -> MetadataResponse:
        return self.brokers.metadata()

    @property
    def admin(self) -> Admin:
        self.check()
        with self._lock:
            if self._admin is None:
                self._admin = Admin(self.connection)
            return self._admin

    @contextmanager
    def cluster(self) -> Iterator[Cluster]:
        with Cluster(self.connection) as cluster:
            yield cluster

    def at_close(self, close: Callable[[], None]) -> None:
        """Call `close` when these clients are closed, in the reverse order of registration."""
        self._at_close.append(close)

    def close(self) -> None:
        for close in reversed(self._at_close):
            close()
        with self._lock:
            if self._admin is not None:
                self._admin.close()
        self.brokers.close()


def reach_of(request: Request) -> Reach:
    return clients_of(request).reach


ReachDep = Annotated[Reach, Depends(reach_of)]
"""The dependency of a route that needs the cluster: def topics(reach: ReachDep) -> …"""
