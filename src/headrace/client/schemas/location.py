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
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.config_providers import resolve
from headrace.client.wire.connection_settings import ConnectionSettings, registry_settings
from headrace.client.wire.requests import BROKER, describe_configs_request, nodes_of
from headrace.client.wire.tls import Tls
from headrace.protocol.errors import ErrorCode
from headrace.system.addresses import is_loopback

URL: Final = "schema.registry.url"
ADVERTISED: Final = "http.advertised.url"
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
    parts, security = urlsplit(url), connection.security
    location, sasl = RegistryLocation(url=url, tls=security.tls), security.sasl
    if sasl is None or sasl.tokens is not None or sasl.is_token:
        return location
    # Without TLS it is not certain that a broker advertises the URL; only PLAIN sends the password anyway.
    reveals_nothing = parts.scheme == "https" if security.tls is not None else sasl.mechanism == "PLAIN"
    if not reveals_nothing and not is_loopback(parts.hostname or ""):
        return location
    return replace(location, user_info=f"{sasl.username}:{sasl.password}")


def advertised(connection: ConnectionSettings) -> Advertised:
    """Ask a broker; ClientError if none answers within a few seconds."""
    with Brokers(connection, answer_s=WITHIN_S) as brokers:
        found = brokers.any_metadata([TOPIC], WITHIN_S)
        has_schemas = any(topic.error_code in _MAY_EXIST for topic in found.topics)
        node = nodes_of(found)[0]
        request = describe_configs_request(BROKER, [str(node.id)], [ADVERTISED])
        (answer,) = brokers.at(node.address, request).results
        values = [config.value for config in answer.configs if config.name == ADVERTISED and config.value]
        return Advertised(url=values[0] if values else "", has_schemas=has_schemas)


def discovered(connection: ConnectionSettings) -> RegistryLocation:
    """Return the registry that the settings of the connection name, or else the one that brokers advertise.

    UnknownRegistry if they know none, ClientError if no broker answers.
    """
    if named := located(dict(connection.registry), connection):
        return named
    known = advertised(connection)
    if not known.url:
        raise UnknownRegistry(connection.bootstrap)
    return at_gateway(known.url, connection)


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
