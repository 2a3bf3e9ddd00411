"""DIGEST-MD5 (RFC 2831), which ZooKeeper's clients and servers use: both sides know the password.

Only `qop=auth` is supported: this mechanism protects no messages, TLS does. Kafka listeners do not offer it.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Final

from headrace.security.sasl.exchange import AuthenticationFailed, User, invalid_credentials

DIGEST_MD5: Final = "DIGEST-MD5"
SERVICE: Final = "zookeeper"
REALM: Final = "zk-sasl-md5"  # ZooKeeper's constant, which stands for the host as well
MAX_MESSAGE_BYTES: Final = 4096  # RFC 2831: a response is shorter
_NONCE_BYTES: Final = 24
_FIRST_USE: Final = "00000001"  # of a nonce; there is no second one
_DIRECTIVE: Final = re.compile(
    r'[ \t]*([A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^",\s]+))[ \t]*(?:,|\Z)', re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


class DigestMd5Server:
    """The server's side of one authentication; `password_of` returns the password of a user, or None."""

    def __init__(self, password_of: Callable[[str], str | None], *, nonce: str | None = None) -> None:
        self._password_of = password_of
        self._nonce = secrets.token_urlsafe(_NONCE_BYTES) if nonce is None else nonce
        self._challenged = False
        self.user: User | None = None

    def respond(self, message: bytes) -> bytes:
        """Return the challenge, then the proof that the server knows the password too.

        Raise AuthenticationFailed.
        """
        if self.user is not None:
            raise AuthenticationFailed("DIGEST-MD5: the exchange is complete")
        if self._challenged:
            said = parse_directives(message)
            name = said.get("username", "")
            expected = {
                "realm": REALM,
                "nonce": self._nonce,
                "nc": _FIRST_USE,
                "digest-uri": f"{SERVICE}/{REALM}",
                "qop": "auth",
            }
            for directive, value in expected.items():
                if not hmac.compare_digest(said.get(directive, value).encode(), value.encode()):
                    raise AuthenticationFailed(f"DIGEST-MD5: {directive} has an unexpected value", name)
            if not said.get("cnonce") or "nonce" not in said or "response" not in said:
                raise AuthenticationFailed("DIGEST-MD5: nonce, cnonce or response is missing", name)
            if said.get("authzid", name) != name:
                raise AuthenticationFailed("DIGEST-MD5: authzid differs from username", name)
            password = self._password_of(name)
            # An unknown user costs the same as a known one.
            proof = _Proof(said, secrets.token_hex() if password is None else password)
            known = hmac.compare_digest(proof.of_client.encode(), said["response"].encode())
            if password is None or not known:
                raise invalid_credentials(DIGEST_MD5, name)
            self.user = User(name)
            return f"rspauth={proof.of_server}".encode()
        self._challenged = True
        if message:
            raise AuthenticationFailed("DIGEST-MD5: the first message must be empty")
        return f'realm="{REALM}",nonce="{self._nonce}",qop="auth",charset=utf-8,algorithm=md5-sess'.encode()


class DigestMd5Client:
    """The client's side of one authentication, which also checks that the server knows the password."""

    def __init__(self, name: str, password: str, *, cnonce: str | None = None) -> None:
        self._name = name
        self._password = password
        self._cnonce = secrets.token_urlsafe(_NONCE_BYTES) if cnonce is None else cnonce
        self._proof: _Proof | None = None
        self.complete = False

    def respond(self, challenge: bytes) -> bytes:
        """Return the response to a challenge of the server; raise AuthenticationFailed if it is not genuine.

        The client sends an empty message first. The last response is empty, and is not sent.
        """
        said = parse_directives(challenge)
        if self._proof is not None:
            if not hmac.compare_digest(said.get("rspauth", "").encode(), self._proof.of_server.encode()):
                raise AuthenticationFailed("DIGEST-MD5: the server does not know the password", self._name)
            self.complete = True
            return b""
        if "nonce" not in said or "auth" not in said.get("qop", "auth").split(","):
            raise AuthenticationFailed(
                "DIGEST-MD5: the server's challenge has no nonce or no qop=auth", self._name
            )
        answer = {
            "username": self._name,
            "realm": said.get("realm", REALM),
            "nonce": said["nonce"],
            "cnonce": self._cnonce,
            "nc": _FIRST_USE,
            "qop": "auth",
            "digest-uri": f"{SERVICE}/{REALM}",
        }
        self._proof = _Proof(answer, self._password)
        quoted = (
            f"{name}={value}" if name in {"nc", "qop"} else f'{name}="{_quote(value)}"'
            for name, value in answer.items()
        )
        return f"charset=utf-8,{','.join(quoted)},response={self._proof.of_client}".encode()


class _Proof:
    """What a client with `password` and a server that knows it send each other."""

    def __init__(self, said: Mapping[str, str], password: str) -> None:
        name, realm = said.get("username", ""), said.get("realm", REALM)
        secret = _md5(b":".join(_encode(part) for part in (name, realm, password)))
        parts = [secret, said["nonce"].encode(), said["cnonce"].encode()]
        if "authzid" in said:
            parts.append(said["authzid"].encode())
        self._a1 = _md5(b":".join(parts)).hex()
        self._middle = f"{said['nonce']}:{_FIRST_USE}:{said['cnonce']}:auth"
        self._uri = said.get("digest-uri", f"{SERVICE}/{REALM}")

    @property
    def of_client(self) -> str:
        return self._with(f"AUTHENTICATE:{self._uri}")

    @property
    def of_server(self) -> str:
        return self._with(f":{self._uri}")

    def _with(self, a2: str) -> str:
        return _md5(f"{self._a1}:{self._middle}:{_md5(a2.encode()).hex()}".encode()).hex()


def parse_directives(message: bytes) -> dict[str, str]:
    """Return `name=value,name="value"` as a dictionary; AuthenticationFailed if it is malformed."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise AuthenticationFailed(
            f"DIGEST-MD5: a message of {len(message)} bytes; {MAX_MESSAGE_BYTES} is the most"
        )
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed("DIGEST-MD5: the message is not UTF-8") from None
    found: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _DIRECTIVE.match(text, position)
        if match is None or match[1].lower() in found:
            raise AuthenticationFailed(f"DIGEST-MD5: the message is malformed at character {position}")
        quoted, plain = match[2], match[3]
        found[match[1].lower()] = plain if quoted is None else _ESCAPED.sub(r"\1", quoted)
        position = match.end()
    return found


def _quote(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _encode(text: str) -> bytes:
    """Return ISO 8859-1 if it has all characters of the text, else UTF-8, as RFC 2831 demands."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()
