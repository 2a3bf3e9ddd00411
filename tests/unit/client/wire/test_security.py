"""Settings of secured connections: both families of clients, and what cannot be."""

import re

import pytest

from headrace.client.errors import ClientError
from headrace.client.wire.security import PLAINTEXT, Security

TLS = {"security.protocol": "SSL"}


def test_who_asks_for_nothing_gets_no_security() -> None:
    assert Security.of({}) == PLAINTEXT
    assert PLAINTEXT.tls is None
    assert PLAINTEXT.sasl is None


def test_certificates_and_hosts_are_checked_unless_somebody_says_otherwise() -> None:
    tls = Security.of(TLS).tls

    assert tls is not None
    assert tls.checks_certificate
    assert tls.checks_host
    assert tls.context().check_hostname


@pytest.mark.parametrize("algorithm", ["", "none", "None"])
def test_the_certificate_is_checked_even_if_the_host_is_not(algorithm: str) -> None:
    tls = Security.of(TLS | {"ssl.endpoint.identification.algorithm": algorithm}).tls

    assert tls is not None
    assert (tls.checks_certificate, tls.checks_host) == (True, False)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"security.protocol": "TLS"},
            "security.protocol is 'TLS': choose one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (TLS | {"ssl.keystore.type": "JCEKS"}, "ssl.keystore.type is JCEKS: supported are PEM, PKCS12, JKS"),
        (TLS | {"ssl.cipher.suites": "NO_SUCH_CIPHER"}, "ssl.cipher.suites has the unknown or unsupported"),
        (TLS | {"ssl.key.location": "a.key"}, "ssl.key.location is set, and the certificate of that key is"),
        (
            TLS | {"ssl.endpoint.identification.algorithm": "http"},
            "ssl.endpoint.identification.algorithm is 'http': choose https or none",
        ),
        (
            TLS | {"enable.ssl.certificate.verification": "no"},
            "enable.ssl.certificate.verification is 'no': choose true or false",
        ),
        (TLS | {"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols is 'TLSv1.1': choose TLSv1.2"),
        (TLS | {"ssl.engine.factory.class": "A"}, "ssl.engine.factory.class cannot be set: there is no Java"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing"),
    ],
)
def test_a_setting_that_cannot_be_is_the_first_word(settings: dict[str, str], says: str) -> None:
    with pytest.raises(ClientError) as raised:
        Security.of(settings)

    assert str(raised.value).startswith(says)


def test_no_secret_is_shown() -> None:
    security = Security.of(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "ann",
            "sasl.password": "secret 1",
            "ssl.keystore.certificate.chain": "certificates",
            "ssl.keystore.key": "secret 2",
            "ssl.key.password": "secret 3",
        }
    )

    assert "ann" in repr(security)
    assert "secret" not in repr(security)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"ssl.crl.location": "no/such.crl"}, "ssl.crl.location is no/such.crl, which cannot be read"),
        ({"ssl.truststore.location": "no.jks"}, "ssl.truststore.location is no.jks, where there is no file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(settings: dict[str, str], says: str) -> None:
    tls = Security.of(TLS | settings).tls
    assert tls is not None
    with pytest.raises(ClientError, match=re.escape(says)):
        tls.context()
