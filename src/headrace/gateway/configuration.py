"""The settings of a gateway, and their names in a properties file.

ssl.keystore.location=/etc/headrace/gateway.pem
ssl.keystore.type=PEM
http.hosts=kafka.example
http.session.idle.ms=900000
"""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headrace.client.errors import BadSetting, WrongSetting
from headrace.client.properties import InvalidProperties, parse_properties
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.security import PLAINTEXT, Security
from headrace.gateway import listening
from headrace.gateway.users.credentials import PASSWORD_MECHANISMS
from headrace.security.pem import InvalidTlsSetting
from headrace.security.principal_mapping import SETTING as MAPPING_RULES
from headrace.security.principal_mapping import PrincipalMapper
from headrace.security.tls import TlsSettings

HOSTS: Final = "http.hosts"
TRUSTED_PROXIES: Final = "http.trusted.proxies"
MECHANISM: Final = "http.sasl.mechanism"
SESSION_IDLE: Final = "http.session.idle.ms"
SESSION_MAX: Final = "http.session.max.ms"
_TLS: Final = frozenset(
    {
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
SETTINGS: Final = _TLS | {
    HOSTS,
    TRUSTED_PROXIES,
    MECHANISM,
    SESSION_IDLE,
    SESSION_MAX,
    listening.ALLOW_UNAUTHENTICATED,
    listening.ALLOW_PLAINTEXT,
    MAPPING_RULES,
}
_BOOLEANS: Final = {"true": True, "false": False}
_SHORTEST_MS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The cluster that a gateway serves, how its users authenticate, and its limits."""

    bootstrap: str
    security: Security = PLAINTEXT
    """The security of the gateway's own connections to brokers."""
    authentication: bool = False
    """Whether every request needs credentials, which the gateway passes on to the brokers."""
    password_mechanism: str | None = None
    """The SASL mechanism for users with a password; None: the strongest that the brokers offer."""
    tls: TlsSettings | None = None
    """HTTPS: certificate, key, and which clients' certificates are trusted. None: plain HTTP."""
    principal_mapping_rules: str = "DEFAULT"
    session_idle_s: float = 30 * 60.0
    session_absolute_s: float = 12 * 3600.0
    schemas_topic: str = "_schemas"
    hosts: Sequence[str] = ()
    """Host names that are accepted besides addresses, localhost and the machine's name."""
    trusted_proxies: Sequence[str] = ()
    """Addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto headers are believed."""
    max_request_bytes: int = 64 * 1024 * 1024
    max_bodies_bytes: int = 128 * 1024 * 1024
    """The most bytes that the bodies of all requests may hold at a time; beyond that a request gets 503."""
    max_connections: int = 1000
    """Fewer if the limit of open files is low."""
    read_timeout_s: float = 30.0
    """The time for the whole head of a request, and for each pause in its body."""

    @property
    def connection(self) -> ConnectionSettings:
        return ConnectionSettings(self.bootstrap, self.security)


def load(path: Path) -> dict[str, str]:
    """Return the settings in a file; BadSetting names the file and what is wrong with it."""
    try:
        return parse_properties(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError, InvalidProperties) as error:
        raise BadSetting(f"{path} cannot be read: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    given: Mapping[str, str]

    def __post_init__(self) -> None:
        unknown = sorted(set(self.given) - SETTINGS)
        if unknown:
            raise BadSetting(
                f"a gateway has no setting {unknown[0]}: it has {', '.join(sorted(SETTINGS - _TLS))}, and "
                "Kafka's ssl.* of a listener; how it connects to brokers is in --command-config"
            )

    def settings(self, connection: ConnectionSettings, host: str) -> GatewaySettings:
        """Return all settings of a gateway that listens on `host`; BadSetting if it must not start."""
        allow = self._flag(listening.ALLOW_UNAUTHENTICATED)
        rules = self.given.get(MAPPING_RULES, "DEFAULT")
        try:
            # Files that cannot be used, and rules that cannot be parsed, are an error now.
            PrincipalMapper(rules)
            given_tls = {name: self.given[name] for name in _TLS if self.given.get(name)}
            tls = TlsSettings.of(given_tls) if given_tls else None
            if tls is not None:
                tls.server_context()
        except InvalidTlsSetting as error:
            raise WrongSetting(error.setting, error.why) from error
        mechanism = self.given.get(MECHANISM, "").strip().upper() or None
        if mechanism and mechanism not in PASSWORD_MECHANISMS:
            raise WrongSetting(MECHANISM, f"is {mechanism}: choose one of {', '.join(PASSWORD_MECHANISMS)}")
        protocol = connection.security.protocol
        try:
            listening.check_exposure(
                host,
                protocol,
                tls=tls is not None,
                allow_unauthenticated=allow,
                allow_plaintext=self._flag(listening.ALLOW_PLAINTEXT),
            )
        except listening.Exposed as error:
            raise BadSetting(str(error)) from error
        return GatewaySettings(
            bootstrap=connection.bootstrap,
            security=connection.security,
            authentication=listening.authenticates(protocol, allow_unauthenticated=allow),
            password_mechanism=mechanism,
            tls=tls,
            principal_mapping_rules=rules,
            session_idle_s=self._milliseconds(SESSION_IDLE, 30 * 60_000) / 1000,
            session_absolute_s=self._milliseconds(SESSION_MAX, 12 * 3_600_000) / 1000,
            hosts=self._list(HOSTS),
            trusted_proxies=self._proxies(),
        )

    def _list(self, name: str) -> tuple[str, ...]:
        return tuple(each.strip() for each in self.given.get(name, "").split(",") if each.strip())

    def _proxies(self) -> tuple[str, ...]:
        try:
            networks = [ipaddress.ip_network(each) for each in self._list(TRUSTED_PROXIES)]
        except ValueError as error:
            raise WrongSetting(
                TRUSTED_PROXIES, f"has an entry that is no address and no network: {error}"
            ) from error
        return tuple(
            str(network.network_address) if network.num_addresses == 1 else str(network)
            for network in networks
        )

    def _flag(self, name: str) -> bool:
        value = self.given.get(name, "false").strip().lower()
        if value not in _BOOLEANS:
            raise WrongSetting(name, f"is {value!r}: choose true or false")
        return _BOOLEANS[value]

    def _milliseconds(self, name: str, default: int) -> int:
        value = self.given.get(name, str(default)).strip()
        if not value.isdigit() or int(value) < _SHORTEST_MS:
            raise WrongSetting(name, f"is {value!r}: expected at least {_SHORTEST_MS} ms")
        return int(value)
