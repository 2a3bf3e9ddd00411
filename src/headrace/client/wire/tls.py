"""TLS by Kafka's settings, and sentences for what OpenSSL reports."""

import os
import re
import socket
import ssl
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from headrace.client.errors import ClientError, Refused, WrongSetting

CERTIFICATE: Final = "CERTIFICATE"
PRIVATE_KEY: Final = "PRIVATE KEY"
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE: Final = 64


@dataclass(frozen=True, slots=True)
class Pem:
    """The value of a setting: PEM, or the path of a file if the setting's name ends in .location."""

    setting: str
    value: str = field(repr=False)  # may be a key

    @property
    def is_directory(self) -> bool:
        return self.setting.endswith(".location") and Path(self.value).is_dir()

    def blocks(self, kind: str) -> str:
        """Return all blocks of one kind, certificates or keys; ClientError if there is none."""
        found = [
            _block(each[1], each[2])
            for each in _BLOCK.finditer(self._text())
            if each[1] == kind or each[1].endswith(f" {kind}")
        ]
        if not found:
            raise ClientError(f"{self.setting} holds no {kind.lower()} in PEM")
        return "".join(found)

    def _text(self) -> str:
        if not self.setting.endswith(".location"):
            return self.value
        try:
            return Path(self.value).read_text("utf-8", errors="replace")
        except FileNotFoundError:
            raise ClientError(f"{self.setting} is {self.value}, where there is no file") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ClientError(f"{self.setting} is {self.value}, which cannot be read: {why}") from error


def _block(kind: str, body: str) -> str:
    """Return a block in lines, as OpenSSL expects it: a setting may have lost its line ends."""
    if ":" not in body:  # else it has headers, which are lines
        body = "\n" + "\n".join(textwrap.wrap("".join(body.split()), _LINE)) + "\n"
    return f"-----BEGIN {kind}-----{body}-----END {kind}-----\n"


@contextmanager
def as_file(text: str) -> Iterator[str]:
    """Yield the path of a file with `text`: OpenSSL reads keys from files only.

    On Linux the file is in memory; elsewhere only this user may open it.
    """
    file: IO[bytes]
    if sys.platform == "linux":
        file = os.fdopen(os.memfd_create("pem"), "wb")
        path = f"/proc/self/fd/{file.fileno()}"
    else:
        file = tempfile.NamedTemporaryFile()  # noqa: SIM115  closed below
        path = file.name
    with file:
        file.write(text.encode())
        file.flush()
        yield path


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
_NO_ISSUER: Final = {18, 19, 20, 21}  # self-signed, or signed by an unknown issuer
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
        """Read a client's settings; WrongSetting names the one that is wrong."""
        for store in ("ssl.truststore", "ssl.keystore"):
            kind = settings.get(f"{store}.type", "JKS" if f"{store}.location" in settings else "PEM").strip()
            if kind.upper() != "PEM":
                raise WrongSetting(
                    f"{store}.type",
                    f"is {kind}: only PEM can be read without Java; say {store}.type=PEM, or "
                    "name PEM files with ssl.ca.location, ssl.certificate.location and ssl.key.location",
                )
        certificate, key = _first(settings, _CERTIFICATE), _first(settings, _KEY)
        if certificate is None and key is not None:
            raise WrongSetting(key.setting, "is set, and the certificate of that key is missing")
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
        raise WrongSetting(name, f"is {value!r}: choose {' or '.join(filter(None, meaning))}")
    return meaning[value]


def _versions(names: str | None) -> tuple[ssl.TLSVersion, ...]:
    if names is None:
        return tuple(_VERSIONS.values())
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    if not chosen or not all(name.upper() in _VERSIONS for name in chosen):
        raise WrongSetting("ssl.enabled.protocols", f"is {names!r}: choose TLSv1.2, TLSv1.3 or both")
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
