"""Where the registry is, and with which credentials."""

import pytest

from headrace.client.errors import WrongSetting
from headrace.client.schemas import location
from headrace.client.schemas.location import (
    Advertised,
    RegistryLocation,
    UnknownRegistry,
    at_gateway,
    discovered,
    located,
)
from headrace.client.wire.connection_settings import ConnectionSettings

PLAIN = ConnectionSettings("one:9092")
SASL = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "wonder"}
OVER_TLS = ConnectionSettings.of({"security.protocol": "SASL_SSL", **SASL}, "one:9093")
IN_THE_CLEAR = ConnectionSettings.of({"security.protocol": "SASL_PLAINTEXT", **SASL}, "one:9093")
BY_SCRAM = ConnectionSettings.of(
    {"security.protocol": "SASL_PLAINTEXT", **SASL, "sasl.mechanism": "SCRAM-SHA-512"}, "one:9093"
)
URL = {"schema.registry.url": "https://one:8081, https://two:8081"}


def found(settings: dict[str, str], connection: ConnectionSettings = PLAIN) -> RegistryLocation:
    location = located(settings, connection)
    assert location is not None
    return location


def test_without_a_url_there_is_none() -> None:
    assert located({"basic.auth.user.info": "a:b"}, PLAIN) is None
    assert found(URL) == RegistryLocation(url="https://one:8081")


def test_a_given_url_takes_precedence() -> None:
    location = located(URL, PLAIN, "http://three")
    assert location is not None
    assert location.url == "http://three"


@pytest.mark.parametrize(
    ("settings", "user"),
    [
        ({"basic.auth.user.info": "bob:secret"}, "bob:secret"),
        ({"schema.registry.basic.auth.user.info": "bob:secret"}, "bob:secret"),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "alice:wonder"),
        ({"basic.auth.credentials.source": "URL", "basic.auth.user.info": "bob:secret"}, ""),
        ({}, ""),
    ],
)
def test_credentials_are_named_as_confluents_clients_name_them(settings: dict[str, str], user: str) -> None:
    location = found(URL | settings, OVER_TLS)
    assert location.user_info == user
    assert "secret" not in repr(location)


def test_references_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_USER", "bob:secret")
    assert found(URL | {"basic.auth.user.info": "${env:REGISTRY_USER}"}).user_info == "bob:secret"


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({"basic.auth.credentials.source": "KERBEROS"}, "basic.auth.credentials.source"),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "basic.auth.credentials.source"),
        ({"basic.auth.user.info": "bob"}, "basic.auth.user.info"),
        ({"schema.registry.ssl.truststore.type": "PGP"}, "schema.registry.ssl.truststore.type"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, str], setting: str) -> None:
    with pytest.raises(WrongSetting) as refused:
        found(URL | settings)
    assert refused.value.setting == setting


@pytest.mark.parametrize(
    ("url", "connection", "user"),
    [
        ("https://one:8080", OVER_TLS, "alice:wonder"),
        ("http://127.0.0.1:8080", OVER_TLS, "alice:wonder"),
        ("http://one:8080", OVER_TLS, ""),  # the brokers get the password over TLS only
        ("http://one:8080", IN_THE_CLEAR, "alice:wonder"),
        ("http://one:8080", BY_SCRAM, ""),  # the brokers never get it
        ("https://one:8080", BY_SCRAM, ""),  # and without TLS, somebody else may have sent this address
        ("http://127.0.0.1:8080", BY_SCRAM, "alice:wonder"),
        ("https://one:8080", PLAIN, ""),
    ],
)
def test_the_password_of_the_cluster_is_not_sent_over_a_less_safe_connection(
    url: str, connection: ConnectionSettings, user: str
) -> None:
    assert at_gateway(url, connection).user_info == user


def test_brokers_that_name_no_registry_leave_it_to_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(location, "advertised", lambda _: Advertised(url="", has_schemas=True))
    with pytest.raises(UnknownRegistry, match="give its address with --registry"):
        discovered(PLAIN)
