"""How the gateway connects to brokers as a user, for as long as the pool keeps the user's clients.

A user's own credentials are passed on. For the principal of a client's certificate, the gateway's own user
creates a delegation token whose owner is that principal (KIP-373). Only the gateway knows the token, renews
it for as long as the principal sends requests, and deletes it afterwards. Calls block: they are for threads.
"""

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from threading import Lock
from typing import Final, TypeVar

from headrace.client.admin.tokens import Token, TokenAdmin
from headrace.client.errors import AuthenticationFailed, ClientError, Unreachable
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import NotKnown
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.requests import metadata_request
from headrace.client.wire.retry import Backoff
from headrace.client.wire.sasl import Sasl
from headrace.client.wire.security import Security
from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.reach import CLIENT_ID, SILENCE_S
from headrace.gateway.users.credentials import PASSWORD_MECHANISMS, Certificate, Credentials, sasl_of
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest
from headrace.security.principals import Principal
from headrace.security.sasl.exchange import SCRAM_SHA_256, SCRAM_SHA_512

VERIFIED_S: Final = 60.0  # for which brokers are not asked about the same login again

Connect = Callable[[Security], Brokers]


class LoginEnded(Exception):
    """The brokers no longer accept the login, and the gateway can make another one for the same user."""


class CannotActFor(Exception):
    """A certificate has authenticated a client, but the gateway cannot act for its principal."""

    def __init__(self, principal: Principal, why: str) -> None:
        super().__init__(
            f"the certificate authenticates {principal}, but the gateway cannot act for it: {why}; Basic or "
            "Bearer credentials can be sent with the certificate"
        )


class BrokerLogin:
    """The credentials of a user, which brokers have accepted."""

    def __init__(self, security: Security, connect: Connect) -> None:
        """`security` is that of the user's connections; it stays the same."""
        self.security = security
        self._connect = connect

    @property
    def verified_for_s(self) -> float:
        """After how many seconds `verify` is due."""
        return VERIFIED_S

    def verify(self) -> None:
        """Try the login again.

        AuthenticationFailed if brokers do not accept it any more, LoginEnded if there may be another one,
        Unreachable if no broker answers.
        """
        with self._connect(self.security) as brokers:
            brokers.any_metadata(within_s=SILENCE_S)

    def end(self) -> None:
        """Let nobody use the login any more. All connections with it are closed."""


LIFETIME_MS: Final = 3600_000  # after which the token of a gateway that was killed expires
SHORT_MS: Final = 60_000  # the lifetime of a token that only shows who the gateway is
KNOWN_S: Final = 5.0  # for all brokers to know a new token
_MECHANISMS: Final = (SCRAM_SHA_512, SCRAM_SHA_256)

