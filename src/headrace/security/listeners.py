"""Listeners: the addresses of a broker, each with a name and a security protocol."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class SecurityProtocol(IntEnum):
    """Kafka's security protocols, by their numbers in the protocol."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def uses_tls(self) -> bool:
        return self in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    @property
    def uses_sasl(self) -> bool:
        return self in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}


@dataclass(frozen=True, slots=True)
class Endpoint:
    name: str
    host: str
    port: int
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"

    @property
    def address(self) -> str:
        """HOST:PORT, as clients write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @classmethod
    def parse(cls, text: str, protocols: Mapping[str, SecurityProtocol]) -> "Endpoint":
        """Return the endpoint in `NAME://HOST:PORT`; ValueError says what is wrong.

        `protocols` has the security protocol of each listener name.
        """
        name, scheme, rest = text.partition("://")
        host, colon, port = rest.rpartition(":")
        if not (name and scheme and colon and port.isdigit() and int(port) < 65536):
            raise ValueError("expected NAME://HOST:PORT, such as PLAINTEXT://127.0.0.1:9092")
        if name not in protocols:
            raise ValueError(f"listener.security.protocol.map has no security protocol for listener {name}")
        return cls(name, host.strip("[]"), int(port), protocols[name])


class Listener(NamedTuple):
    name: str
    security_protocol: SecurityProtocol
    is_inter_broker: bool  # brokers connect to it: messages among brokers are accepted
