"""Client quotas of a cluster: what `headrace quota` does.

QuotaAdmin(Brokers("127.0.0.1:9092")).alter_quotas({"user": "alice"}, sets={"producer_byte_rate": 1e6})
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headrace.client.admin.arguments import names_of
from headrace.client.errors import BadSetting, raise_for
from headrace.client.wire.brokers import QUESTION_S, Brokers
from headrace.protocol.schema.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from headrace.protocol.schema.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

ENTITY_TYPES: Final = ("user", "client-id", "ip")
KEYS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
Entity = Mapping[str, str | None]
"""The types and names of an entity: {"user": "alice", "client-id": None}; None is the default."""

_CHANGE_S: Final = 35.0  # for the response to a request that changes something
_EXACT, _DEFAULT = 0, 1  # match types


@dataclass(frozen=True, slots=True)
class ClientQuota:
    """The quotas of a user, a client id, both together, or an IP address."""

    entity: Entity
    quotas: Mapping[str, float]


class QuotaAdmin:
    """Describes and changes quotas; ClientError if the brokers refuse that."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    def list_quotas(self, entity: Entity | None = None) -> list[ClientQuota]:
        """Return the quotas of every entity that has these names; of all entities without names.

        An entity is {"user": "alice"}, {"client-id": "app"}, both, or {"ip": "10.0.0.1"}; None: the default.
        """
        request = DescribeClientQuotasRequest(
            components=[
                ComponentData(entity_type=type_, match_type=_DEFAULT if name is None else _EXACT, match=name)
                for type_, name in _checked(entity or {}).items()
            ],
            strict=False,
        )
        answer: DescribeClientQuotasResponse = self._brokers.first(
            lambda at: at.ask(request), within_s=QUESTION_S
        )
        raise_for(answer.error_code, answer.error_message, "quotas")
        found = [
            ClientQuota(
                {each.entity_type: each.entity_name for each in entry.entity},
                {each.key: each.value for each in sorted(entry.values, key=lambda value: value.key)},
            )
            for entry in answer.entries or ()
        ]
        return sorted(found, key=lambda each: [(type_, name or "") for type_, name in each.entity.items()])

    def alter_quotas(
        self, entity: Entity, *, sets: Mapping[str, float] | None = None, unsets: Iterable[str] = ()
    ) -> None:
        """Set and remove quotas of an entity, such as producer_byte_rate: all of them, or none."""
        named = _checked(entity)
        if not named:
            raise BadSetting("an entity has a user, a client id or both, or an ip")
        entry = AlterClientQuotasRequestEntryData(
            entity=[EntityData(entity_type=type_, entity_name=name) for type_, name in named.items()],
            ops=[
                *(
                    OpData(key=_key(key), value=_number(key, value), remove=False)
                    for key, value in (sets or {}).items()
                ),
                *(OpData(key=_key(key), value=0.0, remove=True) for key in names_of(unsets)),
            ],
        )
        request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
        (result,) = self._brokers.any(request, answer_s=_CHANGE_S).entries
        raise_for(result.error_code, result.error_message, shown(named))


def shown(entity: Entity) -> str:
    """Return an entity as people read it: `user alice, client-id <default>`."""
    return ", ".join(f"{type_} {'<default>' if name is None else name}" for type_, name in entity.items())


def _checked(entity: Any) -> Entity:
    if not isinstance(entity, Mapping):
        raise BadSetting(f"an entity is a mapping such as {{'user': 'alice'}}, not {entity!r:.80}")
    for type_, name in entity.items():
        if type_ not in ENTITY_TYPES:
            raise BadSetting(f"entity type {type_!r:.80} is unknown, expected {', '.join(ENTITY_TYPES)}")
        if name is not None and (not isinstance(name, str) or not name):
            raise BadSetting(
                f"the {type_} of an entity is {name!r:.80}, expected a name, or None for the default"
            )
    return {type_: entity[type_] for type_ in ENTITY_TYPES if type_ in entity}


def _key(key: Any) -> str:
    if key not in KEYS:
        raise BadSetting(f"quota {key!r:.80} is unknown, expected {', '.join(KEYS)}")
    return str(key)


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise BadSetting(f"{key}={value!r:.80}: expected a number greater than 0")
    return float(value)
