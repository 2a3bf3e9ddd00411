"""OAUTHBEARER (RFC 7628): the client sends a token that somebody else has signed."""

import re
from collections.abc import Callable
from typing import Final

from headrace.security.sasl.exchange import OAUTHBEARER, AuthenticationFailed, User, invalid_credentials

_FIRST: Final = re.compile(
    r"n,(?:a=(?P<authorization>(?:[^=,]|=2C|=3D)+))?,\x01(?P<pairs>(?:[A-Za-z]+=[^\x01]*\x01)+)\x01"
)
_BEARER: Final = "bearer "
_REFUSAL: Final = b'{"status":"invalid_token"}'


class InvalidToken(Exception):
    """A token is malformed, expired, not for this cluster, or not signed by a key that is trusted."""


class OAuthBearerExchange:
    """`validate` returns the user of a token, or raises InvalidToken."""

    def __init__(self, validate: Callable[[str], User]) -> None:
        self._validate = validate
        self._refused: InvalidToken | None = None
        self.user: User | None = None

    def respond(self, message: bytes) -> bytes:
        if self._refused is not None:  # the client has acknowledged the refusal
            raise AuthenticationFailed(f"{invalid_credentials(OAUTHBEARER)}: {self._refused}")
        token, authorization_id = _token(message)
        try:
            user = self._validate(token)
        except InvalidToken as error:
            self._refused = error
            return _REFUSAL
        if authorization_id not in {None, user.name}:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from "
                "the token's principal name",
                user.name,
            )
        self.user = user
        return b""


def _token(message: bytes) -> tuple[str, str | None]:
    """Return the token of a client's first message, and the user that it wants to be."""
    try:
        found = _FIRST.fullmatch(message.decode())
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise AuthenticationFailed("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair)
    auth = pairs.get("auth", "")
    if not auth.lower().startswith(_BEARER):
        raise AuthenticationFailed("Invalid OAUTHBEARER client first message: 'auth' is not a bearer token")
    name = found["authorization"]
    return auth[len(_BEARER) :].strip(), name and name.replace("=2C", ",").replace("=3D", "=")
