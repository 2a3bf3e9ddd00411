"""Certificates for tests, in PEM: an authority, and those to whom it gives a name."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import sha1
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

VALID: Final = timedelta(days=1)


@dataclass(frozen=True)
class Identity:
    """A certificate, and the key that belongs to it."""

    signed: x509.Certificate
    private: ec.EllipticCurvePrivateKey

    @cached_property
    def certificate(self) -> str:
        return self.signed.public_bytes(Encoding.PEM).decode()

    @cached_property
    def der(self) -> bytes:
        return self.signed.public_bytes(Encoding.DER)

    @cached_property
    def key_der(self) -> bytes:
        return self.private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())

    @cached_property
    def key(self) -> str:
        return self._key(NoEncryption())

    def encrypted_key(self, password: str) -> str:
        return self._key(BestAvailableEncryption(password.encode()))

    def _key(self, encryption: KeySerializationEncryption) -> str:
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


class Authority:
    """Signs certificates that are valid for a day; its own is what others may trust."""

    def __init__(self, name: str) -> None:
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.identity = self._sign(self._name, self._key, (), is_authority=True)

    @property
    def certificate(self) -> str:
        return self.identity.certificate

    @property
    def file_name(self) -> str:
        """Under which OpenSSL looks for it in a directory: a hash of the name, which is in small letters."""
        one_part = self._name.public_bytes()[2:]
        return f"{int.from_bytes(sha1(one_part).digest()[:4], 'little'):08x}.0"

    def certify(self, name: str, hosts: Sequence[str] = (), *, ended: timedelta | None = None) -> Identity:
        """A new key, and a certificate that it belongs to `name` at `hosts`; it has expired if it `ended`."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._sign(_name(name), key, hosts, is_authority=False, ended=ended)

    def _sign(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        hosts: Sequence[str],
        *,
        is_authority: bool,
        ended: timedelta | None = None,
    ) -> Identity:
        now = datetime.now(UTC) if ended is None else datetime.now(UTC) - VALID - ended
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - VALID)
            .not_valid_after(now + VALID)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if is_authority:
            builder = builder.add_extension(_MAY_SIGN, critical=True)
        if hosts:
            names = x509.SubjectAlternativeName([_host(each) for each in hosts])
            builder = builder.add_extension(names, critical=False)
        return Identity(builder.sign(self._key, SHA256()), key)


# Python verifies strictly since 3.13, and OpenSSL since 3.6 then refuses an authority without it.
_MAY_SIGN: Final = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
