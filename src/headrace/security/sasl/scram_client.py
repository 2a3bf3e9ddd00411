"""SCRAM (RFC 5802, RFC 7677), the client's side."""

import base64
import hashlib
import hmac
import secrets
from typing import Final

from headrace.security.sasl.scram import ALGORITHMS, MIN_ITERATIONS, TOKEN_EXTENSION

_MAX_ITERATIONS: Final = 1_000_000
_NONCE_BYTES: Final = 24


class ScramClient:
    """RFC 5802: both sides prove that they know the password, without sending it."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        nonce: str | None = None,
        *,
        is_token: bool = False,
    ) -> None:
        """With `is_token`, the name is the id of a delegation token, and the password its HMAC in base64."""
        self._algorithm = ALGORITHMS[mechanism]
        self._password = password.encode()
        self._nonce = nonce = secrets.token_urlsafe(_NONCE_BYTES) if nonce is None else nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={nonce}{f',{TOKEN_EXTENSION}' if is_token else ''}"
        self.expected = b""  # the server's proof, which takes the password as well

    def first(self) -> str:
        return f"n,,{self._first}"

    def prove(self, challenge: str) -> str:
        """Return our proof; ValueError or KeyError if the challenge is invalid."""
        parts = dict(part.split("=", 1) for part in challenge.split(","))
        nonce, iterations = parts["r"], int(parts["i"])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ValueError("the nonce does not continue ours")
        if not MIN_ITERATIONS <= iterations <= _MAX_ITERATIONS:
            raise ValueError(f"{iterations} iterations")
        salt = base64.b64decode(parts["s"], validate=True)
        salted = hashlib.pbkdf2_hmac(self._algorithm, self._password, salt, iterations)
        last = f"c=biws,r={nonce}"
        agreed = f"{self._first},{challenge},{last}".encode()
        client_key = self._mac(salted, b"Client Key")
        signature = self._mac(hashlib.new(self._algorithm, client_key).digest(), agreed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.expected = b"v=" + base64.b64encode(self._mac(self._mac(salted, b"Server Key"), agreed))
        return f"{last},p={base64.b64encode(proof).decode()}"

    def _mac(self, key: bytes, said: bytes) -> bytes:
        return hmac.digest(key, said, self._algorithm)
