"""PLAIN (RFC 4616): the client sends user name and password."""

import hmac
from collections.abc import Callable, Mapping
from typing import Final

from headrace.security.sasl.exchange import PLAIN, AuthenticationFailed, User, invalid_credentials

_PARTS: Final = 3  # authorization id, user name, password
_USER: Final = "user_"


class PlainExchange:
    """`password_of` returns the password of a user, or None."""

    def __init__(self, password_of: Callable[[str], str | None]) -> None:
        self._password_of = password_of
        self.user: User | None = None

    def respond(self, message: bytes) -> bytes:
        try:
            parts = message.decode().split("\0")
        except UnicodeDecodeError:
            raise AuthenticationFailed("Invalid SASL/PLAIN response: it is not UTF-8") from None
        if len(parts) != _PARTS:
            raise AuthenticationFailed(
                f"Invalid SASL/PLAIN response: expected {_PARTS} tokens, got {len(parts)}"
            )
        authorization_id, name, password = parts
        if not name or not password:
            raise AuthenticationFailed("Invalid SASL/PLAIN response: user name or password is empty", name)
        expected = self._password_of(name)
        # The comparison takes the same time for unknown users, and for passwords that differ in any place.
        known = hmac.compare_digest((password if expected is None else expected).encode(), password.encode())
        if expected is None or not known:
            raise invalid_credentials(PLAIN, name)
        if authorization_id not in {"", name}:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username",
                name,
            )
        self.user = User(name)
        return b""


def passwords(login_options: Mapping[str, str]) -> dict[str, str]:
    """Return the users of a PlainLoginModule: its options `user_NAME="PASSWORD"`."""
    return {
        option.removeprefix(_USER): value
        for option, value in login_options.items()
        if option.startswith(_USER)
    }
