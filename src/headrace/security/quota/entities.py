"""Quota entities, the keys of their quotas, and the values that each key accepts."""

import ipaddress
import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from headrace.protocol.errors import ErrorCode, KafkaError

DEFAULT: Final = ""
"""The name of a default entity: no user, client id or address is empty."""

USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)
_SHOWN: Final = 100  # characters of a client's text in a message
_FRACTION: Final = 1e-6  # below which a number counts as whole, as in Kafka


class InvalidQuota(KafkaError, code=ErrorCode.INVALID_REQUEST):
    """An entity, a quota key, a value or a filter is invalid."""


class UnknownEntityType(KafkaError, code=ErrorCode.UNSUPPORTED_VERSION):
    """A filter names another entity type than user, client-id and ip."""


class ThrottlingQuotaExceeded(KafkaError, code=ErrorCode.THROTTLING_QUOTA_EXCEEDED):
    """The client's controller_mutation_rate is exhausted."""


class QuotaKey(StrEnum):
    """The quotas that there are, by the names that clients and ZooKeeper use."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"
    CONSUMER_BYTE_RATE = "consumer_byte_rate"
    REQUEST_PERCENTAGE = "request_percentage"
    CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
    CONNECTION_CREATION_RATE = "connection_creation_rate"


_WHOLE: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: 2**63 - 1,
    QuotaKey.CONSUMER_BYTE_RATE: 2**63 - 1,
    QuotaKey.CONNECTION_CREATION_RATE: 2**31 - 1,
}
"""The keys whose values are whole numbers, with the largest value of each."""

_OF_IPS: Final = frozenset({QuotaKey.CONNECTION_CREATION_RATE})
_OF_CLIENTS: Final = frozenset(QuotaKey) - _OF_IPS


class QuotaEntity(NamedTuple):
    """Whom quotas belong to. A part is None if the entity does not have it, and DEFAULT for a default."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    @classmethod
    def of(cls, parts: Iterable[tuple[str, str | None]]) -> "QuotaEntity":
        """Return the entity with these types and names (None: the default); raise InvalidQuota."""
        named: dict[str, str] = {}
        for type_, name in parts:
            if type_ not in ENTITY_TYPES:
                raise InvalidQuota(
                    f"entity type {type_[:_SHOWN]!r} is unknown, expected {', '.join(ENTITY_TYPES)}"
                )
            if type_ in named:
                raise InvalidQuota(f"a quota entity has two names of type {type_}")
            if name == "":
                raise InvalidQuota(f"the {type_} of a quota entity is empty; the default has no name")
            named[type_] = DEFAULT if name is None else name
        if not named:
            raise InvalidQuota("a quota entity names neither a user, nor a client id, nor an ip")
        if IP in named:
            if len(named) > 1:
                raise InvalidQuota("an ip cannot be combined with a user or a client id")
            if named[IP] != DEFAULT and normalized_ip(named[IP]) is None:
                raise InvalidQuota(
                    f"{named[IP][:_SHOWN]!r} is not an IP address; host names are not resolved"
                )
        return cls(named.get(USER), named.get(CLIENT_ID), named.get(IP))

    @property
    def parts(self) -> list[tuple[str, str | None]]:
        """The types and names of the entity, as in the protocol: None is the default."""
        pairs = zip(ENTITY_TYPES, self, strict=True)
        return [(type_, name or None) for type_, name in pairs if name is not None]

    @property
    def keys(self) -> frozenset[QuotaKey]:
        """The quotas that such an entity can have."""
        return _OF_CLIENTS if self.ip is None else _OF_IPS

    def __str__(self) -> str:
        return ", ".join(f"{type_} {'<default>' if name is None else name}" for type_, name in self.parts)


def normalized_ip(text: str) -> str | None:
    """Return an IP address in its canonical form; None if `text` is none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def check_value(entity: QuotaEntity, key: str, value: float) -> None:
    """Raise InvalidQuota if the entity cannot have this value of this quota."""
    if key not in entity.keys:
        expected = ", ".join(sorted(entity.keys))
        raise InvalidQuota(
            f"{key[:_SHOWN]!r} is no quota of {entity.parts[0][0]} entities: expected {expected}"
        )
    if not value > 0 or math.isinf(value):
        raise InvalidQuota(f"{key} is {value:g}, expected a finite number greater than 0")
    largest = _WHOLE.get(QuotaKey(key))
    if largest is not None:
        if value > largest:
            raise InvalidQuota(f"{key} is {value:g}, expected at most {largest}")
        if math.fmod(value, 1.0) > _FRACTION:
            raise InvalidQuota(f"{key} is {value:g}, expected a whole number")


def encode_value(key: str, value: float) -> str:
    """Return a value as Kafka writes it to ZooKeeper: whole numbers without a fraction."""
    return str(int(value)) if key in _WHOLE else repr(float(value))


def decode_values(entity: QuotaEntity, values: Mapping[str, str]) -> dict[QuotaKey, float]:
    """Return the valid quotas among the configs of an entity; a user has its credentials there too."""
    quotas = {}
    for key in entity.keys & values.keys():
        try:
            value = float(values[key])
            check_value(entity, key, value)
        except (ValueError, InvalidQuota):  # written by another program
            continue
        quotas[QuotaKey(key)] = value
    return quotas
