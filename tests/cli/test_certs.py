"""`headrace certs`: what openssl, Python and brokers think of the certificates."""

import shutil
import ssl
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cli.command import Command
from headrace.security.certificate_directory import CertificateDirectory
from headrace.security.certificates import Facts, Usage, read_certificates


@pytest.fixture
def certs(tmp_path: Path) -> CertificateDirectory:
    directory = CertificateDirectory(tmp_path / "certs")
    Command("").ok("certs", "init", "--dir", str(directory.path))
    return directory


def run(certs: CertificateDirectory, *arguments: str) -> str:
    return Command("").ok("certs", *arguments, "--dir", str(certs.path)).text


def facts(certs: CertificateDirectory, name: str) -> Facts:
    return Facts.of(read_certificates(certs.file(name).read_bytes())[0])


def test_keys_are_for_their_owner_alone_and_the_ca_is_for_everybody(certs: CertificateDirectory) -> None:
    run(certs, "server")
    run(certs, "client", "--name", "alice")
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in certs.path.iterdir()}
    assert modes == {"ca.pem": 0o644, "ca.key": 0o600, "server.pem": 0o600, "alice.pem": 0o600}


def test_a_server_is_certified_for_its_hosts_and_the_loopback(certs: CertificateDirectory) -> None:
    run(certs, "server", "--name", "b1", "--host", "kafka.example.com", "--host", "10.0.0.7")
    assert {"kafka.example.com", "10.0.0.7", "localhost", "127.0.0.1", "::1"} <= set(facts(certs, "b1").hosts)


def test_a_client_is_certified_by_name(certs: CertificateDirectory) -> None:
    assert "User:CN=alice" in run(certs, "client", "--name", "alice")
    assert facts(certs, "alice").hosts == ()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize(
    ("name", "purpose"), [("server", "sslserver"), ("server", "sslclient"), ("a", "sslclient")]
)
def test_openssl_accepts_the_certificates(certs: CertificateDirectory, name: str, purpose: str) -> None:
    run(certs, "server")
    run(certs, "client", "--name", "a")
    command = ["openssl", "verify", "-x509_strict", "-CAfile", str(certs.ca), "-purpose", purpose]
    checked = subprocess.run([*command, str(certs.file(name))], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked


def test_a_file_is_a_keystore_and_the_ca_a_truststore(certs: CertificateDirectory) -> None:
    run(certs, "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certs.file("server"))
    context.load_verify_locations(certs.ca)


def test_a_renewed_certificate_keeps_its_key_unless_told_otherwise(certs: CertificateDirectory) -> None:
    run(certs, "server", "--host", "h.example.com", "--days", "10")
    before, key = facts(certs, "server"), certs.file("server").read_text().partition("-----BEGIN CERT")[0]

    assert "renewed" in run(certs, "renew")  # without a name: what expires soon
    after = facts(certs, "server")
    assert (after.subject, after.hosts) == (before.subject, before.hosts)
    assert after.expires > before.expires
    assert certs.file("server").read_text().startswith(key)

    run(certs, "renew", "server", "--new-key")
    assert not certs.file("server").read_text().startswith(key)
    assert "no certificate in" in run(certs, "renew")


def test_no_certificate_outlives_its_ca(tmp_path: Path) -> None:
    directory = CertificateDirectory(tmp_path)
    authority = directory.init("short", datetime.now(UTC), days=5)
    made = directory.issue("server", Usage.SERVER, datetime.now(UTC))
    assert made.certificate.not_valid_after_utc == authority.certificate.not_valid_after_utc


def test_show_says_when_each_expires(certs: CertificateDirectory) -> None:
    run(certs, "server", "--days", "20")
    text = run(certs, "show")
    assert text.splitlines()[0].split() == ["file", "subject", "for", "expires", "left"]
    assert "19 days" in text
    found = Command("").ok("certs", "show", "--json", str(certs.file("server"))).json
    assert found[0]["subject"] == "CN=server"
    assert datetime.fromisoformat(found[0]["expires"]) - datetime.now(UTC) > timedelta(days=19)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("init",), "ca.pem exists already: choose another directory"),
        (("client", "--name", "ca"), "'ca' cannot be the name of a certificate's file"),
        (("client", "--name", "../escape"), "'../escape' cannot be the name of a certificate's file"),
        (("client", "--name", "x" * 65), "a name has 1 to 64 characters, not 65"),
        (("server", "--host", "bücher.example"), "'bücher.example' is neither a host name in ASCII nor an"),
        (("renew", "nobody"), "there is no "),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    certs: CertificateDirectory, arguments: tuple[str, ...], says: str
) -> None:
    assert says in Command("")("certs", *arguments, "--dir", str(certs.path)).complaint


def test_nothing_is_overwritten(certs: CertificateDirectory) -> None:
    run(certs, "server")
    again = Command("")("certs", "server", "--dir", str(certs.path))
    assert "exists already: `headrace certs renew server` renews it" in again.complaint


def test_a_certificate_needs_a_ca(tmp_path: Path) -> None:
    assert (
        "has no CA: `headrace certs init" in Command("")("certs", "server", "--dir", str(tmp_path)).complaint
    )
