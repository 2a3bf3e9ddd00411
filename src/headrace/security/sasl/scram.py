"""SCRAM (RFC 5802, RFC 7677): the client proves that it knows the password, and does not send it.

A name without a credential gets a challenge too. Tools differ in the iterations and the salts of the
credentials that they make: Java's kafka-configs.sh makes salts of 25 or 26 digits and small letters,
librdkafka's are 64 bytes. So such a name gets the iterations and the kind of salt of one of the stored
credentials (`ScramShapes`), more common ones more often. The choice depends on the name only, as long as the
stored credentials do not change much.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headrace.security.principals import Principal
from headrace.security.sasl.exchange import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    AuthenticationFailed,
    User,
    invalid_credentials,
)

ALGORITHMS: Final = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384  # of credentials that a client may store, as in Kafka
SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 24
_MAX_ACCEPTED_ITERATIONS: Final = 1_000_000  # of a server
_BASE36: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
_KEY_BITS: Final = 64  # of a key, which choose a shape
TOKEN_EXTENSION: Final = "tokenauth=true"  # noqa: S105  what a client says of its user name
_NAME: Final = r"(?:[^=,]|=2C|=3D)+"
_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authorization>{_NAME}))?,(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>[!-+\--~]+)(?P<extensions>(?:,.*)?))"
)
_FINAL: Final = re.compile(
    r"(?P<without_proof>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[!-+\--~]+)),p=(?P<proof>[A-Za-z0-9+/=]+)"
)


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a broker keeps of a password: enough to check a proof, not enough to make one."""

    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    @classmethod
    def of_password(
        cls, mechanism: str, password: str, *, iterations: int = MIN_ITERATIONS, salt: bytes | None = None
    ) -> "ScramCredential":
        salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
        salted = hashlib.pbkdf2_hmac(ALGORITHMS[mechanism], password.encode(), salt, iterations)
        return cls.of_salted(mechanism, salted, salt, iterations)

    @classmethod
    def of_salted(cls, mechanism: str, salted: bytes, salt: bytes, iterations: int) -> "ScramCredential":
        """Return the credential of a password that the client has salted (AlterUserScramCredentials)."""
        algorithm = ALGORITHMS[mechanism]
        client_key = hmac.digest(salted, b"Client Key", algorithm)
        return cls(
            salt,
            hashlib.new(algorithm, client_key).digest(),
            hmac.digest(salted, b"Server Key", algorithm),
            iterations,
        )

    def encode(self) -> str:
        """Return the credential as Kafka stores it in ZooKeeper."""
        return (
            f"salt={_base64(self.salt)},stored_key={_base64(self.stored_key)},"
            f"server_key={_base64(self.server_key)},iterations={self.iterations}"
        )

    @classmethod
    def decode(cls, text: str) -> "ScramCredential":
        """Return the credential in Kafka's form; ValueError if it is malformed."""
        parts = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
        try:
            return cls(
                _bytes(parts["salt"]),
                _bytes(parts["stored_key"]),
                _bytes(parts["server_key"]),
                int(parts["iterations"]),
            )
        except (KeyError, ValueError) as error:
            raise ValueError("a SCRAM credential has salt, stored_key, server_key and iterations") from error


class TokenAccount(NamedTuple):
    """What a client proves that authenticates with a delegation token, and who it is then."""

    credential: ScramCredential
    owner: Principal
    expires_ms: int


class FakeChallenge(NamedTuple):
    """What a client is told that gives a name without a credential."""

    salt: bytes
    iterations: int


