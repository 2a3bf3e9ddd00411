"""Contexts of listeners and of connections between brokers, in real handshakes without a socket."""

import ssl
from pathlib import Path

import pytest

from headrace.security.pem import InvalidTlsSetting
from headrace.security.tls import TlsSettings
from support.certificates import Authority, Identity
from support.handshakes import exchange, handshake

AUTHORITY, STRANGER = Authority("authority"), Authority("stranger")
BROKER = AUTHORITY.certify("broker", ["localhost"])
CLIENT = AUTHORITY.certify("client")
TRUSTS = {"ssl.truststore.certificates": AUTHORITY.certificate}
MUTUAL = TRUSTS | {"ssl.client.auth": "required"}


def identity(of: Identity) -> dict[str, str]:
    return {"ssl.keystore.key": of.key, "ssl.keystore.certificate.chain": of.certificate}


def listener(settings: dict[str, str]) -> ssl.SSLContext:
    return TlsSettings.of(identity(BROKER) | settings).server_context()


def connections(settings: dict[str, str]) -> ssl.SSLContext:
    return TlsSettings.of(settings).client_context()


def test_tls_1_3_is_chosen_and_carries_data() -> None:
    server, client = handshake(listener({}), connections(TRUSTS))

    assert server.version() == client.version() == "TLSv1.3"
    assert exchange(client, server, b"from the client") == b"from the client"
    assert exchange(server, client, b"from the server") == b"from the server"
    assert server.compression() is None


