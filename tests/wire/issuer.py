"""An issuer of tokens for OAUTHBEARER."""

import json
import time
from pathlib import Path
from typing import Any, Final

from joserfc import jwt
from joserfc.jwk import ECKey

ISSUER: Final = "https://login.example"


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