class ScramExchange:
    """`credential_of` returns the credential of a user, or None; `token_of` the account of a token.

    The name is the id of a delegation token if the client sends the extension `tokenauth=true`, or if no user
    has this name: librdkafka cannot send extensions. Either way the token's HMAC is what has to be proven.

    An unknown user gets a challenge as well, always the same one for a name, and fails with the proof, so
    nobody can find out which users exist: `fake_challenge` returns its salt and iterations.
    """

    def __init__(
        self,
        mechanism: str,
        credential_of: Callable[[str], ScramCredential | None],
        *,
        fake_challenge: Callable[[str], FakeChallenge],
        token_of: Callable[[str], TokenAccount | None] = lambda _token_id: None,
        nonce: str | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._algorithm = ALGORITHMS[mechanism]
        self._credential_of = credential_of
        self._token_of = token_of
        self._fake_challenge = fake_challenge
        self._own_nonce = secrets.token_urlsafe(_NONCE_BYTES) if nonce is None else nonce
        self._nonce = ""
        self._name = ""
        self._header = ""  # of the first message; the last one repeats it, so that nobody can have changed it
        self._transcript = ""
        self._credential: ScramCredential | None = None
        self._claimed = User("")  # who the client is if its proof is right
        self.user: User | None = None

    def respond(self, message: bytes) -> bytes:
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise AuthenticationFailed("Invalid SASL/SCRAM message: it is not UTF-8", self._name) from None
        if self.user is not None:
            raise AuthenticationFailed("Invalid SASL/SCRAM message: the exchange is complete", self._name)
        return (self._final(text) if self._nonce else self._first(text)).encode()

    def _first(self, text: str) -> str:
        found = _FIRST.fullmatch(text)
        if found is None:
            raise AuthenticationFailed("Invalid SASL SCRAM client first message format")
        self._name = found["name"].replace("=2C", ",").replace("=3D", "=")
        if found["authorization"] not in {None, found["name"]}:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username",
                self._name,
            )
        is_token = TOKEN_EXTENSION in found["extensions"].split(",")
        self._claimed = User(self._name)
        self._credential = None if is_token else self._credential_of(self._name)
        account = self._token_of(self._name)  # also for a name that has a credential: all take as long
        if self._credential is None and account is not None:
            self._credential = account.credential
            self._claimed = User(account.owner.name, account.expires_ms, by_token=True)
        shown = self._credential or self._fake_credential()
        self._nonce = found["nonce"] + self._own_nonce
        challenge = f"r={self._nonce},s={_base64(shown.salt)},i={shown.iterations}"
        self._header = text[: found.start("bare")]
        self._transcript = f"{found['bare']},{challenge}"
        return challenge

    def _final(self, text: str) -> str:
        found = _FINAL.fullmatch(text)
        if found is None or not hmac.compare_digest(found["nonce"], self._nonce):
            raise AuthenticationFailed("Invalid SASL SCRAM client final message format", self._name)
        try:
            binding, proof = _bytes(found["binding"]), _bytes(found["proof"])
        except ValueError:
            raise AuthenticationFailed("Invalid SASL SCRAM client final message format", self._name) from None
        agreed = f"{self._transcript},{found['without_proof']}".encode()
        known = self._credential or self._fake_credential()
        signature = hmac.digest(known.stored_key, agreed, self._algorithm)
        client_key = bytes(a ^ b for a, b in zip(proof.ljust(len(signature)), signature, strict=False))
        proven = hmac.compare_digest(hashlib.new(self._algorithm, client_key).digest(), known.stored_key)
        if binding != self._header.encode():
            raise AuthenticationFailed("Invalid SASL SCRAM channel binding", self._name)
        if not proven or self._credential is None or len(proof) != len(signature):
            raise invalid_credentials(self._mechanism, self._name)
        self.user = self._claimed
        return f"v={_base64(hmac.digest(known.server_key, agreed, self._algorithm))}"

    def _fake_credential(self) -> ScramCredential:
        made = self._fake_challenge(self._name)
        key = bytes(hashlib.new(self._algorithm).digest_size)
        return ScramCredential(made.salt, key, key, made.iterations)


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
        if not MIN_ITERATIONS <= iterations <= _MAX_ACCEPTED_ITERATIONS:
            raise ValueError(f"{iterations} iterations")
        salt = base64.b64decode(parts["s"], validate=True)
        salted = hashlib.pbkdf2_hmac(self._algorithm, self._password, salt, iterations)
        last = f"c=biws,r={nonce}"
        agreed = f"{self._first},{challenge},{last}".encode()
        client_key = self._mac(salted, b"Client Key")
        signature = self._mac(hashlib.new(self._algorithm, client_key).digest(), agreed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.expected = b"v=" + base64.b64encode(self._mac(self._mac(salted, b"Server Key"), agreed))
        return f"{last},p={_base64(proof)}"

    def _mac(self, key: bytes, said: bytes) -> bytes:
        return hmac.digest(key, said, self._algorithm)


class ScramShape(NamedTuple):
    """The visible properties of a credential."""

    iterations: int
    salt_bytes: int
    is_base36: bool  # whether the salt consists of digits and small letters

    @classmethod
    def of(cls, credential: ScramCredential) -> "ScramShape":
        salt = credential.salt
        return cls(credential.iterations, len(salt), all(byte in _BASE36 for byte in salt))

    def salt(self, key: bytes) -> bytes:
        """Return a salt of this kind, always the same one for a key."""
        made = hashlib.shake_256(b"salt" + key).digest(self.salt_bytes)
        return bytes(_BASE36[byte % len(_BASE36)] for byte in made) if self.is_base36 else made


_DEFAULT: Final = ScramShape(MIN_ITERATIONS, SALT_BYTES, is_base36=False)


class ScramShapes:
    """How many stored credentials of one mechanism have each shape."""

    def __init__(self) -> None:
        self._counts: Counter[ScramShape] = Counter()

    def replace(self, old: Iterable[ScramCredential], new: Iterable[ScramCredential]) -> None:
        """Count `new` credentials instead of `old` ones."""
        self._counts.update(map(ScramShape.of, new))
        for shape in map(ScramShape.of, old):
            self._counts[shape] -= 1
            if not self._counts[shape]:
                del self._counts[shape]

    def choose(self, key: bytes) -> ScramShape:
        """Return one of the shapes, each as often as credentials have it, always the same one for a key."""
        place = int.from_bytes(hashlib.sha256(b"shape" + key).digest()[: _KEY_BITS // 8], "big")
        rank = place * self._counts.total() >> _KEY_BITS
        for shape in sorted(self._counts):
            rank -= self._counts[shape]
            if rank < 0:
                return shape
        return _DEFAULT


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
