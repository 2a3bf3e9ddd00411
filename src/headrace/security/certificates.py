"""A development certificate authority (CA), and the certificates of servers and clients that it signs.

It is for a team that has no CA. Keys are of the elliptic curve P-256, which all clients of Kafka support.
"""

import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from ipaddress import ip_address
from typing import Final, TypeAlias, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from headrace.security.pem import InvalidCertificate

AUTHORITY_DAYS: Final = 3650
LEAF_DAYS: Final = 397  # browsers accept no certificate of a server that is valid for longer
SKEW: Final = timedelta(hours=1)  # clocks of other machines may be behind
LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
NAME_LENGTH: Final = 64  # of a common name, by X.509


Extension = TypeVar("Extension", bound=x509.ExtensionType)
PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Usage(Enum):
    """What a certificate is for. A broker is a server, and a client of other brokers."""

    SERVER = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
    CLIENT = (ExtendedKeyUsageOID.CLIENT_AUTH,)


@dataclass(frozen=True, slots=True)
class Issued:
    certificate: x509.Certificate
    key: PrivateKey

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """The key in PKCS #8, without a password: the form that Java's clients and librdkafka both read."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    @classmethod
    def parse(cls, certificate: str, key: str) -> "Issued":
        """Read PEM texts, which may be the same; InvalidCertificate if something is missing."""
        try:
            loaded = load_pem_private_key(key.encode(), password=None)
            if not isinstance(loaded, PrivateKey):
                raise InvalidCertificate(f"the key is a {type(loaded).__name__}: expected one of EC or RSA")
            return cls(x509.load_pem_x509_certificate(certificate.encode()), loaded)
        except (ValueError, TypeError) as error:
            raise InvalidCertificate("expected a certificate and a private key without password") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    subject: str  # as in a principal: CN=alice
    issuer: str
    hosts: tuple[str, ...]
    is_authority: bool
    begins: datetime
    expires: datetime

    @classmethod
    def of(cls, certificate: x509.Certificate) -> "Facts":
        constraints = _extension(certificate, x509.BasicConstraints)
        return cls(
            subject=certificate.subject.rfc4514_string(),
            issuer=certificate.issuer.rfc4514_string(),
            hosts=hosts_of(certificate),
            is_authority=constraints is not None and constraints.ca,
            begins=certificate.not_valid_before_utc,
            expires=certificate.not_valid_after_utc,
        )

    def days_left(self, now: datetime) -> int:
        return (self.expires - now) // timedelta(days=1)


def new_authority(name: str, days: int, now: datetime) -> Issued:
    key, subject = new_key(), _name(name)
    builder = (
        _builder(subject, subject, key.public_key(), now, now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs=True), critical=True)
    )
    return Issued(builder.sign(key, SHA256()), key)


def issue(
    authority: Issued, name: str, usage: Usage, *, hosts: Sequence[str] = (), days: int, now: datetime
) -> Issued:
    """Return a new key, and a certificate for it; a certificate never outlives its CA."""
    return _sign(authority, _name(name), new_key(), usage=usage, hosts=hosts, days=days, now=now)


def renew(authority: Issued, old: Issued, *, days: int, now: datetime, with_new_key: bool) -> Issued:
    """Return a certificate with the subject, hosts and usage of the old one, for its key or a new one."""
    key = new_key() if with_new_key else old.key
    subject, hosts = old.certificate.subject, hosts_of(old.certificate)
    purposes = _extension(old.certificate, x509.ExtendedKeyUsage)
    is_server = bool(hosts) if purposes is None else ExtendedKeyUsageOID.SERVER_AUTH in purposes
    usage = Usage.SERVER if is_server else Usage.CLIENT
    return _sign(authority, subject, key, usage=usage, hosts=hosts, days=days, now=now)


def server_hosts(hosts: Iterable[str]) -> tuple[str, ...]:
    """Return these hosts, the names of this machine and those of the loopback, each once."""
    return tuple(dict.fromkeys([*hosts, socket.gethostname(), *LOOPBACK_NAMES]))


def hosts_of(certificate: x509.Certificate) -> tuple[str, ...]:
    names = _extension(certificate, x509.SubjectAlternativeName)
    if names is None:
        return ()
    return (*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress)))


def read_certificates(pem: bytes) -> list[x509.Certificate]:
    """Return the certificates in PEM; InvalidCertificate if there is none."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise InvalidCertificate("it has no certificate in PEM") from error


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _sign(
    authority: Issued,
    subject: x509.Name,
    key: PrivateKey,
    *,
    usage: Usage,
    hosts: Sequence[str],
    days: int,
    now: datetime,
) -> Issued:
    issuer = authority.certificate
    expires = min(now + timedelta(days=days), issuer.not_valid_after_utc)
    if expires <= now:
        raise InvalidCertificate("the certificate of the CA has expired: make another CA")
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    builder = (
        _builder(subject, issuer.subject, key.public_key(), now, expires)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usage.value), critical=False)
        .add_extension(issuer_key, critical=False)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(map(_host, hosts)), critical=False)
    return Issued(builder.sign(authority.key, SHA256()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey,
    now: datetime,
    expires: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(expires)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    if not 0 < len(common_name) <= NAME_LENGTH:
        raise InvalidCertificate(f"a name has 1 to {NAME_LENGTH} characters, not {len(common_name)}")
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        pass
    try:
        return x509.DNSName(text)
    except ValueError as error:
        raise InvalidCertificate(f"{text!r} is neither a host name in ASCII nor an address") from error


def _extension(certificate: x509.Certificate, kind: type[Extension]) -> Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
