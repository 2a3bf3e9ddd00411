"""Certificates that may replace others, and those that may not."""

import ssl

import pytest

from headrace.security.certificate_changes import check_alternative_names, check_handshake, check_subject
from headrace.security.pem import InvalidTlsSetting
from headrace.security.tls import TlsSettings
from support.certificates import Authority, Identity

AUTHORITY, STRANGER = Authority("authority"), Authority("stranger")
BROKER = AUTHORITY.certify("broker", ["localhost", "127.0.0.1"])


def test_the_subject_stays_the_same() -> None:
    check_subject(BROKER.certificate, STRANGER.certify("BROKER").certificate)
    with pytest.raises(InvalidTlsSetting, match=r"of 'CN=other', expected 'CN=broker' .*ssl.allow.dn.chang"):
        check_subject(BROKER.certificate, AUTHORITY.certify("other").certificate)


def test_only_the_first_certificate_of_a_chain_counts() -> None:
    check_subject(
        BROKER.certificate + AUTHORITY.certificate,
        AUTHORITY.certify("broker").certificate + BROKER.certificate,
    )


def test_alternative_names_may_be_added_and_not_removed() -> None:
    fewer = AUTHORITY.certify("broker", ["localhost"])
    check_alternative_names(fewer.certificate, BROKER.certificate)
    check_alternative_names(AUTHORITY.certify("broker").certificate, BROKER.certificate)
    with pytest.raises(InvalidTlsSetting, match=r"alternative names IPAddress:127.0.0.1: ssl.allow.san"):
        check_alternative_names(BROKER.certificate, fewer.certificate)


def contexts(identity: Identity, trusted: Authority, **more: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    settings = {
        "ssl.keystore.key": identity.key,
        "ssl.keystore.certificate.chain": identity.certificate,
        "ssl.truststore.certificates": trusted.certificate,
        "ssl.client.auth": "required",
        "ssl.endpoint.identification.algorithm": "",
    } | {name.replace("_", "."): value for name, value in more.items()}
    made = TlsSettings.of(settings)
    return made.server_context(), made.client_context()


@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize(
    ("server_authority", "trusted_by_server", "trusted_by_client"),
    [(STRANGER, AUTHORITY, AUTHORITY), (AUTHORITY, STRANGER, AUTHORITY), (AUTHORITY, AUTHORITY, STRANGER)],
)
def test_brokers_that_do_not_trust_each_other_do_not_connect(
    server_authority: Authority, trusted_by_server: Authority, trusted_by_client: Authority, versions: str
) -> None:
    server, _ = contexts(
        server_authority.certify("broker"),
        trusted_by_server,
        ssl_enabled_protocols=versions,
        ssl_protocol="TLS",
    )
    _, client = contexts(BROKER, trusted_by_client)
    with pytest.raises(InvalidTlsSetting, match="brokers cannot connect"):
        check_handshake(server, client)


@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3"])
def test_brokers_that_trust_each_other_connect(versions: str) -> None:
    server, _ = contexts(BROKER, AUTHORITY, ssl_enabled_protocols=versions)
    _, client = contexts(AUTHORITY.certify("broker"), AUTHORITY)

    check_handshake(server, client)


def test_versions_without_overlap_are_refused() -> None:
    server, _ = contexts(BROKER, AUTHORITY, ssl_enabled_protocols="TLSv1.3")
    _, client = contexts(BROKER, AUTHORITY, ssl_enabled_protocols="TLSv1.2")
    with pytest.raises(InvalidTlsSetting, match="brokers cannot connect"):
        check_handshake(server, client)
