"""Gateways that must not start."""

import pytest

from headrace.gateway.listening import Exposed, authenticates, check_exposure, is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]", "::ffff:127.0.0.1"])
def test_on_the_loopback_a_cluster_without_authentication_needs_none(host: str) -> None:
    assert is_loopback(host)
    check_exposure(host, "PLAINTEXT", tls=False)
    check_exposure(host, "SASL_SSL", tls=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "kafka.example", ""])
def test_elsewhere_nothing_is_open_without_consent(host: str) -> None:
    with pytest.raises(Exposed, match="--allow-unauthenticated"):
        check_exposure(host, "PLAINTEXT", tls=True)
    with pytest.raises(Exposed, match="over plain HTTP"):
        check_exposure(host, "SASL_SSL", tls=False)
    check_exposure(host, "SASL_SSL", tls=True)
    check_exposure(host, "SASL_SSL", tls=False, allow_plaintext=True)
    check_exposure(host, "PLAINTEXT", tls=False, allow_unauthenticated=True)


def test_a_gateway_with_rights_that_cannot_authenticate_users_is_not_open_even_on_the_loopback() -> None:
    with pytest.raises(Exposed, match=r"cannot authenticate users by security\.protocol=SSL"):
        check_exposure("127.0.0.1", "SSL", tls=True)
    check_exposure("127.0.0.1", "SSL", tls=False, allow_unauthenticated=True)


def test_users_authenticate_where_brokers_do() -> None:
    assert authenticates("SASL_SSL", allow_unauthenticated=False)
    assert not authenticates("SASL_SSL", allow_unauthenticated=True)
    assert not authenticates("SSL", allow_unauthenticated=False)
