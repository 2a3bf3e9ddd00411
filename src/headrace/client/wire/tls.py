"""TLS around a connection, as Kafka's settings want it, and what is wrong with it as a sentence."""

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
    """Whom to trust, and who we are if the broker wants to know."""

    ca: Pem | None = None  # none: the system's
    certificate: Pem | None = None
    key: Pem | None = None
    key_password: str = field(default="", repr=False)
    checks_host: bool = True
    checks_certificate: bool = True
    versions: tuple[ssl.TLSVersion, ...] = tuple(_VERSIONS.values())

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "Tls":
        """From a client's settings; ClientError begins with the one that cannot be."""
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
        """Made anew for every connection: files may have been renewed. ClientError if one cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version, context.maximum_version = min(self.versions), max(self.versions)
        context.check_hostname = self.checks_host and self.checks_certificate
        if not self.checks_certificate:
            context.verify_mode = ssl.CERT_NONE
        elif self.ca is None:
            context.load_default_certs()
        else:
            _trust(context, self.ca)
        if self.certificate is not None and self.key is not None:
            _introduce(context, self.certificate, self.key, self.key_password)
        return context

    def refusal(self, error: OSError, address: str) -> Refused | None:
        """What trying again will not change, as a sentence; None if it may pass."""
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
            return Refused(f"{address} and we have no version and cipher of TLS in common ({said})")
        return None


def speaks_tls(size: int) -> bool:
    """Whether this is no size, but the beginning of an alert or a handshake of TLS."""
    return size >> 16 in {0x1503, 0x1603}


def wrap(plain: socket.socket, context: ssl.SSLContext, host: str) -> socket.socket:
    """The connection with TLS around it; closed if that fails."""
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


def _introduce(context: ssl.SSLContext, certificate: Pem, key: Pem, password: str) -> None:
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
