"""Credentials of a request, and the SASL credentials that the gateway makes of them for brokers. Pure."""

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from headrace.client.wire.sasl import OAUTHBEARER, Sasl
from headrace.security.principals import Principal

LONGEST_NAME: Final = 256  # characters of a user name
LONGEST_PASSWORD: Final = 1024
LONGEST_TOKEN: Final = 16 * 1024
_SHOWN: Final = 100  # characters of a user name in logs and pages
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750; excludes the separators of OAUTHBEARER

PASSWORD_MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
"""The mechanisms for a user name and a password; the first that the brokers offer is used."""

_OPAQUE_S: Final = 3600.0  # how long librdkafka uses a token whose expiry only its issuer knows
_NO_TOKENS: Final = "the brokers accept no bearer tokens: use a user name and a password (Basic)"
_NO_PASSWORDS: Final = "the brokers accept no passwords: use a bearer token"


class BadCredentials(Exception):
    """Credentials that no broker could accept; the message has no part of them."""


@dataclass(frozen=True, slots=True)
class Password:
    """A user with a password, for SASL PLAIN or SCRAM."""

    user: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        if not self.user or not self.password:
            raise BadCredentials("the user name or the password is empty")
        if len(self.user) > LONGEST_NAME or len(self.password) > LONGEST_PASSWORD:
            raise BadCredentials(
                f"a user name has at most {LONGEST_NAME} characters, a password {LONGEST_PASSWORD}"
            )
        if "\0" in self.user or "\0" in self.password:  # PLAIN separates them with this character
            raise BadCredentials("there is a NUL character in the user name or the password")

    @property
    def name(self) -> str:
        """The user's name for logs and pages."""
        return printable_name(self.user)


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token, for SASL OAUTHBEARER."""

    token: str = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.token) > LONGEST_TOKEN or not _TOKEN.fullmatch(self.token):
            raise BadCredentials(f"a bearer token has at most {LONGEST_TOKEN} characters of RFC 6750")

    @property
    def name(self) -> str:
        """The subject in the token for logs and pages: nobody has verified it."""
        subject = claims(self.token).get("sub")
        return printable_name(subject) if isinstance(subject, str) and subject else "(token)"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The principal of a client's certificate, for a delegation token: nobody can pass a certificate on."""

    principal: Principal

    @property
    def name(self) -> str:
        return printable_name(self.principal.name)


Credentials = Password | Token | Certificate


def parse_authorization(headers: Sequence[str]) -> Password | Token:
    """Return the credentials in the Authorization headers; BadCredentials says what is wrong with them."""
    if len(headers) != 1:
        raise BadCredentials(f"there are {len(headers)} Authorization headers: expected one")
    header = headers[0]
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "bearer":
        return Token(rest.strip())
    if scheme.lower() != "basic":
        raise BadCredentials("the Authorization header has another scheme: expected Basic or Bearer")
    try:
        user, colon, password = base64.b64decode(rest.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise BadCredentials("the Basic credentials are not base64 of USER:PASSWORD in UTF-8") from None
    if not colon:
        raise BadCredentials("the Basic credentials have no colon: expected base64 of USER:PASSWORD")
    return Password(user, password)


def claims(token: str) -> dict[str, object]:
    """Return the claims of a JWT without verifying it; empty for any other token."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        found = json.loads(base64.urlsafe_b64decode(padded))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def printable_name(name: str) -> str:
    """Return a name that cannot start a line of its own in a log."""
    shown = "".join(each if each.isprintable() else "?" for each in name[:_SHOWN])
    return shown if len(name) <= _SHOWN else f"{shown}…"


def fingerprint(secret: bytes, credentials: Credentials) -> bytes:
    """Return a keyed hash by which credentials are found again without keeping them as keys."""
    match credentials:
        case Password(user, password):
            parts = ["password", user, password]
        case Token(token):
            parts = ["token", token]
        case Certificate(principal):
            parts = ["certificate", str(principal)]
    return hmac.digest(secret, json.dumps(parts).encode(), hashlib.sha256)


@dataclass(frozen=True, slots=True)
class TokenSource:
    """What librdkafka and our client call for a token: confluent-kafka's oauth_cb."""

    token: str = field(repr=False)

    def __call__(self, _config: str) -> tuple[str, float, str, dict[str, str]]:
        """Return the token, its expiry in seconds since 1970, a name for librdkafka's log, and extensions."""
        expiry = claims(self.token).get("exp")
        until_s = float(expiry) if isinstance(expiry, int | float) else time.time() + _OPAQUE_S
        return self.token, until_s, "headrace-gateway", {}


def sasl_of(credentials: Password | Token, offered: Collection[str], wanted: str | None = None) -> Sasl:
    """Return the credentials with the mechanism to use; BadCredentials if the brokers offer none for them.

    `wanted` is the mechanism for passwords that an operator has configured.
    """
    if isinstance(credentials, Token):
        if OAUTHBEARER not in offered:
            raise BadCredentials(_NO_TOKENS)
        return Sasl(mechanism=OAUTHBEARER, username="", password="", tokens=TokenSource(credentials.token))
    mechanism = wanted or next((each for each in PASSWORD_MECHANISMS if each in offered), None)
    if mechanism is None:
        raise BadCredentials(_NO_PASSWORDS)
    return Sasl(mechanism=mechanism, username=credentials.user, password=credentials.password)
