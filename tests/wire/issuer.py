"""An issuer of tokens for OAUTHBEARER."""

import json
import time
from pathlib import Path
from typing import Any, Final

from joserfc import jwt
from joserfc.jwk import ECKey

from wire.secured import LOGIN

ISSUER: Final = "https://login.example"
AUDIENCES: Final = ("headrace", "kafka")


class Issuer:
    """Signs tokens, and publishes its keys in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._key = self.renew("first")

    def renew(self, name: str) -> ECKey:
        self._key = ECKey.generate_key("P-256", {"kid": name})
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"keys": [self._key.as_dict(private=False)]}))
        new.rename(self.path)
        return self._key

    def token(self, user: str = "alice", **claims: Any) -> str:
        said = {"sub": user, "iss": ISSUER, "aud": "headrace", "exp": int(time.time()) + 600} | claims
        return jwt.encode({"alg": "ES256", "kid": self._key.kid}, said, self._key)


def listener_settings(issuer: Issuer) -> dict[str, str]:
    """Settings of a broker whose clients bring tokens of the issuer; brokers authenticate with a password."""
    return {
        "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.jaas.config": LOGIN,
        "listener.name.inside.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": issuer.path.as_uri(),
        "sasl.oauthbearer.expected.audience": ",".join(AUDIENCES),
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }
