"""Where the schema registry of a cluster is, and how to connect to it.

A client's settings name it as those of Confluent's clients do:

    schema.registry.url=https://one:8081
    basic.auth.user.info=alice:wonderland              or basic.auth.credentials.source=SASL_INHERIT
    schema.registry.ssl.truststore.location=ca.pem     and the other ssl settings with this prefix

Without schema.registry.url, brokers of Headrace are asked for the address of their gateway: their setting
http.advertised.url.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from headrace.client.errors import ClientError, WrongSetting
from headrace.client.schemas.registry import Registry
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.config_providers import resolve
from headrace.client.wire.connection_settings import ConnectionSettings, registry_settings
from headrace.client.wire.requests import BROKER, describe_configs_request, nodes_of
from headrace.client.wire.tls import Tls
from headrace.protocol.errors import ErrorCode
from headrace.system.addresses import is_loopback

URL: Final = "schema.registry.url"
ADVERTISED: Final = "http.advertised.url"
USUAL: Final = "http://127.0.0.1:8080"  # of `headrace up`
USUAL_BOOTSTRAP: Final = "127.0.0.1:9092"
TOPIC: Final = "_schemas"  # in which the gateway of a cluster keeps its schemas
WITHIN_S: Final = 2.0  # for each of the two requests to brokers
_PREFIX: Final = "schema.registry."
_USER_INFO: Final = "basic.auth.user.info"
_SOURCE: Final = "basic.auth.credentials.source"
_SOURCES: Final = ("URL", "USER_INFO", "SASL_INHERIT")
_MAY_EXIST: Final = {ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED}


class UnknownRegistry(ClientError):
    """Neither the user nor the brokers name a schema registry."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(
            f"the cluster at {bootstrap} names no schema registry: give its address with --registry, "
            f"HEADRACE_REGISTRY, or {URL} of the profile"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryLocation:
    """The address of a registry; `user_info` is NAME:PASSWORD, or empty."""

    url: str
    user_info: str = field(default="", repr=False)
    tls: Tls | None = None  # None: the system's certificates

    def context(self) -> ssl.SSLContext | None:
        """Return how HTTPS is verified; ClientError if a file is unusable."""
        return None if self.tls is None else self.tls.context()


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertised:
    """What the brokers of a cluster say about their registry."""

    cluster_id: str
    url: str  # empty: they know none
    has_schemas: bool  # False: nothing was ever registered in the gateway of this cluster


def located(
    settings: Mapping[str, str], connection: ConnectionSettings, url: str | None = None
) -> RegistryLocation | None:
    """Return the registry that a client's settings name; `url` takes precedence over theirs.

    None if there is no URL. References are resolved; WrongSetting names a setting that is wrong.
    """
    resolved = resolve(dict(registry_settings(settings)))
    address = url or resolved.get(URL, "").split(",")[0].strip()
    if not address:
        return None
    return RegistryLocation(
        url=address, user_info=_user_info(resolved, connection), tls=_tls(resolved) or connection.security.tls
    )


def at_gateway(url: str, connection: ConnectionSettings) -> RegistryLocation:
    """Return the registry in a gateway of the cluster, which knows the users of the cluster.

    The user's password is sent only where that reveals no more than the connection to the brokers does.
    """
    location = RegistryLocation(url=url, tls=connection.security.tls)
    sasl = connection.security.sasl
    if sasl is None or sasl.tokens is not None or sasl.is_token or not _may_have_password(url, connection):
        return location
    return replace(location, user_info=f"{sasl.username}:{sasl.password}")


def _may_have_password(url: str, connection: ConnectionSettings) -> bool:
    """Return whether a gateway at the URL, which brokers advertise, may get the password of the user.

    Without TLS it is not certain that the URL comes from a broker, and only PLAIN sends the password anyway.
    """
    parts, security = urlsplit(url), connection.security
    if is_loopback(parts.hostname or ""):
        return True
    if security.tls is not None:
        return parts.scheme == "https"
    return security.sasl is not None and security.sasl.mechanism == "PLAIN"


def advertised(connection: ConnectionSettings) -> Advertised:
    """Ask a broker; ClientError if none answers within a few seconds."""
    with Brokers(connection, answer_s=WITHIN_S) as brokers:
        found = brokers.any_metadata([TOPIC], WITHIN_S)
        has_schemas = any(topic.error_code in _MAY_EXIST for topic in found.topics)
        node = nodes_of(found)[0]
        request = describe_configs_request(BROKER, [str(node.id)], [ADVERTISED])
        (answer,) = brokers.at(node.address, request).results
        values = [each.value for each in answer.configs if each.name == ADVERTISED and each.value]
        return Advertised(
            cluster_id=found.cluster_id or "", url=values[0] if values else "", has_schemas=has_schemas
        )


def discovered(connection: ConnectionSettings) -> RegistryLocation:
    """Return the registry that the settings of the connection name, or else the one that brokers advertise.

    If they know none, it is the registry at the usual address on this machine. UnknownRegistry is raised if
    that is of another cluster, so that its schemas are not changed by mistake; or if it does not say, and a
    password would be sent to it. ClientError if no broker answers.
    """
    if named := located(dict(connection.registry), connection):
        return named
    usual = at_gateway(USUAL, connection)
    try:
        found = advertised(connection)
    except ClientError:
        if connection.bootstrap == USUAL_BOOTSTRAP:
            return usual  # nobody has named a cluster
        raise
    if found.url:
        return at_gateway(found.url, connection)
    if not is_on_this_machine(connection) or not _may_serve(usual, found.cluster_id):
        raise UnknownRegistry(connection.bootstrap)
    return usual


def is_on_this_machine(connection: ConnectionSettings) -> bool:
    """Return whether all bootstrap servers have addresses of this machine only."""
    hosts = (each.strip().rpartition(":")[0].strip("[]") for each in connection.bootstrap.split(","))
    return all(map(is_loopback, hosts))


def serves(location: RegistryLocation, cluster_id: str, timeout_s: float = WITHIN_S) -> bool:
    """Return whether a gateway says that it serves the cluster; it is asked without the password."""
    return Registry(location.url, timeout_s=timeout_s, context=location.context()).serves(cluster_id)


def _may_serve(location: RegistryLocation, cluster_id: str) -> bool:
    """Return the same; a gateway that does not say may serve the cluster if it would get no password."""
    try:
        return serves(location, cluster_id)
    except ClientError:
        return not location.user_info  # whoever asks it for a schema will report what is wrong


def _user_info(settings: Mapping[str, str], connection: ConnectionSettings) -> str:
    given = settings.get(_PREFIX + _USER_INFO) or settings.get(_USER_INFO) or ""
    source = (settings.get(_PREFIX + _SOURCE) or settings.get(_SOURCE) or "").strip().upper()
    if source and source not in _SOURCES:
        raise WrongSetting(_SOURCE, f"is {source}: choose one of {', '.join(_SOURCES)}")
    if source == "SASL_INHERIT":
        sasl = connection.security.sasl
        if sasl is None or not sasl.username:
            raise WrongSetting(_SOURCE, "is SASL_INHERIT, and there are no sasl.username and sasl.password")
        return f"{sasl.username}:{sasl.password}"
    if given and ":" not in given:
        raise WrongSetting(_USER_INFO, "has no password: expected NAME:PASSWORD")
    return "" if source == "URL" else given


def _tls(settings: Mapping[str, str]) -> Tls | None:
    own = {
        name.removeprefix(_PREFIX): value
        for name, value in settings.items()
        if name.startswith(f"{_PREFIX}ssl.")
    }
    if not own:
        return None
    try:
        return Tls.of(own)
    except WrongSetting as error:
        raise WrongSetting(f"{_PREFIX}{error.setting}", error.why) from error
