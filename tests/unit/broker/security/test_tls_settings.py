"""The TLS settings of a listener."""

import ssl

import pytest

from headrace.broker.security.tls import tls_settings
from headrace.broker.settings.config import BrokerConfig

LISTENERS = {
    "listeners": "INSIDE://:9093,CLIENTS://:9092",
    "listener.security.protocol.map": "INSIDE:SSL,CLIENTS:SASL_SSL",
    "inter.broker.listener.name": "INSIDE",
}
CHECKS = [("https", True), ("HTTPS", True), ("", False)]


@pytest.mark.parametrize(("algorithm", "is_checked"), CHECKS)
def test_an_empty_algorithm_means_that_host_names_are_not_checked(
    algorithm: str, *, is_checked: bool
) -> None:
    config = BrokerConfig.of({"ssl.endpoint.identification.algorithm": algorithm})

    assert tls_settings(config, "PLAINTEXT").checks_host is is_checked


def test_the_general_client_auth_is_for_listeners_without_sasl() -> None:
    config = BrokerConfig.of({**LISTENERS, "ssl.client.auth": "required"})

    assert tls_settings(config, "INSIDE").client_auth is ssl.CERT_REQUIRED
    assert tls_settings(config, "CLIENTS").client_auth is ssl.CERT_NONE


def test_a_client_auth_of_a_listener_counts_with_sasl_as_well() -> None:
    config = BrokerConfig.of({**LISTENERS, "listener.name.clients.ssl.client.auth": "requested"})

    assert tls_settings(config, "INSIDE").client_auth is ssl.CERT_NONE
    assert tls_settings(config, "CLIENTS").client_auth is ssl.CERT_OPTIONAL
