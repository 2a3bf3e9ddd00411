"""How the gateway connects to brokers as a user, for as long as the pool keeps the user's clients."""

from collections.abc import Callable
from typing import Final

from headrace.client.wire.brokers import Brokers
from headrace.client.wire.security import Security
from headrace.gateway.reach import SILENCE_S
from headrace.security.principals import Principal

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
    """The credentials of a user that brokers have accepted. Calls block, so they are for threads.

    These credentials are the user's own; `delegation.py` has those that the gateway makes.
    """

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