_NO_SCRAM: Final = (
    "delegation tokens need SCRAM, which the brokers' listener does not offer (sasl.enabled.mechanisms)"
)
_OLD: Final = "the brokers create no delegation tokens for other users (KIP-373)"
_REASONS: Final = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "the brokers have no delegation.token.secret.key",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "brokers do not know who the gateway is, or it has authenticated with a delegation token itself "
        "(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)"
    ),
    ErrorCode.INVALID_PRINCIPAL_TYPE: "brokers accept no such owner of a token (INVALID_PRINCIPAL_TYPE)",
}

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class TokenLogin(BrokerLogin):
    """A token of one principal, which is renewed at half of its lifetime."""

    def __init__(
        self,
        token: Token,
        security: Security,
        admin: TokenAdmin,
        connect: Connect,
        *,
        began_s: float,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`began_s` is our time when the token was created, or a little earlier."""
        super().__init__(security, connect)
        self._token = token
        self._admin = admin
        self._now_s = now_s
        self._began_s = began_s  # when the token was created or renewed
        self._valid_s = (token.expiry_ms - token.issue_ms) / 1000  # since then

    @property
    def verified_for_s(self) -> float:
        return max(0.0, min(VERIFIED_S, self._began_s + self._valid_s / 2 - self._now_s()))

    def verify(self) -> None:
        """Renew the token if that is due, and try it; LoginEnded if another one is needed."""
        if self._now_s() >= self._began_s + self._valid_s / 2:
            self._renew()
        try:
            super().verify()
        except AuthenticationFailed as error:
            raise LoginEnded from error

    def _renew(self) -> None:
        before = self._token
        if before.expiry_ms >= before.max_ms:
            raise LoginEnded
        began_s = self._now_s()
        try:
            self._token = self._admin.renew(before, LIFETIME_MS)
        except Unreachable:
            raise
        except ClientError as error:
            logger.warning("the delegation token of %s cannot be renewed: %s", before.owner, error)
            raise LoginEnded from error
        # By the brokers' clock alone, which may differ from ours.
        left_s = self._began_s + self._valid_s - began_s
        self._valid_s = left_s + (self._token.expiry_ms - before.expiry_ms) / 1000
        self._began_s = began_s

    def end(self) -> None:
        expire(self._admin, self._token)


class Delegation:
    def __init__(
        self, own: Brokers, security: Security, connect: Connect, offered: Callable[[], Collection[str]]
    ) -> None:
        """`own` has the gateway's connections, `security` their settings; `offered` are SASL mechanisms."""
        self._own = own
        self._admin = TokenAdmin(own)
        self._security = security
        self._connect = connect
        self._offered = offered
        self._lock = Lock()
        self._requester: Principal | None = None

    def login(self, principal: Principal) -> TokenLogin:
        """Return a login that every broker accepts; CannotActFor says why there is none."""
        if not principal.name:  # an empty owner would stand for the gateway itself
            raise CannotActFor(principal, "it has no name")
        mechanism = next((each for each in _MECHANISMS if each in self._offered()), None)
        if mechanism is None:
            raise CannotActFor(principal, _NO_SCRAM)
        began_s = time.monotonic()
        token = self._create(principal)
        if token.owner != principal:
            expire(self._admin, token)
            raise CannotActFor(principal, _OLD)
        try:
            created = token
            token = when_known(lambda: self._admin.renew(created, LIFETIME_MS))
            security = self._accepted(token, mechanism)
        except BaseException:
            expire(self._admin, token)
            raise
        return TokenLogin(token, security, self._admin, self._connect, began_s=began_s)

    def _create(self, principal: Principal) -> Token:
        try:
            return self._admin.create(principal, renewers=[self._own_principal()])
        except Unreachable:
            raise
        except NotKnown as error:
            raise CannotActFor(principal, _OLD) from error
        except ClientError as error:
            why = None if error.error_code is None else _REASONS.get(error.error_code)
            if error.error_code is ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED:
                why = (
                    f"the gateway's user {self._requester} may not create tokens for it: an ACL has to allow "
                    f"CREATE_TOKENS on USER {principal}"
                )
            if why is None:
                raise
            raise CannotActFor(principal, why) from error

    def _own_principal(self) -> Principal:
        """Return who the gateway is to the brokers, which a token of its own shows; it renews the others."""
        with self._lock:
            if self._requester is None:
                shown = self._admin.create(max_lifetime_ms=SHORT_MS)
                self._requester = shown.owner
                when_known(lambda: self._admin.expire(shown))
            return self._requester

    def _accepted(self, token: Token, mechanism: str) -> Security:
        """Wait until every broker that answers accepts the token; return the security that works with it.

        Headrace's brokers accept a token without the extension `tokenauth=true`, so librdkafka can use it.
        """
        extended = Sasl(mechanism=mechanism, username=token.token_id, password=token.password, is_token=True)
        backoff = Backoff(KNOWN_S)
        while not self._is_accepted(replace(self._security, sasl=extended)):
            if not backoff.rest():
                raise Unreachable(f"brokers do not know a new delegation token after {KNOWN_S:g} s")
        plain = replace(self._security, sasl=replace(extended, is_token=False))
        return plain if self._is_accepted(plain) else replace(self._security, sasl=extended)

    def _is_accepted(self, security: Security) -> bool:
        """Return whether no broker refuses the token; one that does not answer does not count."""
        request = metadata_request(())
        with self._connect(security) as brokers:
            try:
                brokers.each({node: lambda at: at.ask(request) for node in self._own.nodes()}, SILENCE_S)
            except AuthenticationFailed:
                return False
        return True


def when_known(change: Callable[[], Answer]) -> Answer:
    """Return what the change of a new token returns; repeat it while a broker does not know the token."""
    backoff = Backoff(KNOWN_S)
    while True:
        try:
            return change()
        except ClientError as error:
            if error.error_code is not ErrorCode.DELEGATION_TOKEN_NOT_FOUND or not backoff.rest():
                raise


def expire(admin: TokenAdmin, token: Token) -> None:
    """Delete a token; if that fails, it expires by itself."""
    try:
        admin.expire(token)
    except ClientError as error:
        logger.info("the delegation token of %s is not deleted, it will expire: %s", token.owner, error)


OFFERED_S: Final = 60.0  # for which the mechanisms that brokers offer are remembered


class Verifier:
    def __init__(self, settings: GatewaySettings, own: Brokers) -> None:
        """`own` has the connections of the gateway itself."""
        self._settings = settings
        self._delegation = Delegation(own, settings.security, self._brokers, self.offered)
        self._lock = Lock()
        self._offered: tuple[float, tuple[str, ...]] | None = None

    def accept(self, credentials: Credentials) -> BrokerLogin:
        """Return a login that brokers accept for these credentials, tried just now.

        AuthenticationFailed if they do not accept them, BadCredentials if they cannot, CannotActFor if a
        certificate is all there is and brokers do not let the gateway act for it, Unreachable if no broker
        answers.
        """
        if isinstance(credentials, Certificate):
            return self._delegation.login(credentials.principal)
        sasl = sasl_of(credentials, self.offered(), self._settings.password_mechanism)
        login = BrokerLogin(replace(self._settings.security, sasl=sasl), self._brokers)
        login.verify()
        return login

    def accepts_passwords(self) -> bool:
        """Return whether the brokers offer a mechanism for a user with a password."""
        return not self.offered() or any(each in self.offered() for each in PASSWORD_MECHANISMS)

    def offered(self) -> tuple[str, ...]:
        with self._lock:
            known = self._offered
        if known is not None and time.monotonic() - known[0] < OFFERED_S:
            return known[1]
        asked = SaslHandshakeRequest(mechanism=PASSWORD_MECHANISMS[0])
        with self._brokers(replace(self._settings.security, sasl=None)) as brokers:
            found = tuple(brokers.first(lambda at: at.ask(asked), SILENCE_S).mechanisms)
        with self._lock:
            self._offered = time.monotonic(), found
        return found

    def _brokers(self, security: Security) -> Brokers:
        to = ConnectionSettings(self._settings.bootstrap, security)
        return Brokers(to, answer_s=SILENCE_S, client_id=CLIENT_ID)