@pytest.mark.parametrize(
    ("server_has", "client_has", "version"),
    [
        ({"ssl.enabled.protocols": "TLSv1.2"}, {}, "TLSv1.2"),
        ({}, {"ssl.enabled.protocols": "TLSv1.2"}, "TLSv1.2"),
        ({}, {"ssl.protocol": "TLSv1.2"}, "TLSv1.2"),
        ({"ssl.protocol": "TLSv1.2"}, {}, "TLSv1.3"),  # Kafka's ssl.protocol is about outgoing connections
        ({"ssl.enabled.protocols": "TLSv1.3, tlsv1.2"}, {"ssl.protocol": "TLS"}, "TLSv1.3"),
        ({"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}, {}, "TLSv1.2"),
        ({"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}, {}, "TLSv1.3"),
    ],
)
def test_the_newest_common_version_is_chosen(
    server_has: dict[str, str], client_has: dict[str, str], version: str
) -> None:
    server, _ = handshake(listener(server_has), connections(TRUSTS | client_has))

    assert server.version() == version


def test_a_java_cipher_suite_is_negotiated() -> None:
    suite = {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"}

    server, _ = handshake(listener(suite), connections(TRUSTS))

    assert server.cipher() == ("ECDHE-ECDSA-CHACHA20-POLY1305", "TLSv1.2", 256)


@pytest.mark.filterwarnings("ignore:.*TLSv1:DeprecationWarning")
def test_tls_1_1_is_refused() -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.load_verify_locations(cadata=AUTHORITY.certificate)
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")  # OpenSSL's own defaults refuse TLS 1.1 before the server can

    with pytest.raises(ssl.SSLError, match="UNSUPPORTED_PROTOCOL"):
        handshake(listener({}), old)


def test_versions_without_an_overlap_are_refused() -> None:
    with pytest.raises(ssl.SSLError):
        handshake(
            listener({"ssl.enabled.protocols": "TLSv1.3"}),
            connections(TRUSTS | {"ssl.enabled.protocols": "TLSv1.2"}),
        )


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_required_certificate_names_the_client(version: str) -> None:
    server, _ = handshake(
        listener(MUTUAL | {"ssl.enabled.protocols": version}), connections(TRUSTS | identity(CLIENT))
    )

    assert server.getpeercert(binary_form=True) == CLIENT.der


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("who", [None, STRANGER.certify("client")], ids=["nobody", "a_stranger"])
def test_a_client_without_a_trusted_certificate_is_refused(version: str, who: Identity | None) -> None:
    client = connections(TRUSTS | ({} if who is None else identity(who)))

    with pytest.raises(ssl.SSLError):
        handshake(listener(MUTUAL | {"ssl.enabled.protocols": version}), client)


@pytest.mark.parametrize(
    ("who", "auth", "seen"),
    [
        (None, "requested", None),
        (CLIENT, "requested", CLIENT.der),
        (CLIENT, "Required", CLIENT.der),
        (CLIENT, "none", None),
        (STRANGER.certify("client"), "none", None),
    ],
)
def test_a_certificate_is_seen_if_it_was_asked_for(
    who: Identity | None, auth: str, seen: bytes | None
) -> None:
    client = connections(TRUSTS | ({} if who is None else identity(who)))

    server, _ = handshake(listener(TRUSTS | {"ssl.client.auth": auth}), client)

    assert server.getpeercert(binary_form=True) == seen


def test_a_stranger_is_refused_even_if_certificates_are_only_requested() -> None:
    client = connections(TRUSTS | identity(STRANGER.certify("client")))

    with pytest.raises(ssl.SSLError):
        handshake(listener(TRUSTS | {"ssl.client.auth": "requested"}), client)


def test_the_host_of_a_broker_is_verified_unless_the_setting_is_empty() -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(listener({}), connections(TRUSTS), host="elsewhere")

    lenient = connections(TRUSTS | {"ssl.endpoint.identification.algorithm": ""})
    handshake(listener({}), lenient, host="elsewhere")


@pytest.mark.parametrize(
    "trusted", [{"ssl.truststore.certificates": STRANGER.certificate}, {}], ids=["another", "the_systems"]
)
def test_a_broker_of_an_unknown_authority_is_refused(trusted: dict[str, str]) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(listener({}), connections(trusted))


def test_a_certificate_may_itself_be_trusted_as_in_java() -> None:
    handshake(listener({}), connections({"ssl.truststore.certificates": BROKER.certificate}))


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_broker_stores_no_sessions(version: str) -> None:
    context = listener({"ssl.enabled.protocols": version})
    for _ in range(3):
        server, client = handshake(context, connections(TRUSTS))
        exchange(server, client, b"data")  # tickets of TLS 1.3 would come before it
        if version == "TLSv1.3":
            assert client.session is not None
            assert not client.session.has_ticket

    assert context.session_stats()["number"] == 0


def test_a_client_cannot_renegotiate() -> None:
    assert listener({}).options & ssl.OP_NO_RENEGOTIATION
    assert listener({}).options & ssl.OP_NO_COMPRESSION


def test_files_are_known_and_read_only_for_a_context(tmp_path: Path) -> None:
    store = str(tmp_path / "store.pem")
    settings = TlsSettings.of({"ssl.keystore.location": store, "ssl.truststore.location": store})

    assert settings.paths == (store,)
    with pytest.raises(InvalidTlsSetting, match="where there is no file"):
        settings.server_context()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"ssl.client.auth": "maybe"}, "ssl.client.auth is 'maybe': choose none or requested or required"),
        ({"ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "ssl.enabled.protocols is 'TLSv1.1,TLSv1.2': choose"),
        ({"ssl.enabled.protocols": ""}, "ssl.enabled.protocols is ''"),
        ({"ssl.protocol": "SSLv3"}, "ssl.protocol is 'SSLv3': choose TLSv1.3, TLSv1.2 or TLS"),
        (
            {"ssl.protocol": "TLSv1.2", "ssl.enabled.protocols": "TLSv1.3"},
            "ssl.protocol is 'TLSv1.2', older than all of ssl.enabled.protocols",
        ),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "ssl.endpoint.identification.algorithm is"),
        ({"ssl.cipher.suites": "TLS_FOO"}, "ssl.cipher.suites has the unknown or unsupported suite"),
        ({"ssl.truststore.type": "BKS"}, "ssl.truststore.type is BKS"),
    ],
)
def test_an_invalid_setting_is_the_first_word(settings: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidTlsSetting) as raised:
        TlsSettings.of(settings)

    assert str(raised.value).startswith(says)


def test_a_listener_needs_a_keystore_and_with_client_auth_a_truststore() -> None:
    with pytest.raises(InvalidTlsSetting, match=r"^ssl\.keystore\.location is missing"):
        TlsSettings.of({}).server_context()
    for auth in ("requested", "required"):
        with pytest.raises(InvalidTlsSetting, match=r"^ssl\.truststore\.location is missing"):
            listener({"ssl.client.auth": auth})


def test_settings_are_compared_by_value_and_show_no_secret() -> None:
    given = identity(BROKER) | TRUSTS | {"ssl.key.password": "secret"}

    assert TlsSettings.of(given) == TlsSettings.of(given)
    assert "secret" not in repr(TlsSettings.of(given))
    assert "PRIVATE KEY" not in repr(TlsSettings.of(given))
