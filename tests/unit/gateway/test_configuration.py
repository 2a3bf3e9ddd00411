"""The properties of a gateway."""

from pathlib import Path

import pytest

from headrace.client.errors import BadSetting
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.security import Security
from headrace.gateway.configuration import Configuration, load

SASL = Security.of(
    {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "gateway",
        "sasl.password": "secret",
    }
)
TO = ConnectionSettings("127.0.0.1:9092", SASL)


def test_everything_has_a_default() -> None:
    settings = Configuration(given={}).settings(ConnectionSettings("127.0.0.1:9092"), "127.0.0.1")
    assert not settings.authentication
    assert settings.tls is None
    assert settings.hosts == settings.trusted_proxies == ()


def test_users_authenticate_if_the_gateway_does() -> None:
    given = {
        "http.hosts": "one.example, two.example",
        "http.sasl.mechanism": "scram-sha-256",
        "http.session.idle.ms": "60000",
        "http.session.max.ms": "3600000",
    }
    settings = Configuration(given=given).settings(TO, "127.0.0.1")
    assert settings.authentication
    assert settings.hosts == ("one.example", "two.example")
    assert settings.password_mechanism == "SCRAM-SHA-256"
    assert (settings.session_idle_s, settings.session_absolute_s) == (60, 3600)
    assert "secret" not in repr(settings)


def test_proxies_are_addresses_and_networks() -> None:
    given = {"http.trusted.proxies": "127.0.0.1, 10.1.0.0/16, ::1/128,fd00::/8"}
    settings = Configuration(given=given).settings(TO, "127.0.0.1")
    assert settings.trusted_proxies == ("127.0.0.1", "10.1.0.0/16", "::1", "fd00::/8")


def test_an_operator_may_let_everyone_in() -> None:
    settings = Configuration(given={"http.allow.unauthenticated": "true"}).settings(TO, "192.0.2.7")
    assert not settings.authentication


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("http.sasl.mechanism", "OAUTHBEARER", "choose one of SCRAM-SHA-512"),
        ("http.allow.unauthenticated", "yes", "choose true or false"),
        ("http.session.idle.ms", "soon", "expected at least 1000 ms"),
        ("http.trusted.proxies", "proxy.example", "http.trusted.proxies has an entry that is no address"),
        ("http.trusted.proxies", "10.0.0.1/8", "http.trusted.proxies has an entry that is no address"),
        ("http.hostnames", "x", "no setting http.hostnames"),
        ("security.protocol", "SSL", "--command-config"),
        ("ssl.keystore.location", "/nowhere.pem", "ssl.keystore.location"),
        ("ssl.client.auth", "required", "ssl.keystore.location is missing"),
        ("ssl.principal.mapping.rules", "RULE:(", "invalid rule"),
    ],
)
def test_a_wrong_setting_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(BadSetting, match=message):
        Configuration(given={name: value}).settings(TO, "127.0.0.1")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="nowhere"):
        load(tmp_path / "nowhere")
    (tmp_path / "wrong").write_text("no equals sign")
    with pytest.raises(BadSetting, match="line 1"):
        load(tmp_path / "wrong")
