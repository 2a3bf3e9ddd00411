"""Keystores and truststores of a Kafka installation: PEM and PKCS12.

The content of a file decides its type, as in Java, where a file named .jks is PKCS12 by default since Java 9.
So `ssl.keystore.type` and `ssl.truststore.type` only have to name a type that Java reads PKCS12 or PEM by; a
file in the format that keytool wrote before Java 9 is refused with the command that converts it.

Differences from Java: of several private keys in a keystore the first is used, and in PKCS12 the password of
the store is also that of the key, which is the only case that keytool creates.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from headrace.security.certificate_fields import INTEGER, SEQUENCE, Malformed, read, subject_name
from headrace.security.pem import CERTIFICATE, PRIVATE_KEY, InvalidTlsSetting, Source, as_file, pem_of
from headrace.system.extras import CRYPTOGRAPHY, is_installed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
TYPES: Final = (PEM, PKCS12, "JKS")  # Java reads PKCS12 by the name JKS, too
_OTHER_STORES: Final = {
    bytes.fromhex("feedfeed"): "JKS",
    bytes.fromhex("cececece"): "JCEKS",
    bytes.fromhex("00000001 00000014"): "BKS",
    bytes.fromhex("00000002 00000014"): "BKS",
}
"""Formats of stores that are not supported, by their first bytes."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate chain and its private key in PEM; the password is needed if the key is encrypted."""

    chain: str
    key: str = field(repr=False)
    key_password: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keystore:
    """Our certificate and key: a file with both, two files, or PEM in two settings."""

    certificate: Source
    key: Source
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, settings: Mapping[str, str | None]) -> "Keystore | None":
        """Read `ssl.keystore.*` and `ssl.key.password`; None if there is no keystore."""
        check_type(settings, "ssl.keystore")
        location = _source(settings, "ssl.keystore.location")
        chain = _source(settings, "ssl.keystore.certificate.chain")
        key = _source(settings, "ssl.keystore.key")
        if location is not None and (key is not None or chain is not None):
            raise InvalidTlsSetting(
                "ssl.keystore.location",
                "cannot be set with ssl.keystore.key or ssl.keystore.certificate.chain: remove one of them",
            )
        if (key is None) != (chain is None):
            given, missing = ("certificate.chain", "key") if key is None else ("key", "certificate.chain")
            raise InvalidTlsSetting(f"ssl.keystore.{missing}", f"is missing: ssl.keystore.{given} needs it")
        certificate = location or chain
        if certificate is None:
            return None
        return cls(
            certificate=certificate,
            key=location or key or certificate,
            password=settings.get("ssl.keystore.password"),
            key_password=settings.get("ssl.key.password"),
        )

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(each.path for each in (self.certificate, self.key) if each.path is not None)
        )

    def identity(self) -> Identity:
        """Read the certificate chain and the key; InvalidTlsSetting if that is impossible."""
        data = self.certificate.read()
        kind = _type_of(self.certificate, data)
        if kind == PEM:
            key_data = data if self.key == self.certificate else self.key.read()
            return Identity(
                self.certificate.blocks_in(data, CERTIFICATE),
                self.key.blocks_in(key_data, PRIVATE_KEY),
                self.key_password,
            )
        if self.password is None:
            raise InvalidTlsSetting(
                "ssl.keystore.password", f"is missing: {self.certificate.value} is a {kind} keystore"
            )
        store = _load_pkcs12(self.certificate, data, self.password, "ssl.keystore.password")
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat  # noqa: PLC0415  takes 50 ms

        if store.key is None or store.cert is None:
            raise self.certificate.invalid("which has no private key: is it a truststore?")
        # The chain leads from the leaf to its root: a PKCS12 file does not order its certificates.
        chain, rest = [store.cert.certificate], [each.certificate for each in store.additional_certs]
        while chain[-1].issuer != chain[-1].subject:
            issuer = next((each for each in rest if each.subject == chain[-1].issuer), None)
            if issuer is None:
                break
            chain.append(issuer)
            rest.remove(issuer)
        key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return Identity("".join(each.public_bytes(Encoding.PEM).decode() for each in chain), key, None)

    def load_into(self, context: ssl.SSLContext) -> str:
        """Have `context` present this certificate; InvalidTlsSetting if the keystore is unusable.

        Return the certificate chain in PEM.
        """
        identity = self.identity()
        with as_file(identity.chain) as chain_path, as_file(identity.key) as key_path:
            try:
                # Without a password OpenSSL would ask for one, on the terminal.
                context.load_cert_chain(chain_path, key_path, identity.key_password or "")
            except (ssl.SSLError, ValueError) as error:  # ValueError: the password is too long for OpenSSL
                raise self._unusable(error, identity) from error
        return identity.chain

    def _unusable(self, error: Exception, identity: Identity) -> InvalidTlsSetting:
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            if self.key == self.certificate:
                why = f"is {self.key.path}, whose private key does not belong to its first certificate"
                return InvalidTlsSetting(self.key.setting, why)
            return InvalidTlsSetting(self.key.setting, f"is not the key of {self.certificate.setting}")
        if "ENCRYPTED" in identity.key:
            said = "wrong" if self.key_password else "missing"
            return InvalidTlsSetting("ssl.key.password", f"is {said}: {self.key.setting} is encrypted")
        if getattr(error, "reason", None) in {"EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK"}:
            return InvalidTlsSetting(
                self.certificate.setting, "has a key or a signature that is too weak: make a new certificate"
            )
        if self.key == self.certificate:
            return InvalidTlsSetting(
                self.key.setting, f"is damaged: restore {self.key.path}, or make it again"
            )
        return InvalidTlsSetting(self.key.setting, f"or {self.certificate.setting} is damaged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truststore:
    """The certificates that we trust: a file, PEM in a setting, or a directory in OpenSSL's layout."""

    source: Source
    password: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, settings: Mapping[str, str | None]) -> "Truststore | None":
        """Read `ssl.truststore.*`; None if there is no truststore."""
        check_type(settings, "ssl.truststore")
        location = _source(settings, "ssl.truststore.location")
        inline = _source(settings, "ssl.truststore.certificates")
        if location is not None and inline is not None:
            raise InvalidTlsSetting(
                "ssl.truststore.location",
                "cannot be set with ssl.truststore.certificates: remove one of them",
            )
        source = location or inline
        if source is None:
            return None
        return cls(source=source, password=settings.get("ssl.truststore.password"))

    @property
    def paths(self) -> tuple[str, ...]:
        return () if self.source.path is None else (self.source.path,)

    def certificates(self) -> str:
        """Read the trusted certificates, in PEM; InvalidTlsSetting if there is none.

        In a PKCS12 file with private keys, Java trusts the certificates of these keys, and not the
        certificates of those who signed them, unless they are entries of their own.
        """
        data = self.source.read()
        if _type_of(self.source, data) == PEM:
            return self.source.blocks_in(data, CERTIFICATE)
        from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415  takes 50 ms

        store = _load_pkcs12(self.source, data, self.password, "ssl.truststore.password")
        trusted = [] if store.cert is None else [store.cert.certificate.public_bytes(Encoding.DER)]
        for each in store.additional_certs:
            der = each.certificate.public_bytes(Encoding.DER)
            # Java names an issuer that it stores along with a private key after its subject, and other tools
            # do not name it at all; a trusted certificate has an alias.
            if store.key is None or (each.friendly_name and each.friendly_name != subject_name(der).encode()):
                trusted.append(der)
        if not trusted:
            raise self.source.invalid("which has no trusted certificate: add one by `keytool -importcert`")
        return pem_of(CERTIFICATE, trusted)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Have `context` trust these certificates; InvalidTlsSetting if the truststore is unusable."""
        try:
            if self.source.is_directory:
                context.load_verify_locations(capath=self.source.value)
            else:
                context.load_verify_locations(cadata=self.certificates())
        except ssl.SSLError as error:
            raise InvalidTlsSetting(self.source.setting, "holds something that is no certificate") from error
        # As in Java, every certificate in a truststore is trusted, not only those that signed themselves.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def check_type(settings: Mapping[str, str | None], store: str) -> None:
    """Raise InvalidTlsSetting if `ssl.keystore.type` or `ssl.truststore.type` is not supported."""
    kind = (settings.get(f"{store}.type") or PKCS12).strip()
    if kind.upper() not in TYPES:
        raise InvalidTlsSetting(f"{store}.type", f"is {kind}: supported are {', '.join(TYPES)}")


def _source(settings: Mapping[str, str | None], name: str) -> Source | None:
    value = settings.get(name)
    return Source(name, value) if value else None


def _type_of(source: Source, data: bytes) -> str:
    """Return PEM or PKCS12; InvalidTlsSetting if the content is neither."""
    if source.path is None or b"-----BEGIN " in data:
        return PEM
    if not data:
        raise source.invalid("which is empty")
    for start, name in _OTHER_STORES.items():
        if data.startswith(start):
            convert = f"keytool -importkeystore -srckeystore {source.path} -srcstoretype {name}"
            raise source.invalid(
                f"a {name} store, not supported: convert it with `{convert} "
                f"-destkeystore {source.path}.p12 -deststoretype PKCS12`"
            )
    if data[0] == SEQUENCE:
        try:  # a certificate begins with another SEQUENCE, and PKCS12 with a version
            is_certificate = read(read(memoryview(data)).content).tag == SEQUENCE
        except Malformed:
            is_certificate = False
        if is_certificate:
            raise source.invalid("a certificate in DER: convert it with `openssl x509 -inform DER`")
        return PKCS12
    if data.isascii():
        return PEM  # without a block: reading its blocks says what is missing
    raise source.invalid("which is neither PEM nor PKCS12")


def _load_pkcs12(
    source: Source, data: bytes, password: str | None, password_setting: str
) -> "PKCS12KeyAndCertificates":
    if not is_installed(CRYPTOGRAPHY):
        raise source.invalid(
            f"a PKCS12 store, which needs {CRYPTOGRAPHY.brings}: {CRYPTOGRAPHY.command}, or convert it to PEM"
        )
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  takes 50 ms
    from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415  as above

    if (why := _why_cut_off(data)) is not None:
        raise source.invalid(f"a damaged PKCS12 store ({why}): restore it")
    try:
        return pkcs12.load_pkcs12(
            data, None if password is None else password.encode("utf-8", "surrogatepass")
        )
    except UnsupportedAlgorithm as error:
        raise source.invalid("a PKCS12 store with an unsupported cipher: make it again") from error
    except ValueError:
        if password is None:
            raise InvalidTlsSetting(
                password_setting, f"is missing: {source.path} is an encrypted PKCS12 store"
            ) from None
        raise InvalidTlsSetting(
            password_setting, f"is wrong, or {source.path}, a PKCS12 store, is damaged"
        ) from None


def _why_cut_off(data: bytes) -> str | None:
    """Return what is wrong with the frame of a PKCS12 file, whose digest only a password can verify."""
    if data[1:2] == b"\x80":
        return None  # a length that is only known at its end: BER, which some tools write
    try:
        store = read(memoryview(data))
        version = read(store.content)
    except Malformed as error:
        return str(error)
    if version.tag != INTEGER or bytes(version.content) != b"\x03":
        return "it does not begin with version 3"
    if len(store.encoded) != len(data):
        return f"{len(data) - len(store.encoded):,} bytes follow its end"
    return None
