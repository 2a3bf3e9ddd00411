"""The authentication of one connection: its mechanism, its state, and how long it is valid. Pure."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from headrace.security.principals import Principal
from headrace.security.sasl.exchange import AuthenticationFailed, Exchange, User


class Mechanism(NamedTuple):
    """A mechanism that a listener accepts."""

    begin: Callable[[], Exchange]
    max_session_ms: int = 0  # connections.max.reauth.ms; 0: without limit


class SaslState(Enum):
    HANDSHAKE = "handshake"  # the client has to choose a mechanism
    EXCHANGE = "exchange"  # messages of the mechanism are exchanged
    DONE = "done"
    FAILED = "failed"  # the connection is about to be closed


class SaslSession:
    """A client authenticates before its first request, and again before its session ends (KIP-368)."""

    def __init__(self, mechanisms: Mapping[str, Mechanism], now_ms: Callable[[], int]) -> None:
        self._mechanisms = mechanisms
        self._now_ms = now_ms
        self._state = SaslState.HANDSHAKE
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._expires_ms: int | None = None
        self._principal: Principal | None = None
        self.user: User | None = None
        self.is_raw = False  # messages come without a request around them, after SaslHandshake v0

    @property
    def mechanisms(self) -> list[str]:
        return list(self._mechanisms)

    @property
    def has_failed(self) -> bool:
        return self._state is SaslState.FAILED

    @property
    def principal(self) -> Principal | None:
        """Who sends requests; None before the client has authenticated, and after its session has ended.

        A client that authenticates again may send requests meanwhile.
        """
        if self._state is SaslState.FAILED:
            return None
        if self._expires_ms is not None and self._now_ms() >= self._expires_ms:
            return None
        return self._principal

    def choose(self, mechanism: str, *, raw: bool) -> bool:
        """Begin an exchange; return False if the listener does not accept this mechanism.

        A client that authenticates again has to use the same one.
        """
        if self._state not in {SaslState.HANDSHAKE, SaslState.DONE}:
            raise self._failed("SaslHandshake is not expected here")
        if mechanism not in self._mechanisms or self._mechanism not in {"", mechanism}:
            self._state = SaslState.FAILED
            return False
        self._mechanism = mechanism
        self._exchange = self._mechanisms[mechanism].begin()
        self._state = SaslState.EXCHANGE
        self.is_raw = raw
        return True

    def respond(self, message: bytes) -> bytes:
        if self._state is not SaslState.EXCHANGE or self._exchange is None:
            raise self._failed("SaslAuthenticate is expected after SaslHandshake only")
        try:
            response = self._exchange.respond(message)
        except AuthenticationFailed:
            self._state = SaslState.FAILED
            raise
        if self._exchange.user is not None:
            user = self._exchange.user
            if self.user is not None and self.user.name != user.name:
                raise self._failed("Cannot change principals during re-authentication", user.name)
            self.user = user
            self._principal = Principal(user.name)
            self._exchange = None
            self._state = SaslState.DONE
            self.is_raw = False
            limit_ms = self._mechanisms[self._mechanism].max_session_ms
            ends = [user.expires_ms] if user.expires_ms is not None else []
            if limit_ms > 0:
                ends.append(self._now_ms() + limit_ms)
            self._expires_ms = min(ends, default=None)
        return response

    @property
    def lifetime_ms(self) -> int:
        """How long the session is valid from now on; 0 means without limit, or not authenticated yet."""
        if self._state is not SaslState.DONE or self._expires_ms is None:
            return 0
        return max(1, self._expires_ms - self._now_ms())

    def _failed(self, why: str, user: str = "") -> AuthenticationFailed:
        self._state = SaslState.FAILED
        return AuthenticationFailed(why, user)
