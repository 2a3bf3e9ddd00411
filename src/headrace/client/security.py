"""How a connection is secured: TLS around it, and who we say we are, by Kafka's own names of settings.

    Security.of({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "alice", ...})

The Java client's settings and librdkafka's are both understood, as far as they need no keystore of Java's.
"""

import base64
import hashlib
import hmac
import re
import secrets
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headrace.client.errors import ClientError
from headrace.protocol.schema.sasl_authenticate import SaslAuthenticateRequest
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_FEWEST_ROUNDS: Final = 4096  # RFC 7677; fewer would make a stolen exchange cheap to search
_MOST_ROUNDS: Final = 1_000_000
_JAAS: Final = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")

Ask = Callable[[Any], Any]


class Refused(ClientError):
    """The broker does not take us for who we say we are, or we it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What a connection needs before its first request; may be pickled, and sent to where it is needed."""

    protocol: str = "PLAINTEXT"
    mechanism: str = "PLAIN"
    username: str = ""
    password: str = ""
    ca: str = ""  # certificates in PEM, or where they are; none: the system's
    certificate: str = ""
    key: str = ""
    key_password: str | None = None
    checks_host: bool = True

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "Security":
        """From a client's settings; ClientError names the one that cannot be."""
        protocol = settings.get("security.protocol", "PLAINTEXT").upper()
        if protocol not in PROTOCOLS:
            raise ClientError(f"security.protocol is {protocol!r}: choose one of {', '.join(PROTOCOLS)}")
        mechanism = settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "PLAIN")).upper()
        if protocol.startswith("SASL") and mechanism not in MECHANISMS:
            raise ClientError(f"sasl.mechanism is {mechanism!r}: choose one of {', '.join(MECHANISMS)}")
        for store in ("ssl.truststore", "ssl.keystore"):
            kind = settings.get(f"{store}.type", "PEM" if f"{store}.location" not in settings else "JKS")
            if kind.upper() != "PEM":
                raise ClientError(
                    f"{store}.type is {kind}: only PEM can be read without Java; say {store}.type=PEM, or "
                    "name PEM files with ssl.ca.location, ssl.certificate.location and ssl.key.location"
                )
        jaas = {
            name: quoted or single
            for name, quoted, single in _JAAS.findall(settings.get("sasl.jaas.config", ""))
        }
        chain = settings.get("ssl.keystore.certificate.chain", settings.get("ssl.keystore.location", ""))
        return cls(
            protocol=protocol,
            mechanism=mechanism,
            username=settings.get("sasl.username", jaas.get("username", "")),
            password=settings.get("sasl.password", jaas.get("password", "")),
            ca=settings.get(
                "ssl.ca.location",
                settings.get("ssl.truststore.certificates", settings.get("ssl.truststore.location", "")),
            ),
            certificate=settings.get("ssl.certificate.location", chain),
            key=settings.get("ssl.key.location", settings.get("ssl.keystore.key", chain)),
            key_password=settings.get("ssl.key.password"),
            checks_host=settings.get("ssl.endpoint.identification.algorithm", "https").lower()
            not in {"", "none"},
        )

    def wrap(self, plain: socket.socket, host: str) -> socket.socket:
        """The connection with TLS around it, if that is wanted."""
        if not self.protocol.endswith("SSL"):
            return plain
        context = ssl.create_default_context()
        context.check_hostname = self.checks_host
        if self.ca:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = self.checks_host
            if "-----BEGIN" in self.ca:
                context.load_verify_locations(cadata=self.ca)
            else:
                context.load_verify_locations(_existing("ssl.ca.location", self.ca))
        if self.certificate:
            context.load_cert_chain(
                _existing("ssl.certificate.location", self.certificate),
                _existing("ssl.key.location", self.key or self.certificate),
                self.key_password,
            )
        return context.wrap_socket(plain, server_hostname=host)

    def authenticate(self, ask: Ask, address: str) -> None:
        """Say who we are, before anything else is asked; Refused if the broker does not believe it."""
        if not self.protocol.startswith("SASL"):
            return
        answer = ask(SaslHandshakeRequest(mechanism=self.mechanism))
        if answer.error_code:
            raise Refused(f"{address} does not take {self.mechanism}, only {', '.join(answer.mechanisms)}")
        if self.mechanism == "PLAIN":
            _say(ask, address, f"\0{self.username}\0{self.password}".encode())
        else:
            self._scram(ask, address, self.mechanism.removeprefix("SCRAM-").replace("-", "").lower())

    def _scram(self, ask: Ask, address: str, algorithm: str) -> None:
        """RFC 5802: both sides prove to know the password, and nobody says it."""
        nonce = secrets.token_urlsafe(24)
        name = self.username.replace("=", "=3D").replace(",", "=2C")
        first = f"n={name},r={nonce}"
        challenge = _say(ask, address, f"n,,{first}".encode()).decode()
        parts = dict(part.split("=", 1) for part in challenge.split(","))
        rounds = int(parts["i"])
        if not parts["r"].startswith(nonce) or not _FEWEST_ROUNDS <= rounds <= _MOST_ROUNDS:
            raise Refused(f"{address} answers as no broker that knows the password would")
        salted = hashlib.pbkdf2_hmac(algorithm, self.password.encode(), base64.b64decode(parts["s"]), rounds)
        client_key = hmac.digest(salted, b"Client Key", algorithm)
        last = f"c=biws,r={parts['r']}"
        agreed = f"{first},{challenge},{last}".encode()
        signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), agreed, algorithm)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        final = _say(ask, address, f"{last},p={base64.b64encode(proof).decode()}".encode())
        expected = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), agreed, algorithm)
        if not hmac.compare_digest(final, b"v=" + base64.b64encode(expected)):
            raise Refused(f"{address} does not know the password it asks for")


PLAINTEXT: Final = Security()


def _say(ask: Ask, address: str, said: bytes) -> bytes:
    answer = ask(SaslAuthenticateRequest(auth_bytes=said))
    if answer.error_code:
        why = answer.error_message or "authentication failed"
        raise Refused(f"{address} refuses: {why}; are sasl.username and sasl.password right?")
    return bytes(answer.auth_bytes)


def _existing(setting: str, path: str) -> str:
    if not Path(path).is_file():
        raise ClientError(f"{setting} is {path}, where there is no file")
    return path
