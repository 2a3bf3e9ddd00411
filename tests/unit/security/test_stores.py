"""Keystores and truststores, by keytool, by `cryptography` and in PEM: one certificate chain, all types."""

import shutil
import ssl
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    KeySerializationEncryption,
    NoEncryption,
    pkcs12,
)

from headrace.security.pem import InvalidTlsSetting
from headrace.security.stores import Keystore, Truststore
from support.certificates import Authority

STORE, KEY, WRONG = "store secret", "key secret", "guessed secret"
SHORT_LIVED = ("-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1")  # the start of Java takes most of the time
AUTHORITY = Authority("authority")
OTHER = Authority("other")
SERVER = AUTHORITY.certify("server", ["localhost"])


def keystore(path: Path, **settings: str) -> Keystore:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    found = Keystore.of({"ssl.keystore.location": str(path), **given})
    assert found is not None
    return found


def truststore(path: Path, password: str | None = None) -> Truststore:
    found = Truststore.of({"ssl.truststore.location": str(path), "ssl.truststore.password": password})
    assert found is not None
    return found


def subjects(pem: str) -> list[str]:
    return [each.subject.rfc4514_string() for each in x509.load_pem_x509_certificates(pem.encode())]


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(InvalidTlsSetting) as raised:
        read()
    said = str(raised.value)
    assert not any(secret in said for secret in (STORE, KEY, WRONG))
    return said


def pkcs12_file(
    path: Path,
    *,
    identity: bool = True,
    issuers: tuple[tuple[bytes | None, Authority], ...] = ((None, AUTHORITY),),
    encryption: KeySerializationEncryption | None = None,
) -> Path:
    certificates = [pkcs12.PKCS12Certificate(each.identity.signed, alias) for alias, each in issuers]
    secret = encryption or BestAvailableEncryption(STORE.encode())
    if identity:
        data = pkcs12.serialize_key_and_certificates(
            b"server", SERVER.private, SERVER.signed, certificates, secret
        )
    else:
        data = pkcs12.serialize_java_truststore(certificates, secret)
    path.write_bytes(data)
    return path


@dataclass(frozen=True)
class Java:
    """Stores that keytool has made."""

    directory: Path
    keytool: str

    def run(self, *arguments: str) -> None:
        ran = subprocess.run(
            [self.keytool, *SHORT_LIVED, *arguments, "-storepass", STORE, "-noprompt"],
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def make(self, name: str, kind: str) -> None:
        options = ("-keystore", name, "-storetype", kind)
        subject = ("-dname", "CN=Ann, O=Headrace", "-ext", "san=dns:localhost")
        self.run("-genkeypair", "-alias", "me", "-keyalg", "EC", *subject, *options)
        self.run("-importcert", "-alias", "Friend", "-file", "authority.pem", *options)


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Java:
    keytool = shutil.which("keytool")
    if keytool is None:
        pytest.skip("Stores of Java are made by keytool, which is not installed: install a JDK.")
    made = Java(tmp_path_factory.mktemp("java"), keytool)
    (made.directory / "authority.pem").write_text(AUTHORITY.certificate)
    made.make("old.jks", "JKS")
    made.make("new.jks", "PKCS12")
    return made


def test_a_keystore_of_java_holds_our_certificate(java: Java) -> None:
    store = keystore(java.directory / "new.jks", ssl_keystore_password=STORE)

    assert subjects(store.identity().chain) == ["CN=Ann,O=Headrace"]
    store.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))


def test_a_truststore_of_java_trusts_its_entries(java: Java) -> None:
    trusted = subjects(truststore(java.directory / "new.jks", STORE).certificates())

    assert sorted(trusted) == ["CN=Ann,O=Headrace", "CN=authority"]


def test_a_store_of_before_java_9_is_refused_with_the_command_that_converts_it(java: Java) -> None:
    path = java.directory / "old.jks"
    said = refusal(keystore(path, ssl_keystore_password=STORE).identity)
    command = said.partition("`keytool ")[2].partition("`")[0]

    java.run(*command.split(), "-srcstorepass", STORE)

    assert said == refusal(truststore(path).certificates).replace("truststore", "keystore")
    converted = keystore(path.with_suffix(".jks.p12"), ssl_keystore_password=STORE)
    assert subjects(converted.identity().chain) == ["CN=Ann,O=Headrace"]


