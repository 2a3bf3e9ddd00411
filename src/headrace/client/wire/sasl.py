"""Who we say we are, and the proof: SASL with PLAIN and SCRAM, in Kafka's requests for it."""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.client.errors import ClientError, Refused
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.sasl_authenticate import SaslAuthenticateRequest
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_FEWEST_ROUNDS: Final = 4096  # RFC 7677; fewer would make a stolen exchange cheap to search
_MOST_ROUNDS: Final = 1_000_000
_JAAS: Final = re.compile(
    r"""([\w$.-]+)\s*=\s*(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|([^\W\d][\w$.-]*))(?=[\s;]|$)"""
)
_ESCAPED: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}

Ask = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """A user, and how to prove it."""

    mechanism: str
    username: str
    password: str = field(repr=False)

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "Sasl":
        """From a client's settings; ClientError begins with the one that cannot be."""
        mechanism = settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "")).strip().upper()
        if mechanism not in MECHANISMS:
            said = f"is {mechanism}" if mechanism else "is missing"
            raise ClientError(f"sasl.mechanism {said}: choose one of {', '.join(MECHANISMS)}")
        jaas = settings.get("sasl.jaas.config")
        given = settings if jaas is None else {f"sasl.{k}": v for k, v in jaas_options(jaas).items()}
        for name in ("sasl.username", "sasl.password"):
            if not given.get(name):
                raise ClientError(f"{name} is missing" if jaas is None else _no_jaas(name))
        return cls(mechanism=mechanism, username=given["sasl.username"], password=given["sasl.password"])

    def authenticate(self, ask: Ask, address: str) -> None:
        """Say who we are, before anything else is asked; Refused if the broker does not believe it."""
        answer = ask(SaslHandshakeRequest(mechanism=self.mechanism))
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise no_sasl(address)
        if answer.error_code:
            others = f", only {', '.join(answer.mechanisms)}" if answer.mechanisms else ""
            raise Refused(f"{address} does not take {self.mechanism}{others}: change sasl.mechanism")
        if self.mechanism == "PLAIN":
            self._say(ask, address, f"\0{self.username}\0{self.password}".encode())
        else:
            self._scram(ask, address)

    def _scram(self, ask: Ask, address: str) -> None:
        scram = Scram(self, secrets.token_urlsafe(24))
        try:
            last = scram.prove(self._say(ask, address, scram.first().encode()).decode())
        except (ValueError, KeyError) as error:
            raise Refused(f"{address} answers {self.mechanism} as no broker would") from error
        if not hmac.compare_digest(self._say(ask, address, last.encode()), scram.expected):
            raise Refused(f"{address} does not know the password of {self.username}: trust it not")

    def _say(self, ask: Ask, address: str, said: bytes) -> bytes:
        answer = ask(SaslAuthenticateRequest(auth_bytes=said))
        if answer.error_code:
            why = (answer.error_message or "authentication failed").rstrip(".")
            raise Refused(f"{address} refuses {self.username}: {why}; are user name and password right?")
        return bytes(answer.auth_bytes)


class Scram:
    """RFC 5802: both sides prove to know the password, and nobody says it."""

    def __init__(self, sasl: Sasl, nonce: str) -> None:
        self._algorithm = sasl.mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        self._password = sasl.password.encode()
        self._nonce = nonce
        name = sasl.username.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={nonce}"
        self.expected = b""  # what only somebody who knows the password can answer in the end

    def first(self) -> str:
        return f"n,,{self._first}"

    def prove(self, challenge: str) -> str:
        """Our proof; ValueError or KeyError if nobody who knows the password would ask so."""
        parts = dict(part.split("=", 1) for part in challenge.split(","))
        nonce, rounds = parts["r"], int(parts["i"])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ValueError("the nonce is not ours")
        if not _FEWEST_ROUNDS <= rounds <= _MOST_ROUNDS:
            raise ValueError(f"{rounds} rounds")
        salt = base64.b64decode(parts["s"], validate=True)
        salted = hashlib.pbkdf2_hmac(self._algorithm, self._password, salt, rounds)
        last = f"c=biws,r={nonce}"
        agreed = f"{self._first},{challenge},{last}".encode()
        client_key = self._mac(salted, b"Client Key")
        signature = self._mac(hashlib.new(self._algorithm, client_key).digest(), agreed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.expected = b"v=" + base64.b64encode(self._mac(self._mac(salted, b"Server Key"), agreed))
        return f"{last},p={base64.b64encode(proof).decode()}"

    def _mac(self, key: bytes, said: bytes) -> bytes:
        return hmac.digest(key, said, self._algorithm)


def no_sasl(address: str) -> Refused:
    return Refused(f"{address} knows no SASL: is security.protocol right?")


def _no_jaas(name: str) -> str:
    what = name.removeprefix("sasl.")
    return f'sasl.jaas.config has no {what}: expected MODULE required username="..." password="...";'


def jaas_options(config: str) -> dict[str, str]:
    """The options of a login module in the words of Java: quoted or not, with its escapes."""
    return {
        name: word or _ESCAPED.sub(_unescaped, double or single)
        for name, double, single, word in _JAAS.findall(config)
    }


def _unescaped(found: re.Match[str]) -> str:
    said = found[1]
    return chr(int(said, 8)) if said[0] in "01234567" else _ESCAPES.get(said, said)
