"""Quotas of users, client ids and IP addresses: list, set, remove."""

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query
from pydantic import Field, StrictFloat, StrictInt, StrictStr

from headrace.client.admin.quotas import KEYS, ClientQuota, Entity
from headrace.gateway.admin.brokers import check_changes
from headrace.gateway.problems import answers, bad_request
from headrace.gateway.reach import Reach, ReachDep
from headrace.gateway.rest.bodies import NO_NUL, Body

LONGEST: Final = 1000  # characters of a name
LARGEST: Final = 1e18

router = APIRouter(tags=["quotas"], responses=answers(400, 403, 503))

QuotaKey = Literal[
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
]
EntityName = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST, pattern=NO_NUL)]
Number = Annotated[StrictInt | StrictFloat, Field(gt=0, le=LARGEST, allow_inf_nan=False)]


class EntityBody(Body):
    """A user, a client id, both together, or an IP address. null is the default of a type."""

    user: EntityName | None = None
    client_id: Annotated[EntityName | None, Field(alias="client-id")] = None
    ip: EntityName | None = None

    def entity(self) -> Entity:
        """Return the types that the body names: a type that is null is there, one that is left out is not."""
        return self.model_dump(by_alias=True, exclude_unset=True)


def _name(what: str) -> object:
    return Query(description=f"Only of this {what}.", min_length=1, max_length=LONGEST, pattern=NO_NUL)


def _default(what: str) -> object:
    return Query(description=f"Only the default of {what}.")


@router.get("/quotas")
def quotas(
    reach: ReachDep,
    *,
    user: Annotated[str | None, _name("user")] = None,
    user_default: Annotated[bool, _default("all users")] = False,
    client_id: Annotated[str | None, _name("client id")] = None,
    client_id_default: Annotated[bool, _default("all client ids")] = False,
    ip: Annotated[str | None, _name("IP address")] = None,
    ip_default: Annotated[bool, _default("all IP addresses")] = False,
) -> list[ClientQuota]:
    """Return every entity that has these names, with its quotas; null in an entity is the default.

    With `user`, the quotas that the user has for single client ids are returned, too.
    """
    entity: dict[str, str | None] = {}
    for type_, name, is_default in (
        ("user", user, user_default),
        ("client-id", client_id, client_id_default),
        ("ip", ip, ip_default),
    ):
        if name is not None and is_default:
            raise bad_request(f"{type_} is both a name and the default: give one of them")
        if name is not None or is_default:
            entity[type_] = name
    return reach.quotas.list_quotas(entity)


class QuotasBody(Body):
    """Quotas to set and to remove, all or none; others stay as they are."""

    entity: EntityBody
    set: Annotated[dict[QuotaKey, Number], Field(default_factory=dict, max_length=len(KEYS))]
    unset: Annotated[list[QuotaKey], Field(default_factory=list, max_length=len(KEYS))]


@router.patch("/quotas")
def alter_quotas(body: QuotasBody, reach: ReachDep) -> ClientQuota:
    """Change quotas of an entity, and return all that it has. Every broker enforces quotas on its own."""
    check_changes(body.set, body.unset)
    entity = body.entity.entity()
    sets = {str(key): float(value) for key, value in body.set.items()}
    reach.quotas.alter_quotas(entity, sets=sets, unsets=dict.fromkeys(body.unset))
    return _quotas_of(reach, entity)


class EntityOnlyBody(Body):
    entity: EntityBody


@router.delete("/quotas")
def remove_quotas(body: EntityOnlyBody, reach: ReachDep) -> ClientQuota:
    """Remove every quota of exactly this entity, and return those that it had."""
    entity = body.entity.entity()
    found = _quotas_of(reach, entity)
    reach.quotas.alter_quotas(entity, unsets=found.quotas)
    return found


def _quotas_of(reach: Reach, entity: Entity) -> ClientQuota:
    """Return the quotas of exactly this entity, which may be none."""
    found = reach.quotas.list_quotas(entity)
    return next((quota for quota in found if dict(quota.entity) == dict(entity)), ClientQuota(entity, {}))