def test_the_password_of_a_pkcs12_store_of_java(java: Java) -> None:
    path = java.directory / "new.jks"

    assert refusal(keystore(path).identity) == (
        f"ssl.keystore.password is missing: {path} is a PKCS12 keystore"
    )
    assert refusal(keystore(path, ssl_keystore_password=WRONG).identity) == (
        f"ssl.keystore.password is wrong, or {path}, a PKCS12 store, is damaged"
    )
    assert refusal(truststore(path).certificates) == (
        f"ssl.truststore.password is missing: {path} is an encrypted PKCS12 store"
    )
    assert refusal(truststore(path, WRONG).certificates) == (
        f"ssl.truststore.password is wrong, or {path}, a PKCS12 store, is damaged"
    )


def test_every_type_holds_the_same_chain(tmp_path: Path) -> None:
    pem = tmp_path / "store.pem"
    pem.write_text(SERVER.key + SERVER.certificate + AUTHORITY.certificate)
    stores = [keystore(pem), keystore(pkcs12_file(tmp_path / "b"), ssl_keystore_password=STORE)]
    inline = Keystore.of(
        {
            "ssl.keystore.type": "pem",
            "ssl.keystore.key": SERVER.key.replace("\n", " "),
            "ssl.keystore.certificate.chain": SERVER.certificate + AUTHORITY.certificate,
        }
    )
    assert inline is not None

    identities = {store.identity() for store in [*stores, inline]}

    assert len(identities) == 1
    assert identities.pop().chain == SERVER.certificate + AUTHORITY.certificate


def test_the_chain_of_a_pkcs12_store_is_put_in_order(tmp_path: Path) -> None:
    path = pkcs12_file(tmp_path / "a", issuers=((None, OTHER), (None, AUTHORITY)))

    chain = keystore(path, ssl_keystore_password=STORE).identity().chain

    assert subjects(chain) == ["CN=server", "CN=authority"]


def test_an_encrypted_pem_key_needs_its_password(tmp_path: Path) -> None:
    path = tmp_path / "store.pem"
    path.write_text(SERVER.encrypted_key(KEY) + SERVER.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    keystore(path, ssl_key_password=KEY).load_into(context)
    assert refusal(lambda: keystore(path, ssl_key_password=WRONG).load_into(context)) == (
        "ssl.key.password is wrong: ssl.keystore.location is encrypted"
    )
    assert refusal(lambda: keystore(path, ssl_key_password=WRONG * 200).load_into(context)) == (
        "ssl.key.password is wrong: ssl.keystore.location is encrypted"
    )
    assert refusal(lambda: keystore(path).load_into(context)) == (
        "ssl.key.password is missing: ssl.keystore.location is encrypted"
    )


def test_the_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.pem").write_text(OTHER.certify("x").key + SERVER.certificate)

    said = refusal(
        lambda: keystore(tmp_path / "store.pem").load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    )

    assert said == (
        f"ssl.keystore.location is {tmp_path / 'store.pem'}, whose private key does not belong to its first "
        "certificate"
    )


def test_a_chain_that_does_not_begin_with_the_certificate_of_the_key_is_refused() -> None:
    store = Keystore.of(
        {
            "ssl.keystore.key": SERVER.key,
            "ssl.keystore.certificate.chain": AUTHORITY.certificate + SERVER.certificate,
        }
    )
    assert store is not None

    said = refusal(lambda: store.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)))

    assert said == "ssl.keystore.key is not the key of ssl.keystore.certificate.chain"


def test_a_pkcs12_truststore_by_keytool_needs_no_password_if_it_is_not_encrypted(tmp_path: Path) -> None:
    issuers = ((b"one", AUTHORITY), (b"two", OTHER))
    path = pkcs12_file(tmp_path / "a", identity=False, issuers=issuers, encryption=NoEncryption())

    assert subjects(truststore(path).certificates()) == ["CN=authority", "CN=other"]


def test_the_issuers_of_a_key_are_trusted_only_if_they_have_an_alias(tmp_path: Path) -> None:
    issuers = ((None, AUTHORITY), (b"CN=authority", AUTHORITY), (b"friend", OTHER))
    path = pkcs12_file(tmp_path / "a", issuers=issuers)

    assert subjects(truststore(path, STORE).certificates()) == ["CN=server", "CN=other"]


