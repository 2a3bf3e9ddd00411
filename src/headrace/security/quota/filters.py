"""The filters of DescribeClientQuotas: which entities a client asks for."""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from headrace.security.quota import entities

_SHOWN = 100  # characters of a client's text in a message


class Match(IntEnum):
    """How a component of a filter matches the name of an entity, by the numbers in the protocol."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2  # any name, and the default


class Component(NamedTuple):
    entity_type: str
    match: int
    name: str | None


class QuotaFilter(NamedTuple):
    """The names that an entity must have, and the types of which it must have a name."""

    names: dict[str, str | None]  # None: the default
    types: frozenset[str]
    strict: bool  # an entity must not have names of other types

    @classmethod
    def of(cls, components: Iterable[Component], *, strict: bool) -> "QuotaFilter":
        """Return the filter that a request describes, or raise InvalidQuota or UnknownEntityType."""
        names: dict[str, str | None] = {}
        types: set[str] = set()
        for component in components:
            type_ = component.entity_type
            if not type_:
                raise entities.InvalidQuota("a component of the filter has an empty entity type")
            if type_ in names or type_ in types:
                raise entities.InvalidQuota(f"entity type {type_} appears twice in the filter")
            if type_ not in entities.ENTITY_TYPES:
                raise entities.UnknownEntityType(
                    f"entity type {type_[:_SHOWN]!r} is unknown, expected {', '.join(entities.ENTITY_TYPES)}"
                )
            _check_match(component)
            if component.match == Match.ANY:
                types.add(type_)
            else:
                names[type_] = component.name
        asked = names.keys() | types
        if entities.IP in asked and asked & {entities.USER, entities.CLIENT_ID}:
            raise entities.InvalidQuota("a filter cannot combine an ip with a user or a client id")
        return cls(names, frozenset(types), strict)

    def matches(self, entity: entities.QuotaEntity) -> bool:
        parts = dict(entity.parts)
        if any(type_ not in parts or parts[type_] != name for type_, name in self.names.items()):
            return False
        if not self.types <= parts.keys():
            return False
        return not self.strict or len(parts) == len(self.names) + len(self.types)


def _check_match(component: Component) -> None:
    if component.match == Match.EXACT:
        if component.name is None:
            raise entities.InvalidQuota(f"an exact match of {component.entity_type} needs a name")
    elif component.match not in {Match.DEFAULT, Match.ANY}:
        raise entities.InvalidQuota(f"match type {component.match} is unknown, expected 0, 1 or 2")
    elif component.name is not None:
        raise entities.InvalidQuota(f"only an exact match of {component.entity_type} has a name")
