"""Fields that we read from a certificate's DER, beside what cryptography reads."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from headrace.security.certificate_fields import Malformed, alternative_names, not_valid_after
from support.certificates import Authority

AUTHORITY = Authority("Headrace")


def certificate(until: datetime, *names: x509.GeneralName) -> bytes:
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")]),
    )
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(until - timedelta(days=1)).not_valid_after(until)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, SHA256()).public_bytes(Encoding.DER)


@pytest.mark.parametrize("year", [1952, 1999, 2000, 2026, 2049, 2050, 2126])
def test_the_expiry_is_what_cryptography_reads(year: int) -> None:
    until = datetime(year, 2, 28, 23, 59, 58, tzinfo=UTC)
    assert not_valid_after(certificate(until)) == until


def test_alternative_names_have_their_kind() -> None:
    names = (
        x509.DNSName("one.example.com"),
        x509.IPAddress(ip_address("127.0.0.1")),
        x509.IPAddress(ip_address("::1")),
        x509.RFC822Name("ann@example.com"),
        x509.UniformResourceIdentifier("https://example.com"),
        x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
    )
    assert alternative_names(certificate(datetime(2030, 1, 1, tzinfo=UTC), *names)) == {
        "DNSName:one.example.com",
        "IPAddress:127.0.0.1",
        "IPAddress:::1",
        "RFC822Name:ann@example.com",
        "UniformResourceIdentifier:https://example.com",
        "0x88:2a03",
    }


def test_a_certificate_without_alternative_names_has_none() -> None:
    assert alternative_names(certificate(datetime(2030, 1, 1, tzinfo=UTC))) == set()


def test_any_prefix_of_a_certificate_is_malformed() -> None:
    der = ssl.PEM_cert_to_DER_cert(AUTHORITY.certify("broker").certificate)
    for end in range(len(der)):
        with pytest.raises(Malformed):
            alternative_names(der[:end])
        with pytest.raises(Malformed):
            not_valid_after(der[:end])
