"""The SASL credentials with which the gateway connects to brokers as a user. Pure."""

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from headrace.client.wire.sasl import OAUTHBEARER, Sasl
from headrace.gateway.users.credentials import BadCredentials, Password, Token, claims

PASSWORD_MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
"""The mechanisms for a user name and a password; the first that the brokers offer is used."""

_OPAQUE_S: Final = 3600.0  # how long librdkafka uses a token whose expiry only its issuer knows
_NO_TOKENS: Final = "the brokers accept no bearer tokens: use a user name and a password (Basic)"
_NO_PASSWORDS: Final = "the brokers accept no passwords: use a bearer token"


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
