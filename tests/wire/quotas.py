"""Quotas for tests that speak the protocol themselves."""

from collections.abc import Mapping
from typing import Any

from headrace.protocol.schema.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from headrace.protocol.schema.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from wire.raw import RawClient

Entity = Mapping[str, str | None]
"""Types and names of an entity; None is the default."""


def alteration(entity: Entity, quotas: Mapping[str, float | None]) -> AlterClientQuotasRequestEntryData:
    """Set these quotas of an entity, and remove those that are None."""
    return AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type=type_, entity_name=name) for type_, name in entity.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()],
    )


def alter(
    client: RawClient, entity: Entity, quotas: Mapping[str, float | None], *, validate_only: bool = False
) -> Any:
    """Alter the quotas of one entity and return its result."""
    request = AlterClientQuotasRequest(entries=[alteration(entity, quotas)], validate_only=validate_only)
    (result,) = client.ask(request, 1).entries
    return result


def set_quotas(client: RawClient, entity: Entity, **quotas: float | None) -> None:
    result = alter(client, entity, quotas)
    assert result.error_code == 0, result


def quotas_of(
    client: RawClient, *components: ComponentData, strict: bool = False
) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    """Return the quotas of the entities that match."""
    response = client.ask(DescribeClientQuotasRequest(components=list(components), strict=strict), 1)
    assert response.error_code == 0, response
    return {
        tuple((each.entity_type, each.entity_name) for each in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in response.entries
    }


def named(entity_type: str, name: str) -> ComponentData:
    return ComponentData(entity_type=entity_type, match_type=0, match=name)


def default_of(entity_type: str) -> ComponentData:
    return ComponentData(entity_type=entity_type, match_type=1, match=None)


def any_of(entity_type: str) -> ComponentData:
    return ComponentData(entity_type=entity_type, match_type=2, match=None)
