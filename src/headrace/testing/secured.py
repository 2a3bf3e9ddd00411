"""The security of a test's brokers: what `headrace up --secure` has, in the directory of the test."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from headrace.broker.settings.config import BrokerConfig
from headrace.cli.machine.directory import DataDirectory
from headrace.cli.machine.gateway import GatewayOptions
from headrace.cli.machine.secure import ADMINISTRATOR, DECIDED, SecureCluster
from headrace.cli.machine.zookeeper_state import ensure_administrator
from headrace.client.admin.admin import Admin
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.security.acls import (
    CONSUMER_OPERATIONS,
    PRODUCER_OPERATIONS,
    WILDCARD,
    AclBinding,
    AclEntry,
    PermissionType,
    ResourcePattern,
)
from headrace.security.authorization import Operation, ResourceType
from headrace.security.private_files import generate_password
from headrace.security.sasl.exchange import SCRAM_SHA_256, SCRAM_SHA_512
from headrace.security.sasl.scram import MIN_ITERATIONS
from headrace.security.tls import TlsSettings
from headrace.testing.client_settings import ClientSettings, User

MECHANISMS: Final = (SCRAM_SHA_256, SCRAM_SHA_512)


class SecuredBrokers:
    """Certificates, users and ACLs of brokers in a directory."""

    def __init__(self, root: Path, brokers: int, host: str) -> None:
        """Make the certificates."""
        self._root, self._host = root, host
        self._cluster = SecureCluster(DataDirectory(root), brokers, host)
        self._cluster.prepare()

    def broker_settings(self, broker_id: int, port: int, given: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of a broker with a listener for clients, and one for other brokers.

        Raise ValueError for a given setting that follows from them.
        """
        for name in given:
            if name in DECIDED:
                raise ValueError(f"{name} is decided by secure=True: leave it out")
        return self._cluster.broker_settings(broker_id, self._host, port, given)

    async def create_administrator(self, zookeeper: str) -> None:
        """Store the administrator in ZooKeeper, before brokers start."""
        await ensure_administrator(BrokerConfig.of({"zookeeper.connect": zookeeper}), self._cluster)

    def administrator(self, bootstrap: str) -> ClientSettings:
        """Return how the administrator connects, who may do everything."""
        return self._client(bootstrap, ADMINISTRATOR, self._cluster.password)

    def add_user(
        self, bootstrap: str, name: str, password: str | None, allowed: Mapping[str, Iterable[str]]
    ) -> ClientSettings:
        """Create a user with ACLs, and return how the user connects."""
        made = self._client(bootstrap, name, password or generate_password())
        assert made.user is not None
        producer = {
            ResourceType.TOPIC: allowed["produces"],
            ResourceType.TRANSACTIONAL_ID: allowed["transactional_ids"],
        }
        consumer = {ResourceType.TOPIC: allowed["consumes"], ResourceType.GROUP: allowed["groups"]}
        acls = [
            *_allowed(f"User:{name}", PRODUCER_OPERATIONS, producer),
            *_allowed(f"User:{name}", CONSUMER_OPERATIONS, consumer),
        ]
        with Admin(self.administrator(bootstrap).connection) as admin:
            admin.create_user(name, made.user.password, mechanisms=MECHANISMS, iterations=MIN_ITERATIONS)
            if acls:
                admin.create_acls(acls)
        return made

    def gateway(self, connection: ConnectionSettings) -> dict[str, Any]:
        """Return the settings of a gateway that serves HTTPS to the cluster's users."""
        served = self._cluster.gateway(GatewayOptions({}, ""), {})
        return {
            "security": connection.security,
            "authentication": True,
            "tls": TlsSettings.of(dict(served.properties)),
        }

    def _client(self, bootstrap: str, name: str, password: str) -> ClientSettings:
        return ClientSettings(bootstrap, self._root, User(name, password, self._cluster.certificates.ca))


def _allowed(
    principal: str,
    operations: Mapping[ResourceType, Iterable[Operation]],
    resources: Mapping[ResourceType, Iterable[str]],
) -> Iterator[AclBinding]:
    """Yield the ACLs that allow the operations on each of the named resources."""
    for kind, names in resources.items():
        for name in names:
            for operation in operations[kind]:
                entry = AclEntry(principal, WILDCARD, operation, PermissionType.ALLOW)
                yield AclBinding(ResourcePattern(kind, name), entry)
