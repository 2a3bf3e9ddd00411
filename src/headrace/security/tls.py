"""TLS of a broker by Kafka's settings: contexts for its listeners and for its connections to other brokers.

TLS 1.2 and 1.3 only, without compression and renegotiation. A broker stores no sessions: it issues no tickets
for TLS 1.3, and a client of TLS 1.2 keeps its ticket itself. A ticket is worthless after a reload.
"""

import contextlib
import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from headrace.security.ciphers import ANY_SUITE, CipherSuites
from headrace.security.pem import InvalidTlsSetting
from headrace.security.stores import Keystore, Truststore
from headrace.system.tls_alerts import AlertingObject

VERSIONS: Final = {"TLSV1.2": ssl.TLSVersion.TLSv1_2, "TLSV1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_CHECKS_HOST: Final = {"https": True, "": False, "none": False}
_OPTIONS: Final = ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
T = TypeVar("T")
_logger: Final = logging.getLogger(__name__)

FileState = tuple[int, int, int] | None  # modification time in ns, size and inode; None: there is no file


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The TLS settings of one listener, or of a broker's own connections."""

    keystore: Keystore | None = None
    truststore: Truststore | None = None  # None: the system's certificates
    client_auth: ssl.VerifyMode = ssl.CERT_NONE
    versions: tuple[ssl.TLSVersion, ...] = tuple(VERSIONS.values())
    client_versions: tuple[ssl.TLSVersion, ...] = tuple(VERSIONS.values())
    suites: CipherSuites = ANY_SUITE
    checks_host: bool = True

    @classmethod
    def of(cls, settings: Mapping[str, str | None]) -> "TlsSettings":
        """Read the settings, without their files; InvalidTlsSetting names the one that is invalid."""
        suites = CipherSuites.parse(settings.get("ssl.cipher.suites"))
        versions = suites.versions(parse_versions(settings.get("ssl.enabled.protocols")))
        return cls(
            keystore=Keystore.of(settings),
            truststore=Truststore.of(settings),
            client_auth=_choice(settings, "ssl.client.auth", _CLIENT_AUTH),
            versions=versions,
            client_versions=_client_versions(versions, settings.get("ssl.protocol")),
            suites=suites,
            checks_host=_choice(settings, "ssl.endpoint.identification.algorithm", _CHECKS_HOST),
        )

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that a context is made of."""
        stores = (self.keystore, self.truststore)
        return tuple(dict.fromkeys(path for store in stores if store is not None for path in store.paths))

    def server_context(self) -> "TlsContext":
        """Return a new context for a listener; InvalidTlsSetting if a file is missing or unusable."""
        if self.keystore is None:
            raise InvalidTlsSetting(
                "ssl.keystore.location", "is missing: a listener with TLS needs a certificate and its key"
            )
        if self.client_auth != ssl.CERT_NONE and self.truststore is None:
            raise InvalidTlsSetting(
                "ssl.truststore.location",
                "is missing: ssl.client.auth needs the certificates of those who sign clients' certificates",
            )
        context = self._context(ssl.PROTOCOL_TLS_SERVER, self.versions)
        context.num_tickets = 0
        context.sslobject_class = AlertingObject
        context.verify_mode = self.client_auth
        if self.truststore is not None and self.client_auth != ssl.CERT_NONE:
            self.truststore.load_into(context)
        return context

    def client_context(self) -> "TlsContext":
        """Return a new context for connections to other brokers; InvalidTlsSetting if a file is unusable."""
        context = self._context(ssl.PROTOCOL_TLS_CLIENT, self.client_versions)
        context.check_hostname = self.checks_host
        if self.truststore is None:
            context.load_default_certs()
        else:
            self.truststore.load_into(context)
        return context

    def _context(self, protocol: int, versions: tuple[ssl.TLSVersion, ...]) -> "TlsContext":
        context = TlsContext(protocol)
        context.minimum_version, context.maximum_version = min(versions), max(versions)
        context.options |= _OPTIONS
        self.suites.choose_in(context)
        if self.keystore is not None:
            context.chain = self.keystore.load_into(context)
        return context


class TlsContext(ssl.SSLContext):
    """A context that can say which certificates it presents."""

    chain: str = ""  # in PEM; empty: none


class ReloadingContext(ssl.SSLContext):
    """A context for asyncio's servers and connections whose files may change while it is in use.

    The context of a listening server cannot be replaced, but asyncio and uvloop call its `wrap_bio` for each
    new connection. This class passes the call to the context that was made of the newest usable files, which
    has the new certificate and the new truststore, whether or not the client sends a server name (SNI).
    Existing connections keep the context that they began with.

    Only `current` has the settings; those of the object itself, such as verify_mode, have no effect.
    """

    current: TlsContext
    _make: Callable[[], TlsContext]
    _paths: tuple[str, ...]
    _loaded: dict[str, FileState]
    _warned: str | None

    def __new__(cls, make: Callable[[], TlsContext], paths: tuple[str, ...]) -> Self:
        """Make the first context; InvalidTlsSetting if a file is unusable."""
        states = _states(paths)
        current = make()
        server = current.protocol == ssl.PROTOCOL_TLS_SERVER
        self = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        self.current, self._make, self._paths = current, make, paths
        self._loaded, self._warned = states, None
        return self

    @classmethod
    def for_listener(cls, settings: TlsSettings) -> "ReloadingContext":
        return cls(settings.server_context, settings.paths)

    @classmethod
    def for_connections(cls, settings: TlsSettings) -> "ReloadingContext":
        return cls(settings.client_context, settings.paths)

    def refresh(self) -> bool:
        """Make a new context if the files have changed; return whether there is a new one.

        If the new files are unusable, because they are half-written for example, the context stays as it
        is, with one warning, until they are usable. This method reads files: call it in a thread.
        """
        states = _states(self._paths)  # before they are read: a later change is then found the next time
        if states == self._loaded:
            return False
        try:
            context = self._make()
        except InvalidTlsSetting as error:
            if self._warned != str(error):
                _logger.warning("TLS goes on with the files that were loaded before: %s", error)
                self._warned = str(error)
            return False
        self.current, self._loaded, self._warned = context, states, None
        _logger.info("TLS uses the new content of %s", ", ".join(self._paths))
        return True

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any
    ) -> ssl.SSLObject:
        made = self.current.wrap_bio(incoming, outgoing, *args, **kwargs)
        if isinstance(made, AlertingObject):
            made.alert_by(outgoing)
        return made

    def wrap_socket(self, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        return self.current.wrap_socket(*args, **kwargs)


def parse_versions(names: str | None) -> tuple[ssl.TLSVersion, ...]:
    """Return the versions in `ssl.enabled.protocols`, oldest first; None means all that are supported."""
    if names is None:
        return tuple(VERSIONS.values())
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    if not chosen or not all(name.upper() in VERSIONS for name in chosen):
        raise InvalidTlsSetting("ssl.enabled.protocols", f"is {names!r}: choose TLSv1.2, TLSv1.3 or both")
    return tuple(sorted({VERSIONS[name.upper()] for name in chosen}))


def _client_versions(
    versions: tuple[ssl.TLSVersion, ...], protocol: str | None
) -> tuple[ssl.TLSVersion, ...]:
    """Return the versions for outgoing connections: with ssl.protocol=TLSv1.2, Kafka's do not use TLS 1.3."""
    newest = {"TLS": ssl.TLSVersion.TLSv1_3} | VERSIONS
    name = (protocol or "TLS").strip().upper()
    if name not in newest:
        raise InvalidTlsSetting("ssl.protocol", f"is {protocol!r}: choose TLSv1.3, TLSv1.2 or TLS")
    left = tuple(version for version in versions if version <= newest[name])
    if not left:
        raise InvalidTlsSetting("ssl.protocol", f"is {protocol!r}, older than all of ssl.enabled.protocols")
    return left


def _choice(settings: Mapping[str, str | None], name: str, meaning: Mapping[str, T]) -> T:
    value = settings.get(name)
    found = next(iter(meaning)) if value is None else value.strip().lower()
    if found not in meaning:
        raise InvalidTlsSetting(name, f"is {value!r}: choose {' or '.join(filter(None, meaning))}")
    return meaning[found]


def _states(paths: tuple[str, ...]) -> dict[str, FileState]:
    states: dict[str, FileState] = dict.fromkeys(paths)
    for path in paths:
        with contextlib.suppress(OSError):
            stat = Path(path).stat()
            states[path] = stat.st_mtime_ns, stat.st_size, stat.st_ino
    return states
