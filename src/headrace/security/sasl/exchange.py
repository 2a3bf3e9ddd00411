"""What all SASL mechanisms have in common: messages in, messages out, and a user at the end."""

from typing import Final, NamedTuple, Protocol

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)


class AuthenticationFailed(Exception):
    """The client did not prove who it is. The message is sent to the client, so it has no secrets.

    `user` is the name that the client has claimed, for the broker's log.
    """

    def __init__(self, why: str, user: str = "") -> None:
        super().__init__(why)
        self.user = user


class User(NamedTuple):
    """Who has authenticated, and until when that is valid."""

    name: str
    expires_ms: int | None = None  # None: for as long as the broker's settings say
    by_token: bool = False  # with a delegation token, whose owner it is


class Exchange(Protocol):
    def respond(self, message: bytes) -> bytes:
        """Return the response to the client's next message; raise AuthenticationFailed."""

    @property
    def user(self) -> User | None:
        """Who has authenticated, once the exchange is complete."""


def invalid_credentials(mechanism: str, user: str = "") -> AuthenticationFailed:
    """Return the same error for an unknown user and for a wrong password."""
    why = f"Authentication failed due to invalid credentials with SASL mechanism {mechanism}"
    return AuthenticationFailed(why, user)
