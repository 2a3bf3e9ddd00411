"""TLS by Kafka's settings, and sentences for what OpenSSL reports."""

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.client.errors import ClientError, Refused, WrongSetting
from headrace.security.ciphers import ANY_SUITE, CipherSuites
from headrace.security.pem import InvalidTlsSetting, Source
from headrace.security.stores import Keystore, Truststore, check_type
from headrace.security.tls import VERSIONS, parse_versions

_CA: Final = ("ssl.ca.location", "ssl.ca.pem", "ssl.truststore.certificates", "ssl.truststore.location")
_CERTIFICATE: Final = (
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.location",
)
_KEY: Final = ("ssl.key.location", "ssl.key.pem", "ssl.keystore.key", "ssl.keystore.location")

_PROBE: Final = ("ssl.ca.location", "probe")  # librdkafka's way to say: the system's certificates
_NAMES_DIFFER: Final = {62, 64}  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and _IP_ADDRESS_MISMATCH
_NO_ISSUER: Final = {18, 19, 20, 21}  # self-signed, or signed by an unknown issuer
_NOT_TLS: Final = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"}
_NOTHING_IN_COMMON: Final = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "HANDSHAKE_FAILURE", "INSUFFICIENT")


WANTS_OURS: Final = (
    "wants a certificate of ours: name it with ssl.certificate.location and ssl.key.location, "
    "or with ssl.keystore.location"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The certificates that we trust, and our own if the broker asks for one."""

    truststore: Truststore | None = None  # None: the system's
    revoked: str | None = None  # a file of revoked certificates
    suites: CipherSuites = ANY_SUITE
    keystore: Keystore | None = None
    checks_host: bool = True
    checks_certificate: bool = True
    versions: tuple[ssl.TLSVersion, ...] = tuple(VERSIONS.values())

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "Tls":
        """Read a client's settings; WrongSetting names the one that is wrong."""
        try:
            check_type(settings, "ssl.truststore")
            check_type(settings, "ssl.keystore")
            suites = CipherSuites.parse(settings.get("ssl.cipher.suites"))
            versions = suites.versions(parse_versions(settings.get("ssl.enabled.protocols")))
        except InvalidTlsSetting as error:
            raise WrongSetting(error.setting, error.why) from error
        trusted = _first(settings, _CA)
        truststore = None
        if trusted is not None and (trusted.setting, trusted.value) != _PROBE:
            truststore = Truststore(source=trusted, password=settings.get("ssl.truststore.password"))
        certificate, key = _first(settings, _CERTIFICATE), _first(settings, _KEY)
        keystore = None
        if certificate is not None:
            keystore = Keystore(
                certificate=certificate,
                key=key or certificate,
                password=settings.get("ssl.keystore.password"),
                key_password=settings.get("ssl.key.password"),
            )
        elif key is not None:
            raise WrongSetting(key.setting, "is set, and the certificate of that key is missing")
        return cls(
            truststore=truststore,
            revoked=settings.get("ssl.crl.location"),
            suites=suites,
            keystore=keystore,
            checks_host=_one_of(
                settings, "ssl.endpoint.identification.algorithm", {"https": True, "none": False, "": False}
            ),
            checks_certificate=_one_of(
                settings, "enable.ssl.certificate.verification", {"true": True, "false": False}
            ),
            versions=versions,
        )

    def context(self) -> ssl.SSLContext:
        """Return a new context, with the files as they are now; ClientError if one of them is unusable."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version, context.maximum_version = min(self.versions), max(self.versions)
        context.check_hostname = self.checks_host and self.checks_certificate
        self.suites.choose_in(context)
        try:
            if not self.checks_certificate:
                context.verify_mode = ssl.CERT_NONE
            elif self.truststore is None:
                context.load_default_certs()
            else:
                self.truststore.load_into(context)
            if self.keystore is not None:
                self.keystore.load_into(context)
        except InvalidTlsSetting as error:
            raise ClientError(str(error)) from error
        if self.revoked is not None:
            try:
                context.load_verify_locations(self.revoked)
            except (OSError, ssl.SSLError) as error:
                raise ClientError(
                    f"ssl.crl.location is {self.revoked}, which cannot be read: {error}"
                ) from error
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        return context

    def refusal(self, error: OSError, address: str) -> Refused | None:
        """Return the error as Refused if a retry would fail in the same way, else None."""
        if isinstance(error, ssl.SSLCertVerificationError):
            advice = ""
            if error.verify_code in _NAMES_DIFFER:
                advice = "; connect by a name that it is for"
            elif error.verify_code in _NO_ISSUER:
                advice = "; name who signed it with ssl.ca.location or ssl.truststore.location"
            said = error.verify_message.rstrip(".")
            return Refused(f"the certificate of {address} cannot be trusted: {said}{advice}")
        reason = getattr(error, "reason", None) if isinstance(error, ssl.SSLError) else None
        if not reason:
            return None
        said = reason.rpartition("ALERT_")[2].replace("_", " ").lower()
        if reason in _NOT_TLS:
            return Refused(f"{address} does not speak TLS: is security.protocol right?")
        if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
            if self.keystore is None:
                return Refused(f"{address} {WANTS_OURS} ({said})")
            setting = self.keystore.certificate.setting
            return Refused(f"{address} does not trust our certificate, {setting} ({said})")
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


def _first(settings: Mapping[str, str], names: tuple[str, ...]) -> Source | None:
    return next((Source(name, settings[name]) for name in names if settings.get(name)), None)


def _one_of(settings: Mapping[str, str], name: str, meaning: Mapping[str, bool]) -> bool:
    value = settings.get(name, next(iter(meaning))).strip().lower()
    if value not in meaning:
        raise WrongSetting(name, f"is {value!r}: choose {' or '.join(filter(None, meaning))}")
    return meaning[value]
