"""How a session authenticates to ZooKeeper: TLS, SASL DIGEST-MD5 or the scheme `digest`, in kazoo's client.

kazoo has TLS from PEM files only, and SASL only with a library that we need for nothing else, so methods of
its connection are replaced. A release that renames them fails here at once.
"""

import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, ConnectionDropped
from kazoo.protocol.serialization import SASL

from headrace.coordination.credentials import Credential
from headrace.coordination.errors import CoordinationError
from headrace.security.pem import InvalidTlsSetting
from headrace.security.sasl.digest_md5 import DigestMd5Client
from headrace.security.sasl.exchange import AuthenticationFailed
from headrace.security.tls import ReloadingContext, TlsSettings

SASL_SCHEME: Final = "sasl"
DIGEST_SCHEME: Final = "digest"

# kazoo logs every request at level DEBUG: passwords, and the content of znodes.
kazoo_logger: Final = logging.getLogger("kazoo.headrace")
kazoo_logger.setLevel(logging.INFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecurity:
    """What a client shows to ZooKeeper, and whether it protects the znodes that it creates."""

    tls: TlsSettings | None = None
    credential: Credential | None = None
    scheme: str = SASL_SCHEME  # how the credential is shown
    set_acl: bool = False

    def context(self) -> ReloadingContext | None:
        """Read the files of TLS; CoordinationError names the setting that is invalid."""
        try:
            return None if self.tls is None else ReloadingContext.for_connections(self.tls)
        except InvalidTlsSetting as error:
            raise CoordinationError(f"zookeeper.{error}") from error


OPEN: Final = ClientSecurity()


class CredentialRefused(CoordinationError):
    """ZooKeeper does not accept our credential, or does not let its user do what a broker has to do."""


@dataclass(slots=True)
class ConnectionOutcome:
    """Why the last attempt to connect has failed, written by kazoo's thread."""

    failure: str | None = None
    is_refusal: bool = False  # of the credential: the next attempt will fail as well

    def check(self, servers: str) -> None:
        """Raise CredentialRefused if `servers` have refused the credential."""
        if self.is_refusal:
            raise CredentialRefused(
                f"ZooKeeper at {servers} refuses our credential ({self.failure}): "
                "are user and password right?"
            )


def secure(
    client: KazooClient,
    security: ClientSecurity,
    context: ReloadingContext | None,
    on_attempt: Callable[[], None],
) -> ConnectionOutcome:
    """Make `client` connect as `security` says, and call `on_attempt` when it is connected or refused.

    `on_attempt` is called in kazoo's thread. A refused credential does not stop the client, as it would in
    kazoo: it tries again, so that a broker survives while an operator repairs the users of ZooKeeper.
    """
    outcome = ConnectionOutcome()
    connection = client._connection  # noqa: SLF001
    connect = connection._connect  # noqa: SLF001
    if context is not None:
        _use_tls(client, context, outcome)
    if security.credential is not None:
        _use_credential(client, security.credential, security.scheme)

    def connect_and_report(*args: Any) -> Any:
        try:
            connected = connect(*args)
        except AuthFailedError as error:
            outcome.failure, outcome.is_refusal = str(error) or "AUTH_FAILED", True
            on_attempt()
            raise ConnectionDropped("ZooKeeper has refused the credential") from error
        outcome.failure, outcome.is_refusal = None, False
        on_attempt()
        return connected

    connection._connect = connect_and_report  # noqa: SLF001
    return outcome


def _use_credential(client: KazooClient, credential: Credential, scheme: str) -> None:
    if scheme == DIGEST_SCHEME:
        client.auth_data.add((DIGEST_SCHEME, f"{credential.name}:{credential.password}"))
        return
    connection = client._connection  # noqa: SLF001

    def authenticate(_host: str, timeout_s: float) -> None:
        """Exchange the tokens of DIGEST-MD5; raise AuthFailedError if one side does not prove itself."""
        exchange = DigestMd5Client(credential.name, credential.password)
        token = _ask_sasl(client, b"", 1, timeout_s)
        try:
            token = _ask_sasl(client, exchange.respond(token), 2, timeout_s)
            exchange.respond(token)
        except AuthenticationFailed as error:
            raise AuthFailedError(str(error)) from error

    connection.sasl_options = {}  # not None: kazoo calls the method
    connection._authenticate_with_sasl = authenticate  # noqa: SLF001


def _ask_sasl(client: KazooClient, token: bytes, xid: int, timeout_s: float) -> bytes:
    connection = client._connection  # noqa: SLF001
    connection._submit(SASL(token), timeout_s, xid)  # noqa: SLF001
    header, message, offset = connection._read_header(timeout_s)  # noqa: SLF001
    if header.err:
        raise AuthFailedError(f"error {header.err}")
    answered, _ = SASL.deserialize(message, offset)
    if answered is None:
        raise AuthFailedError("the server has no users: it does not support SASL")
    return bytes(answered)


def _use_tls(client: KazooClient, context: ReloadingContext, outcome: ConnectionOutcome) -> None:
    handler = client.handler
    plain_select = handler.select

    def create_connection(
        address: tuple[str, int], *, hostname: str, timeout: float, **_: object
    ) -> ssl.SSLSocket:
        context.refresh()  # this is kazoo's thread, which may read files
        try:
            plain = socket.create_connection(address, timeout)
            with contextlib.ExitStack() as on_error:
                on_error.enter_context(plain)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                wrapped = context.wrap_socket(plain, server_hostname=hostname)
                on_error.pop_all()
        except OSError as error:
            outcome.failure = str(error)
            raise
        return wrapped

    def select(
        readers: Sequence[Any], writers: Sequence[Any], errors: Sequence[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Also report a socket whose decrypted bytes have not been read: the kernel knows none of them."""
        decrypted = [reader for reader in readers if isinstance(reader, ssl.SSLSocket) and reader.pending()]
        ready, writable, failed = plain_select(readers, writers, errors, 0 if decrypted else timeout)
        return [*decrypted, *(each for each in ready if each not in decrypted)], writable, failed

    handler.create_connection, handler.select = create_connection, select