def test_a_store_without_what_is_needed_says_so(tmp_path: Path) -> None:
    no_key = pkcs12_file(tmp_path / "a", identity=False, issuers=((b"one", AUTHORITY),))
    empty = tmp_path / "b"
    empty.write_bytes(pkcs12.serialize_key_and_certificates(None, SERVER.private, None, None, NoEncryption()))

    assert refusal(keystore(no_key, ssl_keystore_password=STORE).identity) == (
        f"ssl.keystore.location is {no_key}, which has no private key: is it a truststore?"
    )
    assert "which has no trusted certificate" in refusal(truststore(empty).certificates)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "which is empty"),
        (b"\xce\xce\xce\xce" + bytes(50), "a JCEKS store, not supported: convert it with `keytool"),
        (b"\0\0\0\2\0\0\0\x14" + bytes(50), "a BKS store, not supported: convert it with `keytool"),
        (AUTHORITY.identity.der, "a certificate in DER: convert it with `openssl x509"),
        (b"\x00\xffnothing", "which is neither PEM nor PKCS12"),
        (b"nothing", "holds no certificate in PEM"),
        (b"\x30\x82\xff\xff\x02\x01\x03", "a damaged PKCS12 store (an element of 65,535 bytes is cut off"),
        (b"\x30\x03\x02\x01\x04", "a damaged PKCS12 store (it does not begin with version 3)"),
        (b"\x30\x03\x02\x01\x03more", "a damaged PKCS12 store (4 bytes follow its end)"),
        (b"\xfe\xed\xfe\xed" + bytes(60), "a JKS store, not supported: convert it with `keytool"),
    ],
)
def test_a_file_of_another_kind_is_recognised(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "store").write_bytes(content)

    assert says in refusal(truststore(tmp_path / "store", STORE).certificates)
    assert says in refusal(keystore(tmp_path / "store", ssl_keystore_password=STORE).identity)


def test_a_certificate_that_is_none_is_refused() -> None:
    inline = {"ssl.truststore.certificates": AUTHORITY.certificate.replace("MII", "AAA", 1)}
    store = Truststore.of(inline)
    assert store is not None

    said = refusal(lambda: store.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)))

    assert said == "ssl.truststore.certificates holds something that is no certificate"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"ssl.keystore.type": "JCEKS"}, "ssl.keystore.type is JCEKS: supported are PEM, PKCS12, JKS"),
        ({"ssl.keystore.key": "key"}, "ssl.keystore.certificate.chain is missing: ssl.keystore.key needs it"),
        (
            {"ssl.keystore.certificate.chain": "chain"},
            "ssl.keystore.key is missing: ssl.keystore.certificate.chain needs it",
        ),
        (
            {"ssl.keystore.location": "a", "ssl.keystore.key": "key", "ssl.keystore.certificate.chain": "b"},
            "ssl.keystore.location cannot be set with ssl.keystore.key",
        ),
    ],
)
def test_settings_of_a_keystore_that_contradict_each_other(settings: dict[str, str], says: str) -> None:
    assert refusal(lambda: Keystore.of(settings)).startswith(says)


def test_settings_of_a_truststore_that_contradict_each_other() -> None:
    both = {"ssl.truststore.location": "a", "ssl.truststore.certificates": "b"}

    assert refusal(lambda: Truststore.of({"ssl.truststore.type": "BKS"})).startswith(
        "ssl.truststore.type is BKS"
    )
    assert refusal(lambda: Truststore.of(both)).startswith("ssl.truststore.location cannot be set with")


def test_no_settings_are_no_stores() -> None:
    assert Keystore.of({"ssl.keystore.location": "", "ssl.key.password": None}) is None
    assert Truststore.of({}) is None


def test_no_secret_is_shown(tmp_path: Path) -> None:
    path = pkcs12_file(tmp_path / "a")
    store = keystore(path, ssl_keystore_password=STORE, ssl_key_password=STORE)

    shown = repr((store, truststore(path, STORE), store.identity()))

    assert "secret" not in shown
    assert "PRIVATE KEY" not in shown
