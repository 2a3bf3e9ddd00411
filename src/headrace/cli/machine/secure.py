"""The security of `headrace up --secure`: certificates, listeners, and the administrator.

DIR/certs/                        a development CA, and a certificate for each broker
DIR/client.properties             how the administrator connects, for Java's clients
DIR/client.librdkafka.properties  the same for librdkafka's
DIR/delegation-token.key          the key that makes delegation tokens, with which the gateway acts for the
                                  principals of certificates
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headrace.cli.machine.directory import DataDirectory
from headrace.cli.machine.gateway import GatewayOptions
from headrace.cli.support.process import CommandFailed
from headrace.client.properties import parse_properties, to_properties
from headrace.security.listeners import Endpoint
from headrace.security.principal_mapping import SETTING as MAPPING_RULES
from headrace.security.private_files import generate_password, write_private
from headrace.security.sasl.exchange import SCRAM_SHA_256, SCRAM_SHA_512
from headrace.security.sasl.jaas import jaas_options
from headrace.system.addresses import reachable

ADMINISTRATOR: Final = "admin"
CLIENT_LISTENER: Final = "SASL_SSL"
_BROKER_LISTENER: Final = "INTERNAL"
_LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_CERTIFICATES: Final = "certs"
_RENEWAL_S: Final = 12 * 3600.0
_TOKEN_KEY: Final = "delegation.token.secret.key"  # noqa: S105  the name of a setting
_TOKEN_KEY_FILE: Final = "delegation-token.key"  # noqa: S105  the name of a file
_AUTHORITY: Final = "Headrace development CA"

DECIDED: Final = {
    "listener.security.protocol.map": "--secure decides it",
    "inter.broker.listener.name": "--secure decides it",
    "security.inter.broker.protocol": "--secure decides it",
    "ssl.keystore.location": "the certificates are in DIR/certs",
    "ssl.keystore.type": "the certificates are in DIR/certs",
    "ssl.truststore.location": "the certificates are in DIR/certs",
    "ssl.truststore.type": "the certificates are in DIR/certs",
    "authorizer.class.name": "--secure has an authorizer",
}
"""Settings that follow from --secure."""

if TYPE_CHECKING:
    from headrace.security.certificate_directory import CertificateDirectory

logger = logging.getLogger("headrace")


def check_not_secured(directory: DataDirectory) -> None:
    """Raise CommandFailed if the cluster was secured before: without --secure it would be open."""
    if (directory.path / _CERTIFICATES / "ca.pem").exists():
        raise CommandFailed(
            f"{directory.path} is a secured cluster: start it with --secure. To open it to everybody, "
            f"delete {directory.path / _CERTIFICATES} first"
        )


def client_address(endpoints: Iterable[Endpoint]) -> str:
    """Return the address of the listener for clients."""
    return next(endpoint.address for endpoint in endpoints if endpoint.name == CLIENT_LISTENER)


@dataclass(slots=True)
class SecureCluster:
    """What makes the cluster in a directory secure; `prepare` comes first."""

    directory: DataDirectory
    brokers: int
    host: str
    password: str = field(default="", repr=False)  # the administrator's
    token_key: str = field(default="", repr=False)  # delegation.token.secret.key
    is_new_password: bool = False

    @property
    def certificates(self) -> "CertificateDirectory":
        from headrace.security.certificate_directory import CertificateDirectory  # noqa: PLC0415  takes 50 ms

        return CertificateDirectory(self.directory.path / _CERTIFICATES)

    @property
    def client_file(self) -> Path:
        return self.directory.path / "client.properties"

    @property
    def librdkafka_file(self) -> Path:
        return self.directory.path / "client.librdkafka.properties"

    def prepare(self) -> None:
        """Make what is missing: the CA, the certificates of brokers, the administrator's password, a key."""
        if not self.certificates.ca.exists():
            self.certificates.init(_AUTHORITY, datetime.now(UTC))
        self.renew_certificates()
        file, password = self.client_file, None
        if file.exists():
            settings = parse_properties(file.read_text("utf-8"), str(file))
            password = jaas_options(settings.get("sasl.jaas.config", "")).get("password")
        self.is_new_password = password is None
        self.password = password or generate_password()
        key_file = self.directory.path / _TOKEN_KEY_FILE
        if not key_file.exists():
            write_private(key_file, generate_password())
        self.token_key = key_file.read_text("utf-8").strip()

    def renew_certificates(self) -> None:
        """Renew the certificates of brokers that expire soon; running brokers load them by themselves."""
        for number in range(1, self.brokers + 1):
            name = _broker_name(number)
            if self.certificates.ensure_server(name, (reachable(self.host),), datetime.now(UTC)):
                logger.info("made the certificate %s", self.certificates.file(name))

    async def keep_renewing(self) -> None:
        """Renew certificates in time, for a cluster that runs for more than a year."""
        while True:
            await asyncio.sleep(_RENEWAL_S)
            self.renew_certificates()

    def broker_settings(
        self, broker_id: int, bound: str, port: int, given: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the settings of a broker's security; `given` are settings from the command line."""
        certificates = self.certificates
        principals = [ADMINISTRATOR, *(f"CN={_broker_name(each)}" for each in range(1, self.brokers + 1))]
        super_users = [*(f"User:{principal}" for principal in principals), given.get("super.users", "")]
        return {
            "sasl.enabled.mechanisms": f"{SCRAM_SHA_512},{SCRAM_SHA_256}",
            "allow.everyone.if.no.acl.found": "false",
            **({_TOKEN_KEY: self.token_key} if self.token_key else {}),
            **given,
            "listeners": f"{CLIENT_LISTENER}://{bound}:{port},{_BROKER_LISTENER}://127.0.0.1:0",
            "listener.security.protocol.map": f"{CLIENT_LISTENER}:SASL_SSL,{_BROKER_LISTENER}:SSL",
            "inter.broker.listener.name": _BROKER_LISTENER,
            f"listener.name.{_BROKER_LISTENER.lower()}.ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates.file(_broker_name(broker_id))),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.ca),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": ";".join(filter(None, super_users)),
        }

    def gateway(self, given: GatewayOptions, broker: Mapping[str, str]) -> GatewayOptions:
        """Return how the gateway serves HTTPS, with the first broker's certificate, and knows its users.

        Certificates of the CA authenticate clients, with the principals that the `broker` gives them. A
        keystore in `http.config` takes precedence, without any of this.
        """
        certificates = self.certificates
        tls = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates.file(_broker_name(1))),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.ca),
            "ssl.client.auth": "requested",
        }
        if MAPPING_RULES in broker:
            tls[MAPPING_RULES] = broker[MAPPING_RULES]
        properties = given.properties if given.uses_tls else {**tls, **given.properties}
        return GatewayOptions(properties, given.client_config or str(self.client_file))

    def write_client_files(self, bootstrap: str) -> None:
        """Write the administrator's files with mode 600; each start writes the current bootstrap servers."""
        ca = str(self.certificates.ca)
        common = {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": SCRAM_SHA_512,
        }
        credentials = f'username="{ADMINISTRATOR}" password="{self.password}"'
        java = {
            "sasl.jaas.config": f"{_LOGIN_MODULE} required {credentials};",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": ca,
        }
        librdkafka = {"sasl.username": ADMINISTRATOR, "sasl.password": self.password, "ssl.ca.location": ca}
        for path, settings in ((self.client_file, java), (self.librdkafka_file, librdkafka)):
            write_private(path, to_properties(common | settings))

    def instructions(self, addresses: Mapping[str, str]) -> Iterator[str]:
        """Yield lines for people: how each kind of client connects."""
        java, librdkafka, bootstrap = self.client_file, self.librdkafka_file, addresses["bootstrap"]
        yield f"secured by TLS, SCRAM users and ACLs. To connect as the administrator, user {ADMINISTRATOR}:"
        yield f"  headrace    headrace --command-config {java} topic list"
        yield f"  Java        kafka-topics.sh --bootstrap-server {bootstrap} --command-config {java} --list"
        yield f"  librdkafka  kcat -F {librdkafka} -L"
        yield f'  Python      headrace.Producer(headrace.ConnectionSettings.load("{java}"))'
        if "http" in addresses:
            ca = self.certificates.ca
            yield f"  console     {addresses['http']}  (its certificate is trusted with {ca})"
            yield f"  HTTP        curl --cacert {ca} --cert {ca.parent}/NAME.pem {addresses['http']}/topics"
            yield f"              after `headrace certs client --name NAME --dir {ca.parent}`"
        yield "Other users: `headrace user add NAME` adds one, `headrace acl allow NAME` says what it may do."


def _broker_name(broker_id: int) -> str:
    return f"broker-{broker_id}"
