"""TLS by Kafka's settings, and sentences for what OpenSSL reports."""

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from headrace.client.errors import ClientError, Refused
from headrace.client.wire.pem import CERTIFICATE, PRIVATE_KEY, Pem, as_file

_CA: Final = (
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
)
_CERTIFICATE: Final = (
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.location",
)
_KEY: Final = ("ssl.key.location", "ssl.key.pem", "ssl.keystore.key", "ssl.keystore.location")
_VERSIONS: Final = {"TLSV1.2": ssl.TLSVersion.TLSv1_2, "TLSV1.3": ssl.TLSVersion.TLSv1_3}

_NAMES_DIFFER: Final = {62, 64}  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and _IP_ADDRESS_MISMATCH
_NO_ISSUER: Final = {18, 19, 20, 21}  # signed by itself, or by somebody who is not known
_NOT_TLS: Final = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"}
_NOTHING_IN_COMMON: Final = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "HANDSHAKE_FAILURE", "INSUFFICIENT")


WANTS_OURS: Final = (
    "wants a certificate of ours: name it with ssl.certificate.location and ssl.key.location, "
    "or with ssl.keystore.type=PEM and ssl.keystore.location"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The certificates that we trust, and our own if the broker asks for one."""

    ca: Pem | None = None  # None: the system's
    revoked: str | None = None  # a file of revoked certificates
    ciphers: str | None = None  # of TLS 1.2, by OpenSSL's names; None: OpenSSL's choice
    certificate: Pem | None = None
    key: Pem | None = None
    key_password: str = field(default="", repr=False)
    checks_host: bool = True
    checks_certificate: bool = True
    versions: tuple[ssl.TLSVersion, ...] = tuple(_VERSIONS.values())

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "Tls":
        """Read a client's settings; ClientError begins with the name of the setting that is wrong."""
        for store in ("ssl.truststore", "ssl.keystore"):
            kind = settings.get(f"{store}.type", "JKS" if f"{store}.location" in settings else "PEM").strip()
            if kind.upper() != "PEM":
                raise ClientError(
                    f"{store}.type is {kind}: only PEM can be read without Java; say {store}.type=PEM, or "
                    "name PEM files with ssl.ca.location, ssl.certificate.location and ssl.key.location"
                )
        certificate, key = _first(settings, _CERTIFICATE), _first(settings, _KEY)
        if certificate is None and key is not None:
            raise ClientError(f"{key.setting} is there, and the certificate of that key is missing")
        return cls(
            ca=_first(settings, _CA),
            revoked=settings.get("ssl.crl.location"),
            ciphers=settings.get("ssl.cipher.suites"),
            certificate=certificate,
            key=key or certificate,
            key_password=settings.get("ssl.key.password", ""),
            checks_host=_one_of(
                settings, "ssl.endpoint.identification.algorithm", {"https": True, "none": False, "": False}
            ),
            checks_certificate=_one_of(
                settings, "enable.ssl.certificate.verification", {"true": True, "false": False}
            ),
            versions=_versions(settings.get("ssl.enabled.protocols")),
        )

    def context(self) -> ssl.SSLContext:
        """Return a new context, with the files as they are now; ClientError if one of them is unusable."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version, context.maximum_version = min(self.versions), max(self.versions)
        context.check_hostname = self.checks_host and self.checks_certificate
        if not self.checks_certificate:
            context.verify_mode = ssl.CERT_NONE
        elif self.ca is None:
            context.load_default_certs()
        else:
            _trust(context, self.ca)
        if self.ciphers is not None:
            _choose(context, self.ciphers)
        if self.revoked is not None:
            _check_revoked(context, self.revoked)
        if self.certificate is not None and self.key is not None:
            _load_own(context, self.certificate, self.key, self.key_password)
        return context

    def refusal(self, error: OSError, address: str) -> Refused | None:
        """Return the error as Refused if a retry would fail in the same way, else None."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return Refused(_untrusted(error, address))
        reason = getattr(error, "reason", None) if isinstance(error, ssl.SSLError) else None
        if not reason:
            return None
        said = reason.rpartition("ALERT_")[2].replace("_", " ").lower()
        if reason in _NOT_TLS:
            return Refused(f"{address} does not speak TLS: is security.protocol right?")
        if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
            if self.certificate is None:
                return Refused(f"{address} {WANTS_OURS} ({said})")
            return Refused(f"{address} does not trust our certificate, {self.certificate.setting} ({said})")
        if any(each in reason for each in _NOTHING_IN_COMMON):
            return Refused(f"{address} supports no TLS version and cipher of ours ({said})")
        return None


def speaks_tls(size: int) -> bool:
    """Whether the size of a response is in fact the start of a TLS alert or handshake."""
    return size >> 16 in {0x1503, 0x1603}


def wrap(plain: socket.socket, context: ssl.SSLContext, host: str) -> socket.socket:
    """Return the socket with TLS around it; it is closed if that fails."""
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def _first(settings: Mapping[str, str], names: tuple[str, ...]) -> Pem | None:
    return next((Pem(name, settings[name]) for name in names if settings.get(name)), None)


def _one_of(settings: Mapping[str, str], name: str, meaning: Mapping[str, bool]) -> bool:
    value = settings.get(name, next(iter(meaning))).strip().lower()
    if value not in meaning:
        raise ClientError(f"{name} is {value!r}: choose {' or '.join(filter(None, meaning))}")
    return meaning[value]


def _versions(names: str | None) -> tuple[ssl.TLSVersion, ...]:
    if names is None:
        return tuple(_VERSIONS.values())
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    if not chosen or not all(name.upper() in _VERSIONS for name in chosen):
        raise ClientError(f"ssl.enabled.protocols is {names!r}: choose TLSv1.2, TLSv1.3 or both")
    return tuple(sorted({_VERSIONS[name.upper()] for name in chosen}))


def _trust(context: ssl.SSLContext, ca: Pem) -> None:
    try:
        if ca.is_directory:
            context.load_verify_locations(capath=ca.value)
        else:
            context.load_verify_locations(cadata=ca.blocks(CERTIFICATE))
    except ssl.SSLError as error:
        raise ClientError(f"{ca.setting} holds something that is no certificate") from error


def _choose(context: ssl.SSLContext, ciphers: str) -> None:
    try:
        context.set_ciphers(ciphers)
    except ssl.SSLError as error:
        raise ClientError(
            f"ssl.cipher.suites is {ciphers!r}: expected OpenSSL's names, such as ECDHE-RSA-AES256-GCM-SHA384"
        ) from error


def _check_revoked(context: ssl.SSLContext, path: str) -> None:
    try:
        context.load_verify_locations(path)
    except (OSError, ssl.SSLError) as error:
        raise ClientError(f"ssl.crl.location is {path}, which cannot be read: {error}") from error
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load_own(context: ssl.SSLContext, certificate: Pem, key: Pem, password: str) -> None:
    key_text = key.blocks(PRIVATE_KEY)
    with as_file(certificate.blocks(CERTIFICATE)) as chain_path, as_file(key_text) as key_path:
        try:
            # Without a password OpenSSL would ask for one, on the terminal.
            context.load_cert_chain(chain_path, key_path, password)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise ClientError(f"{key.setting} is not the key of {certificate.setting}") from error
            if "ENCRYPTED" in key_text:
                said = "wrong" if password else "missing"
                raise ClientError(f"ssl.key.password is {said}: {key.setting} is encrypted") from error
            raise ClientError(f"{key.setting} or {certificate.setting} is damaged") from error


def _untrusted(error: ssl.SSLCertVerificationError, address: str) -> str:
    said = error.verify_message.rstrip(".")
    what = f"the certificate of {address} cannot be trusted: {said}"
    if error.verify_code in _NAMES_DIFFER:
        return f"{what}; connect by a name that it is for"
    if error.verify_code in _NO_ISSUER:
        return f"{what}; name who signed it with ssl.ca.location, or ssl.truststore.type=PEM and its location"
    return what
